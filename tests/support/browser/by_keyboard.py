"""A person who has a keyboard and nothing else: Tab to a part, and a key on it."""

from __future__ import annotations

from support.browser.browsing import SLOWLY

#: More stops of Tab than any page has.
_MOST_STOPS = 400

# What has the focus, through every shadow root.
_ACTIVE = """
const active = () => {
  let found = document.activeElement;
  while (found?.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
  return found;
};
"""
# Says whether an element has the focus, and names what has it though nobody could see it. Fields show it by a thicker border, and what
# MUI draws instead of an input by an outline of the drawing.
_LOOK = f"""(wanted) => {{
  const ENDS = "[data-testid^=sentinel]";  // of a dialog, which sends the focus on at once
  {_ACTIVE}
  const found = active();
  const told = [found === wanted, null];
  if (!found || found === document.body || found.matches(ENDS)) return told;
  const isOutlined = (one) => {{
    const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1
      && Number(style.opacity) > 0 && box.width > 4 && box.height > 4;
  }};
  const border = found.closest(".MuiInputBase-root")?.querySelector("fieldset");
  if (border && parseFloat(getComputedStyle(border).borderTopWidth) >= 2) return told;
  for (let one = found, up = 0; one && up < 4; one = one.parentElement, up += 1) {{
    if (isOutlined(one)) return told;
  }}
  return [found === wanted, found.outerHTML.slice(0, 200)];
}}"""


class Keyboard:
    """Goes about a page by keys alone, and fails where the focus cannot be seen.

    Parameters
    ----------
    page : playwright.sync_api.Page
    """

    def __init__(self, page):
        self.page = page

    def go_to(self, wanted, key="Tab"):
        """Press Tab, or another key, until something has the focus."""
        wanted.wait_for(state="attached", timeout=SLOWLY)
        for _ in range(_MOST_STOPS):
            has_focus, unseen = wanted.evaluate(_LOOK)
            assert unseen is None, f"The focus cannot be seen on {unseen}"
            if has_focus:
                return
            self.page.keyboard.press(key)
        raise AssertionError(f"{key} never came to {wanted}")

    def press(self, wanted, key="Enter"):
        """Go to something and press a key on it."""
        self.go_to(wanted)
        self.page.keyboard.press(key)

    def choose(self, field, option):
        """Open a field with choices, and take one of them by arrows."""
        self.press(field)
        self.go_to(option, "ArrowDown")
        self.page.keyboard.press("Enter")

    def type(self, field, text):
        """Go to a field and type into it."""
        self.go_to(field)
        self.page.keyboard.type(text)
