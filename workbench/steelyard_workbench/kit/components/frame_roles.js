// The frame is React's, which leaves alone what it did not set; what it makes again is named again.

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const name = (root) => {
    const set = (found, attribute, value) => {
      for (const one of root.querySelectorAll(found)) {
        if (one.getAttribute(attribute) !== value) one.setAttribute(attribute, value);
      }
    };
    set("[role=progressbar]", "aria-label", "Work of this page");
    set("[aria-label='Resize sidebar']", "role", "separator");
    set("nav", "aria-label", "Pages");
    for (const title of root.querySelectorAll("h5")) {
      if (!title.textContent.trim()) title.setAttribute("role", "presentation");
    }
  };
  const watcher = new MutationObserver(() => watched.forEach(name));
  const watched = [];
  const callOff = whenFramed(mark, (root) => {
    watched.push(root);
    watcher.observe(root, { childList: true, subtree: true });
    name(root);
  });
  model.on("remove", () => { callOff(); watcher.disconnect(); });
  return mark;
}
