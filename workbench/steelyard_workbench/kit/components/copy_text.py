"""Texts to copy: shown as they are, with a button that puts one on the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent

from steelyard_workbench.kit.look import BUTTON_CSS, with_tokens
from steelyard_workbench.kit.theme import FONT, SMALL

_STYLE = BUTTON_CSS + with_tokens(f"""
:host {{ color: var(--ink); font-family: {FONT}; }}
pre {{
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 8px; padding: 12px; font-size: {SMALL};
  background: var(--sunk); border: 1px solid var(--line); border-radius: 6px; max-height: 18em; overflow: auto;
}}
[role=tablist] {{ display: flex; flex-wrap: wrap; gap: 4px; margin-bottom: 8px; }}
[role=tab] {{
  color: inherit; background: none; border: 0; border-radius: 0; border-bottom: 2px solid transparent;
}}
[role=tab][aria-selected=true] {{ color: var(--accent); border-color: currentColor; }}
""")


class CopyText(JSComponent):
    """A text to copy, or several of which one is shown at a time, by their names.

    Buttons, tabs and boxes of panel-material-ui would be a React root each.
    """

    texts = param.Dict(default={})
    chosen = param.String(default="")

    _esm = Path(__file__).with_suffix(".js")
    _stylesheets = [_STYLE]  # noqa: RUF012  Panel reads it from the class

    def __init__(self, text: str = "", label: str = "", **options: Any) -> None:
        if label:
            options["texts"] = {label: text}
        self.text = text
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (5, 10), **options})
