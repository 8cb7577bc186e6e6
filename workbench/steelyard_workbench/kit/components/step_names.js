// Each field is in a shadow of its own beside the mark's; React leaves alone what it did not set, and
// what it makes again is named again.

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const watched = new Set();
  const name = (root) => {
    const label = root.querySelector("label")?.textContent ?? "";
    for (const [side, what] of [["Start", "Less"], ["End", "More"]]) {
      const button = root.querySelector(`.MuiInputAdornment-position${side} button`);
      const wanted = `${what}: ${label}`;
      if (button && button.getAttribute("aria-label") !== wanted) {
        button.setAttribute("aria-label", wanted);
      }
    }
  };
  const watcher = new MutationObserver(() => watched.forEach(name));
  let isOff = false, wait_ms = 60;
  const look = () => {
    if (isOff) return;
    // The row that the mark and the fields stand in, each in an element of its own.
    const row = mark.getRootNode().host?.getRootNode();
    for (const one of row?.querySelectorAll("*") ?? []) {
      const root = one.shadowRoot;
      if (!root || watched.has(root) || !root.querySelector(".MuiInputAdornment-root button")) continue;
      watched.add(root);
      watcher.observe(root, { childList: true, subtree: true });
      name(root);
    }
    wait_ms = Math.min(1.5 * wait_ms, 2_000);  // some fields are shown later
    if (watched.size < model.n) setTimeout(look, wait_ms);
  };
  look();
  model.on("remove", () => { isOff = true; watcher.disconnect(); });
  return mark;
}
