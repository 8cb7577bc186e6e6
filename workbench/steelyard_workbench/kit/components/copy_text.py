"""Texts to copy: shown as they are, with a button that puts one on the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent

from steelyard_workbench.kit.theme import FOCUS, SMALL, TEXT

_STYLE = f"""
:host {{
  color: var(--mui-palette-text-primary); font-family: Roboto, Helvetica, Arial, sans-serif;
}}
pre {{
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 8px; padding: 0.6em; font-size: {SMALL};
  border: 1px solid rgba(128, 128, 128, 0.5); border-radius: 4px; max-height: 18em; overflow: auto;
}}
[role=tablist] {{ display: flex; flex-wrap: wrap; gap: 4px; margin-bottom: 8px; }}
button {{
  font: inherit; font-size: {SMALL}; font-weight: 500; line-height: 1.75; padding: 3px 9px;
  border-radius: 4px; color: var(--mui-palette-primary-main); background: transparent;
  border: 1px solid var(--mui-palette-primary-main); cursor: pointer;
}}
[role=tab] {{
  font-size: {TEXT}; color: inherit; border: 0; border-radius: 0; padding: 6px 12px;
  border-bottom: 2px solid transparent;
}}
[role=tab][aria-selected=true] {{
  color: var(--mui-palette-primary-main); border-color: var(--mui-palette-primary-main);
}}
:focus-visible {{ outline: 3px solid {FOCUS}; outline-offset: -3px; }}
"""


class CopyText(JSComponent):
    """A text to copy, or several of which one is shown at a time, by their names.

    Buttons, tabs and boxes of panel-material-ui would be a React root each.
    """

    texts = param.Dict(default={})
    chosen = param.String(default="")

    _esm = Path(__file__).with_suffix(".js")
    _stylesheets = [_STYLE]  # noqa: RUF012  Panel reads it from the class

    def __init__(self, text: str = "", label: str = "", **given: Any) -> None:
        if label:
            given["texts"] = {label: text}
        self.text = text
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (5, 10), **given})
