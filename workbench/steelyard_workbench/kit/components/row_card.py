"""A row to decide on, drawn by one small program: a key changes one model, and only differences are sent.

Buttons and texts of panel-material-ui are a model and a React root each, and a change of an HTML
pane has Bokeh lay the whole page out again, its figures too; together they cost more than the tenth
of a second that a key may take.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, TypedDict

import param
from panel.custom import JSComponent

from steelyard_workbench.kit.look import BUTTON_CSS, with_tokens
from steelyard_workbench.kit.theme import FONT, HEADING, SMALL, TEXT

#: A piece of text and how it stands out: ``""``, ``strong`` or ``mark``.
Run = tuple[str, str]
_STYLE = BUTTON_CSS + with_tokens(f"""
:host {{
  color: var(--ink); font-family: {FONT}; box-sizing: border-box; padding: 16px; border-radius: 8px;
  background: var(--surface); border: 1px solid var(--line);
}}
.line, .context, .asked, dd {{ unicode-bidi: plaintext; }}
.line {{ font-size: {TEXT}; line-height: 1.43; overflow-wrap: anywhere; }}
.context {{
  font-size: {HEADING}; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 20em; overflow: auto; padding: 0.2em 0; margin: 10px 0;
}}
mark {{ background: var(--brass-tint); color: var(--brass); border-radius: 2px; }}
img {{ max-height: 16em; max-width: 100%; margin: 0.3em 0.5em 0 0; }}
.asked {{ font-size: {TEXT}; line-height: 1.5; margin: 12px 0 4px; overflow-wrap: anywhere; }}
.buttons {{ display: flex; flex-wrap: wrap; gap: 8px; margin: 4px 0; }}
.actions {{ margin-top: 16px; }}
details {{ font-size: {TEXT}; margin: 6px 0; }}
summary {{ cursor: pointer; }}
dl {{ margin: 0.3em 0; }}
button {{ font-size: {SMALL}; min-width: 64px; min-height: 28px; padding: 2px 10px; }}
kbd {{
  font: inherit; font-size: 0.75rem; line-height: 1.4; display: inline-block; min-width: 1.4em;
  padding: 0 0.35em; margin-right: 0.5em; text-align: center; border-radius: 3px;
  border: 1px solid currentColor; border-bottom-width: 2px;
}}
@media (hover: none) {{ kbd {{ display: none; }} button {{ min-height: 40px; }} }}
button.chip {{ border-radius: 16px; }}
select {{
  display: none; font: {TEXT}/1.5 {FONT}; width: 100%; min-height: 40px; padding: 0 8px; border-radius: 6px;
  color: var(--ink); background: var(--surface); border: 1px solid var(--line-strong);
}}
@media (max-width: 599px) {{
  .many > .buttons {{ display: none; }}
  .many > select {{ display: block; }}
  [role=group] > .buttons {{ max-height: 136px; overflow: auto; }}
  .context {{ max-height: 9em; }}
  .actions {{
    position: fixed; inset: auto 0 0; z-index: 2; flex-wrap: nowrap; overflow-x: auto; margin: 0;
    padding: 8px 16px; background: var(--surface); border-top: 1px solid var(--line);
  }}
  .actions > button {{ flex: none; }}
}}
""")


class CardButton(TypedDict):
    """A button: its name, its key, its label, whether it is filled or disabled."""

    name: str
    key: str
    label: str
    is_filled: bool
    is_off: bool


class CardQuestion(TypedDict):
    """A question with its outcomes; of a set (``is_set``), all but the last are labels to press."""

    name: str
    is_set: bool
    text: list[Run]
    outcomes: list[CardButton]
    meanings: list[tuple[str, str]]


class Image(TypedDict):
    """An image by its address, with the text that stands for it."""

    address: str
    text: str


class RowCard(JSComponent):
    """A row and its actions; a press is a message: ``{"question", "outcome"}`` or ``{"action"}``."""

    head = param.List(default=[])
    context = param.List(default=[])
    images = param.List(default=[])
    said = param.List(default=[])
    questions = param.List(default=[])
    actions = param.List(default=[])
    disabled = param.Boolean(default=False)

    _esm = Path(__file__).with_suffix(".js")
    _stylesheets: ClassVar[list[str]] = [_STYLE]

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (8, 10), **given})
