"""Things to open, each with a text and a button: all of a list drawn by one small program.

Buttons and texts of panel-material-ui are a model and a React root each, and a page has dozens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import param
from panel.custom import JSComponent

from steelyard_workbench.kit.look import BUTTON_CSS, CELL_CSS, with_tokens
from steelyard_workbench.kit.theme import FONT, HEADING, READING_WIDTH, SMALL, TEXT

#: JavaScript for the ``_esm`` of a component: ``linkOrButton(text, address, open)`` makes either.
LINK_OR_BUTTON = Path(__file__).with_name("link_or_button.js").read_text(encoding="utf-8")
_STYLE = (
    BUTTON_CSS
    + CELL_CSS
    + with_tokens(f"""
:host {{ color: var(--ink); font: {TEXT}/1.5 {FONT}; }}
h2, h3 {{ font-size: {HEADING}; font-weight: 700; margin: 0.8em 0 0.3em; }}
h3 {{ font-size: {TEXT}; }}
p {{ margin: 0 0 8px; max-width: {READING_WIDTH}; overflow-wrap: anywhere; }}
.cards {{ display: flex; flex-wrap: wrap; gap: 16px; }}
.row {{ display: flex; flex-wrap: wrap; gap: 8px; padding: 4px 0; }}
.row > div {{ max-width: 360px; }}
.row p {{ margin: 4px 0 0; }}
button i {{
  display: inline-block; width: 12px; height: 12px; border-radius: 6px; margin-right: 8px; filter: var(--marks);
}}
.small button {{ font-size: {SMALL}; min-height: 28px; padding: 0 10px; }}
.cards > div {{
  box-sizing: border-box; width: 320px; max-width: 100%; padding: 4px 16px 16px; border-radius: 8px;
  background: var(--surface); border: 1px solid var(--line);
}}
.cards.small {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); }}
.cards.small > div {{ width: auto; display: flex; flex-direction: column; align-items: flex-start; gap: 6px; }}
.cards.small p {{ margin: 0; flex: 1; font-size: {SMALL}; color: var(--muted); white-space: pre-line; }}
.steps {{
  display: flex; flex-wrap: wrap; gap: 16px; padding: 20px; border-radius: 8px; margin-top: 8px;
  background: var(--surface); border: 1px solid var(--line);
}}
.steps > div {{ flex: 1 1 130px; border-top: 4px solid var(--line); }}
.steps > .done {{ border-color: var(--good); }}
.steps > .now {{ border-color: var(--accent); }}
.steps h2, .steps h3 {{ font-size: {TEXT}; margin: 8px 0 2px; }}
.steps p {{ font-size: {SMALL}; color: var(--muted); }}
@media (max-width: 599px) {{ .steps > div {{ flex-basis: 100%; }} .steps > :not(.now) p {{ display: none; }} }}
""")
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to open."""

    #: What the button says; a choice without one is a text alone.
    label: str = ""
    #: What a press does; a choice that has nothing to do cannot be pressed.
    do: Callable[[], Any] | None = None
    #: Above the button, and beside it; with ``look="word"``, and in a row, the text stands below.
    title: str = ""
    text: str = ""
    look: Literal["word", "outlined", "filled", "danger", "text"] = "word"
    #: Shown where a pointer rests on the button.
    hint: str = ""
    #: A short statement between the text and the button.
    pill: str = ""
    #: Of the group that a press selects, before the label.
    colour: str = ""
    #: The address of the page that it opens: it is a link then.
    link: str = ""
    #: Of a step.
    state: Literal["", "done", "now", "later"] = ""


_DRAWN = tuple(field.name for field in fields(Choice) if field.name != "do")


class Choices(JSComponent):
    """Choices under a ``title``: under each other, as cards beside each other, or as a row of buttons."""

    title = param.String(default="")
    level = param.Integer(default=3)
    lines = param.List(default=[])
    layout = param.Selector(default="list", objects=["list", "cards", "row", "steps"])
    is_small = param.Boolean(default=False)
    disabled = param.Boolean(default=False)

    _esm = LINK_OR_BUTTON + Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    _stylesheets = [_STYLE]  # noqa: RUF012  Panel reads it from the class

    def __init__(self, choices: Sequence[Choice], **options: Any) -> None:
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (0, 10), **options})
        self.offer(choices)

    def offer(self, choices: Sequence[Choice]) -> None:
        """Offer choices in the place of those before."""
        self.choices = list(choices)
        self.lines = [
            {name: getattr(choice, name) for name in _DRAWN} | {"is_off": choice.do is None}
            for choice in choices
        ]

    def _handle_msg(self, msg: Any) -> None:
        self.press(int(msg["press"]))

    def press(self, place: int) -> None:
        """Run the action of a choice."""
        if not self.disabled and 0 <= place < len(self.choices) and (do := self.choices[place].do):
            do()
