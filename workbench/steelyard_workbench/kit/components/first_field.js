// A dialog takes the focus when it opens, and fields are drawn later, each in a shadow of its own.

const FIELD = "textarea:not([aria-hidden]), input:not([type]), input[type=text]";
const MOST_FRAMES = 300;

const find = (root) => {
  for (const one of root.querySelectorAll("*")) {
    if (one.matches(FIELD) && one.offsetParent && !one.disabled) return one;
    const found = one.shadowRoot && find(one.shadowRoot);
    if (found) return found;
  }
  return null;
};

const placeOf = (element) => {
  let at = element;
  while (at) {
    const dialog = at.closest(".MuiDialog-root");
    if (dialog) return dialog;
    at = at.getRootNode().host;
  }
  return element.getRootNode().host.getRootNode();
};

export function render() {
  const mark = document.createElement("span");
  mark.hidden = true;
  let frames = 0;
  const look = () => {
    const field = mark.isConnected && find(placeOf(mark));
    if (field) field.focus();
    else if (frames++ < MOST_FRAMES) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  return mark;
}
