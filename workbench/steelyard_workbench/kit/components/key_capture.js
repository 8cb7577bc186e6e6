// What has keys of its own keeps them: a field all of them, a menu those that choose in it, a row of a
// table those that ``keys.py`` lists for it, and a text that is scrolled those that scroll.

const CHOOSING = ["checkbox", "radio", "range", "button", "submit", "file"];
const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
const PRESSED = "button, a, summary, input, [role=button], [role=tab], [role=menuitem]," +
  "[role=combobox], [role=checkbox], [role=switch], [role=radio], .tabulator-col";
const TURNED = "input, [role=tab], [role=combobox], [role=radio], [role=slider]";
const WITHIN = "[role=menu], [role=listbox]";
const SEARCHING = ".steelyard-searching";
const ON_ROW = [...ARROWS, "Home", "End", "Enter", " ", "j", "k", "J", "K", "[", "]", "n"];

const isField = (element) => {
  if (!element.tagName) return false;
  const name = element.tagName.toLowerCase();
  if (name === "input") return !CHOOSING.includes(element.type);
  return name === "textarea" || name === "select" || element.isContentEditable;
};

const isKept = (event, path) => {
  const [target] = path;
  if (!target.matches) return false;
  const { key } = event;
  if (path.some((one) => one.matches?.(WITHIN))) return true;
  if (path.some((one) => one.matches?.(".MuiDialog-root"))) return key !== "Escape" && key !== "?";
  if (target.matches(".tabulator-row")) return ON_ROW.includes(key);
  if ((key === "Enter" || key === " ") && target.closest(PRESSED)) return true;
  if (!ARROWS.includes(key) && key !== " ") return false;
  if (target.closest(TURNED)) return true;
  return target.matches("[tabindex]") && target.scrollHeight > target.clientHeight + 1;
};

export function render({ model }) {
  let before = "";
  let beforeAt = 0;
  const onKey = (event) => {
    if (!model.is_ready) return;
    const path = event.composedPath();
    const typing = isField(path[0]);
    if (typing && event.key === "Enter" && path.some((one) => one.matches?.(SEARCHING))) {
      // After the field has taken it: the keys that follow are for the rows that come.
      setTimeout(() => path[0].blur());
    }
    if (typing && event.key !== "Escape") return;
    if (isKept(event, path)) return;
    if (typing) path[0].blur();
    if (event.altKey || event.metaKey) return;
    let key = event.key;
    if (event.ctrlKey) key = "Ctrl+" + (event.shiftKey ? "Shift+" : "") + event.key;
    else if (event.shiftKey && /^[A-Z]$/.test(event.key)) key = "Shift+" + event.key;
    const now = Date.now();
    if (before === "g" && now - beforeAt < 1200) key = "g " + key;
    before = event.key;
    beforeAt = now;
    if (!model.watched.includes(key)) return;
    event.preventDefault();
    // A message each: changes of one property that follow closely are sent as one, and come back.
    model.send_msg({ key });
  };
  document.addEventListener("keydown", onKey, true);
  model.on("remove", () => document.removeEventListener("keydown", onKey, true));
  const mark = document.createElement("span");
  mark.hidden = true;
  const tell = () => { mark.dataset.keys = model.is_ready ? "ready" : "waiting"; };
  model.on("is_ready", tell);
  tell();
  return mark;
}
