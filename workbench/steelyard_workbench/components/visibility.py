"""Whether anybody can see the page: a browser's tab that is behind another is hidden."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

_WATCH = """
export function render({ model }) {
  const tell = () => { model.is_hidden = document.hidden; };
  document.addEventListener("visibilitychange", tell);
  model.on("remove", () => document.removeEventListener("visibilitychange", tell));
  tell();
  const mark = document.createElement("span");
  mark.hidden = true;
  return mark;
}
"""


class Visibility(JSComponent):
    """Tells whether the tab is hidden.

    Parameters
    ----------
    is_hidden : bool
        As the browser says; False until it does.
    """

    is_hidden = param.Boolean(default=False)

    _esm = _WATCH

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **given})
