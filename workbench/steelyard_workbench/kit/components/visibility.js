export function render({ model }) {
  const tell = () => { model.is_hidden = document.hidden; };
  document.addEventListener("visibilitychange", tell);
  model.on("remove", () => document.removeEventListener("visibilitychange", tell));
  tell();
  const mark = document.createElement("span");
  mark.hidden = true;
  return mark;
}
