// Its Select is told when it is open and never says that a key asks for it, and its choices are in a
// fragment, so that none of them takes the focus (panel-material-ui 0.16).

const OPENS = ["Enter", " ", "ArrowDown", "ArrowUp"];
const ITEM = "[role=menuitem]:not(.Mui-disabled), [role=option]:not(.Mui-disabled)";

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;

  const itemsOf = (list) =>
    [...list.querySelectorAll(ITEM)].filter((item) => !item.querySelector("input:not([type=checkbox])"));

  const listOf = (field) => {
    const id = field.getAttribute("aria-controls");
    for (const root of id ? [field.getRootNode(), document] : []) {
      const list = root.getElementById(id);
      if (list) return list;
    }
    return null;
  };

  const enter = (field, tries) => {
    const list = listOf(field);
    const items = list ? itemsOf(list) : [];
    const search = list?.querySelector("input[type=text]");
    const chosen = items.find((item) => item.matches(".Mui-selected"));
    if (items.length) (search ?? chosen ?? items[0]).focus();
    else if (tries) setTimeout(() => enter(field, tries - 1), 50);
  };

  const move = (event, list) => {
    const items = itemsOf(list);
    const at = items.findIndex((item) => event.composedPath().includes(item));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    items[Math.max(0, Math.min(to, items.length - 1))]?.focus();
  };

  const onKey = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const path = event.composedPath();
    const target = path[0];
    if (!target.matches) return;
    const list = path.find((one) => one.matches?.("[role=listbox]"));
    const isIn = list && ["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key);
    const isTyped = target.matches("input") && event.key !== "ArrowDown";
    const isClosed = target.matches(".MuiSelect-select[role=combobox]:not([aria-expanded=true])");
    const opens = isClosed && !target.matches(".Mui-disabled") && OPENS.includes(event.key);
    if (!opens && !(isIn && !isTyped)) return;
    event.preventDefault();
    event.stopPropagation();
    if (opens) {
      target.click();
      enter(target, 40);
    } else {
      move(event, list);
    }
  };
  document.addEventListener("keydown", onKey, true);
  model.on("remove", () => document.removeEventListener("keydown", onKey, true));
  return mark;
}
