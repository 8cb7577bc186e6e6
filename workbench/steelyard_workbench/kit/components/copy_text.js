export function render({ model }) {
  const box = document.createElement("div");
  const draw = () => {
    const names = Object.keys(model.texts);
    const chosen = names.includes(model.chosen) ? model.chosen : names[0];
    box.replaceChildren();
    if (chosen === undefined) return;
    const tabs = document.createElement("div");
    if (names.length > 1) {
      tabs.setAttribute("role", "tablist");
      tabs.setAttribute("aria-label", "Copy as");
      const choose = (name, hasFocus) => {
        model.chosen = name;
        if (hasFocus) box.querySelector("[aria-selected=true]").focus();
      };
      names.forEach((name, place) => {
        const tab = document.createElement("button");
        tab.type = "button";
        tab.textContent = name;
        tab.setAttribute("role", "tab");
        tab.setAttribute("aria-selected", String(name === chosen));
        tab.tabIndex = name === chosen ? 0 : -1;
        tab.addEventListener("click", () => choose(name, true));
        tab.addEventListener("keydown", (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          event.preventDefault();
          choose(names[(place + step + names.length) % names.length], true);
        });
        tabs.append(tab);
      });
      box.append(tabs);
    }
    const panel = document.createElement("div");
    if (names.length > 1) {
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-label", chosen);
    }
    const text = document.createElement("pre");
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", chosen);
    text.textContent = model.texts[chosen];
    const copy = document.createElement("button");
    copy.type = "button";
    copy.textContent = `Copy ${chosen}`;
    copy.addEventListener("click", () => navigator.clipboard.writeText(model.texts[chosen]));
    panel.append(text, copy);
    box.append(panel);
  };
  for (const name of ["texts", "chosen"]) model.on(name, draw);
  draw();
  return box;
}
