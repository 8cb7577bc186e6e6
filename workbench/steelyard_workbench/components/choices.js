export function render({ model }) {
  const box = document.createElement("div");
  const add = (to, kind, text) => {
    if (!text) return;
    const made = document.createElement(kind);
    made.textContent = text;
    to.append(made);
  };
  const draw = () => {
    box.replaceChildren();
    add(box, `h${model.level}`, model.title);
    const list = document.createElement("div");
    if (model.is_cards) list.className = "cards";
    model.lines.forEach((line, place) => {
      const one = document.createElement("div");
      add(one, `h${model.title ? model.level + 1 : model.level}`, line.title);
      if (line.look !== "word") add(one, "p", line.text);
      if (line.label) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = line.look;
        button.textContent = line.label;
        button.disabled = model.disabled || line.is_off;
        button.addEventListener("click", () => model.send_msg({ press: place }));
        one.append(button);
      }
      if (line.look === "word") add(one, "p", line.text);
      list.append(one);
    });
    box.append(list);
  };
  for (const name of ["title", "lines", "disabled"]) model.on(name, draw);
  draw();
  return box;
}
