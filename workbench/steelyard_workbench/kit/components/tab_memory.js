export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const read = () => {
    try { return sessionStorage.getItem(model.key) || ""; } catch { return ""; }
  };
  const stored = read();
  if (stored && !model.text) model.text = stored;
  model.on("text", () => {
    try {
      if (model.text) sessionStorage.setItem(model.key, model.text);
      else sessionStorage.removeItem(model.key);
    } catch { /* A browser without storage forgets. */ }
  });
  return mark;
}
