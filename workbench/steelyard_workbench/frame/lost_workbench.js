// A page whose workbench went away says so, waits for it, and offers to load again; what was typed is
// put back into the fields of the same names then.

const KEPT = "steelyard-typed";
const LOOK_MS = 2000;
// Parts of a page come one after the other; fields that are not there after this are not waited for.
const RESTORE_MS = 60000;

const STYLE = `
  position: fixed; inset: auto 0 0 0; z-index: 3000; padding: 12px 16px; display: flex; gap: 16px;
  align-items: center; flex-wrap: wrap; font: 14px Roboto, sans-serif; color: #fff;
  background: #7a2c00;
`;
const BUTTON = `
  font: inherit; font-weight: 600; padding: 6px 14px; color: #7a2c00; background: #fff; border: 0;
  border-radius: 4px; cursor: pointer;
`;

const fieldsIn = (root, found = []) => {
  for (const element of root.querySelectorAll("*")) {
    if (element.matches("textarea, input[type=text], input:not([type])")) found.push(element);
    if (element.shadowRoot) fieldsIn(element.shadowRoot, found);
  }
  return found;
};

const nameOf = (field) =>
  field.getAttribute("aria-label") || field.labels?.[0]?.textContent || field.placeholder || "";

const keep = () => {
  const typed = fieldsIn(document)
    .filter((field) => field.value && nameOf(field) && !field.readOnly && field.type !== "password")
    .map((field) => [nameOf(field), field.value]);
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ at: location.search, typed }));
  } catch { /* the browser keeps nothing: the page is loaded without it */ }
};

const fill = (field, text) => {
  const kind = field instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(field, text);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
  field.dispatchEvent(new FocusEvent("focusout", { bubbles: true }));
};

const restore = () => {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  if (!kept || kept.at !== location.search) return;
  let left = kept.typed;
  const ends = Date.now() + RESTORE_MS;
  const timer = setInterval(() => {
    const fields = fieldsIn(document);
    left = left.filter(([name, text]) => {
      const field = fields.find((there) => nameOf(there) === name && !there.disabled);
      if (!field) return true;
      if (field.value !== text) fill(field, text);
      return false;
    });
    if (!left.length || Date.now() > ends) clearInterval(timer);
  }, 500);
};

const showLost = () => {
  if (document.getElementById("steelyard-lost")) return;
  const bar = document.createElement("div");
  bar.id = "steelyard-lost";
  bar.setAttribute("role", "alert");
  bar.style.cssText = STYLE;
  const text = document.createElement("span");
  text.textContent = "The workbench does not answer. What you typed is still here.";
  const button = document.createElement("button");
  button.type = "button";
  button.style.cssText = BUTTON;
  button.textContent = "Reload";
  button.addEventListener("click", () => { keep(); location.reload(); });
  bar.append(text, button);
  document.body.append(bar);
  // Any of its scripts: the page itself would be drawn for nobody at each look.
  const script = document.querySelector("script[src]");
  const look = async () => {
    try {
      // Whatever it answers, it is there.
      await fetch(script ? script.src : location.href, {
        cache: "no-store", method: "HEAD", signal: AbortSignal.timeout(LOOK_MS),
      });
      text.textContent = "The workbench is back. Reload to go on; what you typed comes with you.";
      return;
    } catch { /* not yet */ }
    setTimeout(look, LOOK_MS);
  };
  setTimeout(look, LOOK_MS);
};

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  restore();
  window.addEventListener("steelyard-lost", showLost);
  model.on("remove", () => window.removeEventListener("steelyard-lost", showLost));
  return mark;
}
