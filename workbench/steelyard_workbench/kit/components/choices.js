export function render({ model }) {
  const box = document.createElement("div");
  const add = (to, kind, text) => {
    if (!text) return;
    const made = document.createElement(kind);
    made.textContent = text;
    to.append(made);
  };
  const buttons = () => [...box.querySelectorAll("a, button")];
  const draw = () => {
    const focused = buttons().indexOf(box.getRootNode().activeElement);
    box.replaceChildren();
    add(box, `h${model.level}`, model.title);
    const list = document.createElement("div");
    list.className = `${model.layout} ${model.is_small ? "small" : ""}`;
    model.lines.forEach((line, place) => {
      const isBelow = line.look === "word" || model.layout === "row";
      const one = document.createElement("div");
      if (line.state) {
        one.className = line.state;
        one.setAttribute("aria-current", line.state === "now" ? "step" : "false");
      }
      add(one, `h${model.title ? model.level + 1 : model.level}`, line.title);
      if (!isBelow) add(one, "p", line.text);
      if (line.pill) {
        add(one, "span", line.pill);
        one.lastChild.className = "pill";
      }
      if (line.label) {
        const isOff = model.disabled || line.is_off;
        const press = () => model.send_msg({ press: place });
        const button = linkOrButton(line.label, isOff ? "" : line.link, press);
        button.className = line.look;
        if (line.colour) {
          const swatch = document.createElement("i");
          swatch.style.backgroundColor = line.colour;
          button.prepend(swatch);
        }
        if (line.hint) button.title = line.hint;
        button.disabled = isOff;
        one.append(button);
      }
      if (isBelow) add(one, "p", line.text);
      list.append(one);
    });
    box.append(list);
    if (focused >= 0) buttons()[focused]?.focus();
  };
  for (const name of ["title", "lines", "disabled"]) model.on(name, draw);
  draw();
  return box;
}
