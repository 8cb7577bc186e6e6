// The dialog is the browser's own: above everything, with the focus kept in it and given back. It
// opens at once, and asks the server once typing pauses; answers to what was typed before are late.

const PAUSE_MS = 150;
const STYLE = `
  dialog { width: min(620px, 92vw); padding: 0; margin-top: 12vh; border-radius: 8px;
    border: 1px solid #8886; background: #fff; color: #1b1b1b; font: 1rem Roboto, sans-serif;
    box-shadow: 0 12px 40px #0006; }
  dialog::backdrop { background: #0005; }
  dialog.dark { background: #1e1e1e; color: #eee; }
  input { box-sizing: border-box; width: 100%; padding: 14px 16px; border: 0; font: inherit;
    font-size: 1rem; color: inherit; background: transparent; outline: 0;
    border-bottom: 1px solid #8884; }
  input:focus-visible { box-shadow: inset 0 -2px #0a84c6; }
  ul { list-style: none; margin: 0; padding: 6px; max-height: 50vh; overflow-y: auto; }
  li { display: flex; gap: 12px; padding: 7px 10px; border-radius: 4px; cursor: pointer; }
  li[aria-selected=true] { background: #0a84c62e; outline: 1px solid #0a84c6; }
  .kind { flex: 0 0 4.5em; } .note { margin-left: auto; flex: 0 0 auto; }
  .kind, .note { color: #5c5c5c; } .dark .kind, .dark .note { color: #b3b3b3; }
  .label { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  p { margin: 0; padding: 4px 16px 12px; color: #5c5c5c; } .dark p { color: #b3b3b3; }
`;

export function render({ model }) {
  const place = document.createElement("div");
  place.innerHTML = `<style>${STYLE}</style><dialog aria-label="Find">
    <input role="combobox" aria-expanded="true" aria-controls="found" aria-autocomplete="list"
      aria-label="Find a page, dataset, model or row" autocomplete="off" maxlength="200"
      placeholder="Find a page, dataset, model or row">
    <ul id="found" role="listbox" aria-label="Found"></ul><p role="status"></p></dialog>`;
  const [dialog, input, list, told] = ["dialog", "input", "ul", "p"].map((one) =>
    place.querySelector(one));
  let asked = 0;
  let active = 0;
  let pause = 0;
  const mark = () => {
    [...list.children].forEach((one, at) => one.setAttribute("aria-selected", at === active));
    const chosen = list.children[active];
    if (chosen) chosen.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", chosen ? chosen.id : "");
  };
  const choose = (at) => {
    if (!list.children[at]) return;
    dialog.close();
    model.send_msg({ chosen: at, n: Number(list.dataset.n) });
  };
  const show = ({ n, found, said }) => {
    if (n !== asked) return;
    list.dataset.n = n;
    list.replaceChildren(...found.map((one, at) => {
      const line = document.createElement("li");
      line.id = `found-${at}`;
      line.setAttribute("role", "option");
      for (const part of ["kind", "label", "note"]) {
        const text = document.createElement("span");
        text.className = part;
        text.textContent = one[part];
        line.append(text);
      }
      line.addEventListener("click", () => choose(at));
      return line;
    }));
    told.textContent = said;
    active = 0;
    mark();
  };
  const ask = () => { asked += 1; model.send_msg({ text: input.value, n: asked }); };
  const open = () => {
    if (dialog.open) return;
    dialog.classList.toggle("dark", isDark());
    input.value = "";
    dialog.showModal();
    input.focus();
    ask();
  };
  const isDark = () => {
    for (let root = place.getRootNode(); root; root = root.host?.getRootNode()) {
      if (root.querySelector(".mui-dark")) return true;
    }
    return false;
  };
  input.addEventListener("input", () => {
    clearTimeout(pause);
    asked += 1;
    pause = setTimeout(ask, PAUSE_MS);
  });
  dialog.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const count = list.children.length;
    if (event.key === "Enter") choose(active);
    else if (event.key === "ArrowDown" && count) active = (active + 1) % count;
    else if (event.key === "ArrowUp" && count) active = (active + count - 1) % count;
    else return;
    event.preventDefault();
    mark();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  const onKey = (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    open();
  };
  document.addEventListener("keydown", onKey, true);
  model.on("opened", open);
  model.on("answer", () => show(model.answer));
  model.on("remove", () => document.removeEventListener("keydown", onKey, true));
  return place;
}
