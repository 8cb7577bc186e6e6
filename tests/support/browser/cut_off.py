"""Find the parts of a page that lie beyond the edge of its window, through all shadow roots.

The frame of the page cuts such parts off, so that the document itself is never wider than the window.
"""

from __future__ import annotations

# Charts have parts that they cut off themselves, and tables a head that a phone does not show.
_LOOK = """() => {
  const found = [];
  const look = (root) => {
    for (const one of root.children) {
      const style = getComputedStyle(one);
      if (style.position === "fixed" || one.matches(".bk-Figure, .tabulator, [role=tablist]")) continue;
      const box = one.getBoundingClientRect();
      if (box.width > 1 && box.height > 1 && box.right > innerWidth + 1) {
        found.push(`${Math.round(box.right)} ${one.className} ${one.innerText ?? ""}`.slice(0, 120));
        continue;
      }
      if (one.shadowRoot) look(one.shadowRoot);
      look(one);
    }
  };
  look(document.body);
  return found;
}"""


def cut_off_parts(page):
    """Return the outermost parts that end beyond the right edge, each with where and its text."""
    return page.evaluate(_LOOK)
