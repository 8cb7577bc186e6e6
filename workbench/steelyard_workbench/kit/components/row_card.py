"""A row to decide on, drawn by one small program: a key changes one model, and only what differs.

Buttons and texts of panel-material-ui are a model and a React root each, and a change of an HTML
pane has Bokeh lay the whole page out again, its figures too; together they cost more than the tenth
of a second that a key may take.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, TypedDict

import param
from panel.custom import JSComponent

#: A piece of text and how it stands out: ``""``, ``strong`` or ``mark``.
Run = tuple[str, str]


class Choice(TypedDict):
    """A button: the name that it tells of, its key, what it says, whether it is filled or disabled."""

    name: str
    key: str
    label: str
    is_filled: bool
    is_off: bool


class CardQuestion(TypedDict):
    """A question with its outcomes; ``meanings`` are names and what each means.

    Of a set of labels (``is_set``) each outcome but the last is a label that is pressed or not.
    """

    name: str
    is_set: bool
    text: list[Run]
    outcomes: list[Choice]
    meanings: list[tuple[str, str]]


class Image(TypedDict):
    """An image by its address, with the text that stands for it."""

    address: str
    text: str


_STYLE = """
:host { color: var(--mui-palette-text-primary); font-family: Roboto, Helvetica, Arial, sans-serif; }
.line { font-size: 1rem; line-height: 1.43; overflow-wrap: anywhere; }
.context {
  font-size: 1.214rem; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 20em; overflow: auto; padding: 0.2em 0; margin: 10px 0;
}
mark { background: #e6c84f; color: #000; border-radius: 2px; }
img { max-height: 16em; max-width: 100%; margin: 0.3em 0.5em 0 0; }
.asked { font-size: 1rem; line-height: 1.5; margin: 12px 0 4px; overflow-wrap: anywhere; }
.buttons { display: flex; flex-wrap: wrap; gap: 8px; margin: 4px 0; }
.actions { margin-top: 16px; }
details { font-size: 1rem; margin: 6px 0; }
summary { cursor: pointer; }
dl { margin: 0.3em 0; }
button {
  font: inherit; font-size: 0.857rem; font-weight: 500; line-height: 1.75; letter-spacing: 0.02em;
  min-width: 64px; padding: 4px 10px; border-radius: 4px; cursor: pointer; overflow-wrap: anywhere;
  color: var(--mui-palette-primary-main); background: transparent;
  border: 1px solid var(--mui-palette-primary-main);
}
kbd {
  font: inherit; font-size: 0.75rem; line-height: 1.4; display: inline-block; min-width: 1.4em;
  padding: 0 0.35em; margin-right: 0.5em; text-align: center; border-radius: 3px;
  border: 1px solid currentColor; border-bottom-width: 2px;
}
@media (hover: none) { kbd { display: none; } }
button:hover { background: var(--mui-palette-action-hover); }
button.filled {
  color: var(--mui-palette-primary-contrastText); background: var(--mui-palette-primary-main);
}
button.chip { border-radius: 16px; }
button.filled:hover { text-decoration: underline; }
button:disabled, button:disabled:hover {
  color: var(--mui-palette-text-disabled); background: transparent; cursor: default;
  border-color: var(--mui-palette-action-disabledBackground); text-decoration: none;
}
button.filled:disabled { background: var(--mui-palette-action-disabledBackground); }
button:focus-visible, summary:focus-visible, .context:focus-visible {
  outline: 3px solid var(--mui-palette-text-primary); outline-offset: 2px;
}
"""


class RowCard(JSComponent):
    """A row, its questions, and what can be done with it.

    A press comes as a message to ``on_msg``: ``{"question", "outcome"}`` or ``{"action"}``, by name.
    """

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
