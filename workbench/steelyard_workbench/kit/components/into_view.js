// On a phone what opens stands under a long list; on a desk, beside the head of one that was scrolled.

const MOST_FRAMES = 300;
// While a part is filled, its browser holds on to what is in sight, which may stand after it.
const FILLED_MS = 1500;

export function render({ model }) {
  const mark = document.createElement("span");
  mark.style.cssText = "display: block; scroll-margin-top: 64px";
  let height = null;
  let until = 0;
  const follow = () => { if (performance.now() < until) mark.scrollIntoView(); };
  const begin = () => {
    const { top } = mark.getBoundingClientRect();
    if (top < 0 || top > 0.8 * innerHeight) until = performance.now() + FILLED_MS;
    follow();
  };
  const watch = new ResizeObserver(([{ contentRect }]) => {
    if (height === 0 && contentRect.height) begin();
    else follow();
    height = contentRect.height;
  });
  let frames = 0;
  const find = () => {
    const part = mark.isConnected && mark.getRootNode().host.nextElementSibling;
    if (part) watch.observe(part);
    else if (frames++ < MOST_FRAMES) requestAnimationFrame(find);
  };
  find();
  model.on("n", begin);
  model.on("remove", () => watch.disconnect());
  return mark;
}
