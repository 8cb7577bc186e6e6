export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const storage = () => (model.is_lasting ? localStorage : sessionStorage);
  const read = () => {
    try { return storage().getItem(model.key) || ""; } catch { return ""; }
  };
  const stored = read();
  if (stored && !model.text) model.text = stored;
  model.on("text", () => {
    try {
      if (model.text) storage().setItem(model.key, model.text);
      else storage().removeItem(model.key);
    } catch { /* A browser without storage forgets. */ }
  });
  return mark;
}
