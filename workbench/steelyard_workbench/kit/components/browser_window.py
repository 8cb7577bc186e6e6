"""The browser's window: the system's theme, and whether the window is narrow."""

from __future__ import annotations

import param

from steelyard_workbench.kit.components.unseen import Unseen

#: Cookies: the theme that was chosen, the one that the system preferred at the last visit, and
#: whether the window was narrow then. The server reads them before it draws a page.
CHOSEN, SYSTEM, WIDTH = "steelyard-theme", "steelyard-system-theme", "steelyard-width"
#: Value of the last.
NARROW = "narrow"
#: Run in the browser when a page has turned to another theme: the address no longer names the dark
#: one at once. panel-material-ui reads it for every part that it draws, so a part that came before
#: the server had written the address anew stayed dark on a light page.
NAME_NO_DARK = """
if (!cb_obj.dark_theme) {
  const address = new URL(location.href);
  address.searchParams.delete("theme");
  history.replaceState(history.state, "", address);
}
"""
_LOOK = (
    f"""
const CHOSEN = "{CHOSEN}", SYSTEM = "{SYSTEM}", WIDTH = "{WIDTH}", NARROW = "{NARROW}";
const keep = (name, value) => {{
  document.cookie = `${{name}}=${{value}}; path=/; max-age=31536000; samesite=strict`;
}};
"""
    """
export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 959px)");
  const tell = () => {
    if (!model.is_ready) return;
    keep(SYSTEM, dark.matches ? "dark" : "light");
    keep(WIDTH, narrow.matches ? NARROW : "wide");
    model.send_msg({ is_dark: dark.matches, is_narrow: narrow.matches });
  };
  const onChosen = () => { if (model.theme) keep(CHOSEN, model.theme); };
  dark.addEventListener("change", tell);
  narrow.addEventListener("change", tell);
  model.on("theme", onChosen);
  model.on("is_ready", tell);
  model.on("remove", () => {
    dark.removeEventListener("change", tell);
    narrow.removeEventListener("change", tell);
  });
  tell();
  return mark;
}
"""
)


class BrowserWindow(Unseen):
    """Sends ``{"is_dark", "is_narrow"}`` to ``on_msg``, at first and when it changes; keeps ``theme``."""

    theme = param.Selector(default="", objects=["", "dark", "light"])

    # Panel loses messages from a page that is still being drawn.
    is_ready = param.Boolean(default=False)

    _esm = _LOOK
