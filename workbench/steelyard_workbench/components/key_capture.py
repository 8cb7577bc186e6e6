"""Keys pressed anywhere on the page, but for those typed into a field."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

_LISTEN = """
export function render({ model }) {
  let before = "";
  let beforeAt = 0;
  const isField = (element) => {
    if (!element || !element.tagName) return false;
    const name = element.tagName.toLowerCase();
    return name === "input" || name === "textarea" || name === "select" || element.isContentEditable;
  };
  const onKey = (event) => {
    if (!model.is_ready) return;
    const target = event.composedPath()[0];
    const typing = isField(target);
    if (typing && event.key !== "Escape") return;
    if (typing) target.blur();
    if (event.altKey || event.metaKey) return;
    const onButton = target && target.closest && target.closest("button, a, [role=menuitem]");
    if (onButton && (event.key === "Enter" || event.key === " ")) return;
    let key = event.key;
    if (event.ctrlKey) key = "Ctrl+" + (event.shiftKey ? "Shift+" : "") + event.key;
    else if (event.shiftKey && /^[A-Z]$/.test(event.key)) key = "Shift+" + event.key;
    const now = Date.now();
    if (before === "g" && now - beforeAt < 1200) key = "g " + key;
    before = event.key;
    beforeAt = now;
    if (!model.watched.includes(key)) return;
    event.preventDefault();
    // A message each: changes of one property that follow closely are sent as one.
    model.send_msg({ key });
  };
  document.addEventListener("keydown", onKey, true);
  model.on("remove", () => document.removeEventListener("keydown", onKey, true));
  const mark = document.createElement("span");
  mark.hidden = true;
  const tell = () => { mark.dataset.keys = model.is_ready ? "ready" : "waiting"; };
  model.on("is_ready", tell);
  tell();
  return mark;
}
"""


class KeyCapture(JSComponent):
    """Tells which keys are pressed.

    Parameters
    ----------
    watched : list of str
        Keys to tell of; all others are left to the browser.
    is_ready : bool
        Whether keys are told of. Panel loses what a key changes on a page that is still being drawn.
    pressed : dict
        ``key``, and ``n`` that counts up so that the same key twice is two events.
    """

    watched = param.List(default=[], item_type=str)
    is_ready = param.Boolean(default=False)
    pressed = param.Dict(default={})

    _esm = _LISTEN

    def _handle_msg(self, msg: Any) -> None:
        self.pressed = {"key": str(msg["key"]), "n": self.pressed.get("n", 0) + 1}

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **given})
