// The element stays and only its text changes: screen readers read a change, not a new element.

export function render({ model }) {
  const region = document.createElement("div");
  region.setAttribute("role", "status");
  region.setAttribute("aria-live", "polite");
  region.style.fontSize = "0.857rem";
  region.style.minHeight = "1.3em";
  const tell = () => { region.textContent = model.text; };
  model.on("text", tell);
  tell();
  return region;
}
