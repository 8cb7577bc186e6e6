"""Contrast of every text on a page, measured as WCAG 2.2 counts it, through all shadow roots.

axe measures fewer: it leaves out text whose background it is not sure of, disabled text, and the
letters of charts, which are drawn and no elements.
"""

from __future__ import annotations

#: The least ratio of a text to what it stands on, of any size.
LEAST = 4.5
_LOOKS, _PAUSE_MS = 20, 250

_MEASURE = """
(least) => {
  const parse = (text) => {
    const numbers = (text.match(/[\\d.]+%?/g) || []).map((part) => parseFloat(part));
    if (text.startsWith("color(srgb")) {
      const [r, g, b, a = 1] = numbers;
      return [r * 255, g * 255, b * 255, a];
    }
    const [r = 0, g = 0, b = 0, a = 1] = numbers;
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((part, at) => part * a + under[at] * (1 - a));
  const channel = (part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ratio = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const parentOf = (element) => {
    const parent = element.assignedSlot || element.parentNode;
    return parent instanceof ShadowRoot ? parent.host : parent;
  };
  const isSeen = (element) =>
    element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    [...element.getClientRects()].some(({ width, height }) => width > 1 && height > 1);
  /* A text as it is seen: its colour on what lies behind it. Opacity thins out all of an element. */
  const measure = (element, colour) => {
    const layers = [];
    let alpha = 1;
    for (let here = element; here instanceof Element; here = parentOf(here)) {
      const style = getComputedStyle(here);
      layers.push([parse(style.backgroundColor), style.opacity]);
    }
    let ground = [255, 255, 255];
    for (const [[r, g, b, a], opacity] of layers.reverse()) {
      alpha *= opacity;
      ground = over([r, g, b, a * alpha], ground);
    }
    const [r, g, b, a] = parse(colour);
    if (a * alpha === 0) return Infinity;
    return ratio(over([r, g, b, a * alpha], ground), ground);
  };
  const found = new Map();
  const look = (element, text, colour) => {
    if (!isSeen(element)) return;
    const measured = measure(element, colour);
    if (measured >= least) return;
    const where = `${element.tagName.toLowerCase()} ${text.trim().slice(0, 40)}`;
    found.set(where, `${measured.toFixed(2)} ${colour}`);
  };
  const walk = (root) => {
    for (const animation of root.getAnimations()) try { animation.finish(); } catch { /* endless */ }
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) walk(element.shadowRoot);
      const style = getComputedStyle(element);
      if (element.matches("input, textarea")) {
        const isEmpty = !element.value;
        const of = isEmpty ? getComputedStyle(element, "::placeholder") : style;
        const hasText = !["checkbox", "radio", "range", "file"].includes(element.type);
        if (hasText && (element.value || element.placeholder)) {
          const shade = parse(of.color);
          shade[3] *= isEmpty ? of.opacity : 1;
          look(element, element.value || element.placeholder, `rgba(${shade})`);
        }
        continue;
      }
      if (element.matches("script, style, noscript, canvas")) continue;
      const text = [...element.childNodes]
        .filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("");
      if (text.trim()) look(element, text, element instanceof SVGElement ? style.fill : style.color);
    }
  };
  walk(document);
  /* Letters of charts: what Bokeh draws them with, on the element that the chart is in. */
  const words = ["major_label_text", "axis_label_text", "label_text", "title_text", "text"];
  const views = [];
  const gather = (view) => {
    if (!view || views.includes(view)) return;
    views.push(view);
    for (const child of view.children_views?.() ?? view.child_views ?? []) gather(child);
  };
  for (const view of Object.values(Bokeh.index.roots ?? Bokeh.index)) gather(view);
  for (const view of views.filter((view) => view.model.type === "Figure")) {
    for (const model of view.model.references()) {
      for (const word of words) {
        const colour = model.properties?.[`${word}_color`]?.get_value?.();
        const isDrawn = model.visible !== false && (word !== "text" || model.text);
        const named = colour && typeof colour === "object" ? colour.value : colour;
        if (!isDrawn || typeof named !== "string" || model.type.endsWith("Glyph")) continue;
        const probe = document.createElement("i");
        probe.style.color = named;
        document.body.append(probe);
        const seen = getComputedStyle(probe).color;
        probe.remove();
        const alpha = model[`${word}_alpha`];
        const shade = parse(seen);
        shade[3] *= typeof alpha === "number" ? alpha : 1;
        look(view.el, `${model.type}.${word}`, `rgba(${shade})`);
      }
    }
  }
  return Object.fromEntries(found);
}
"""


def faint_texts(page):
    """Return every visible text of a page whose contrast is below ``LEAST``, with its ratio and colour.

    It looks again while there are some: a page is drawn in parts, and each turns to another theme.
    """
    found = {}
    for _ in range(_LOOKS):
        found = page.evaluate(_MEASURE, LEAST)
        if not found:
            break
        page.wait_for_timeout(_PAUSE_MS)
    return found
