// Panel makes an entry of each change of the address, and listens to none of the ways back.

const pageIn = (address) => new URL(address, location.href).searchParams.get("page") || "home";

export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  let shown = location.search;
  history.pushState = (state, title, url) => {
    const isOther = pageIn(url ?? location.href) !== pageIn(location.href);
    const put = isOther ? History.prototype.pushState : History.prototype.replaceState;
    put.call(history, state, title, url);
    shown = location.search;
  };
  const onTitle = () => {
    document.title = model.title ? `${model.title} - Steelyard` : "Steelyard";
  };
  onTitle();
  model.on("title", onTitle);
  // What is shown is then what the address says, in all of its parts.
  const onBack = () => { if (location.search !== shown) location.reload(); };
  window.addEventListener("popstate", onBack);
  model.on("remove", () => {
    delete history.pushState;
    window.removeEventListener("popstate", onBack);
  });
  return mark;
}
