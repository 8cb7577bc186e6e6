export function render({ model }) {
  const bar = document.createElement("div");
  bar.className = "track";
  bar.setAttribute("role", "progressbar");
  bar.setAttribute("aria-valuemin", "0");
  const fill = bar.appendChild(document.createElement("i"));
  const draw = () => {
    const share = Math.min(1, model.value / 100);
    bar.setAttribute("aria-label", model.label);
    bar.setAttribute("aria-valuemax", "100");
    if (share < 0) bar.removeAttribute("aria-valuenow");
    else bar.setAttribute("aria-valuenow", Math.round(100 * share));
    fill.style.width = share < 0 ? "" : `${100 * share}%`;
  };
  for (const name of ["label", "value"]) model.on(name, draw);
  draw();
  return bar;
}
