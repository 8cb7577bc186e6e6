"""A text that is read out when it changes, to those who do not see the page."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

# The element stays and only its text changes: screen readers read a change, not a new element.
_REGION = """
export function render({ model }) {
  const region = document.createElement("div");
  region.setAttribute("role", "status");
  region.setAttribute("aria-live", "polite");
  region.style.fontSize = "0.857rem";
  region.style.minHeight = "1.3em";
  const tell = () => { region.textContent = model.text; };
  model.on("text", tell);
  tell();
  return region;
}
"""


class LiveText(JSComponent):
    """A live region of one line.

    Parameters
    ----------
    text : str
        What happened last, such as ``row 12 of 403, deny``.
    """

    text = param.String(default="")

    _esm = _REGION

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (2, 10), **given})
