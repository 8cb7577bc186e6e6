// It stands before the frame, which is React's and has no place for it, and is seen while it has the
// focus. The heading may be in a shadow of its own, where no link within the page leads.

const STYLE = `
  .skip-link { position: fixed; top: 8px; left: 8px; z-index: 3000; padding: 0.6em 1em;
    font: 600 1rem Roboto, sans-serif; color: #fff; background: #00344f; border: 2px solid #fff;
    border-radius: 4px; }
  .skip-link:not(:focus) { clip-path: inset(50%); width: 1px; height: 1px; padding: 0;
    overflow: hidden; white-space: nowrap; }
`;

const find = (root, wanted) => {
  const here = root.querySelector(wanted);
  if (here) return here;
  for (const one of root.querySelectorAll("*")) {
    const found = one.shadowRoot && find(one.shadowRoot, wanted);
    if (found) return found;
  }
  return null;
};

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const style = document.createElement("style");
  style.textContent = STYLE;
  const place = document.createElement("div");
  place.setAttribute("role", "region");
  place.setAttribute("aria-label", "Skip");
  const link = document.createElement("button");
  link.type = "button";
  link.className = "skip-link";
  link.textContent = "Skip to content";
  place.append(link);
  const callOff = whenFramed(mark, (root) => {
    link.addEventListener("click", () => {
      const to = find(root, "h1");
      if (!to) return;
      to.tabIndex = -1;
      to.focus();
    });
    root.prepend(style, place);
  });
  model.on("remove", () => {
    callOff();
    style.remove();
    place.remove();
  });
  return mark;
}
