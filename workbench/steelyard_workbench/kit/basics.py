"""Building blocks of parts: parts with a box, stacks of views, notes, and buttons with an action."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

#: How much a text field takes, where the server is to say that a text is too long: fields of
#: panel-material-ui cut a text at 5,000 characters by default, without a word.
ANY_LENGTH = 10**9


class Boxed(Viewer):
    """A part that is drawn as its ``_box``, which may be a part too."""

    _box: Any

    def __panel__(self) -> Viewable:
        return pn.panel(self._box)


def stack(*views: Any, **options: Any) -> pn.Column:
    """Return views under each other, as wide as their place."""
    return pn.Column(*views, sizing_mode="stretch_width", **options)


def filter_fields(first: Viewable, *others: Viewable, is_open: bool = False) -> pn.FlexBox:
    """Return the fields of a filter in a row; on a phone the first, and the others after a press."""
    # Its parts stand in the row itself.
    rest = pn.FlexBox(*others, gap="8px", styles={"display": "contents"})

    def turn(_: object = None) -> None:
        rest.css_classes = [] if rest.css_classes else ["closed-on-phone"]

    if not is_open:
        turn()
    button = action_button("Filters", turn, css_classes=["only-on-phone"])
    return pn.FlexBox(first, button, rest, gap="8px", align_items="center")


def drawn_by(field: Any, draw: Callable[[Any], Sequence[Viewable]]) -> list[Viewable]:
    """Return a field, and what is drawn for its value, which is drawn again when that changes."""
    place = stack(*draw(field.value))

    def draw_again(value: Any) -> None:
        place[:] = draw(value)

    pn.bind(draw_again, field, watch=True)
    return [field, place]


def html_pane(html: str, *stylesheets: str, **options: Any) -> pn.pane.HTML:
    """Return HTML as wide as its place, with style sheets of its own."""
    return pn.pane.HTML(html, stylesheets=list(stylesheets), sizing_mode="stretch_width", **options)


def bullets(sentences: Iterable[str], **options: Any) -> pn.pane.HTML:
    """Return sentences as a list; they are escaped."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return html_pane(f"<ul>{items}</ul>", **options)


def small_text(text: str, **options: Any) -> pmui.Typography:
    """Return a sentence in the size of notes; it is Markdown."""
    return pmui.Typography(text, variant="body2", **options)


def action_button(
    label: str, act: Callable[..., object], *, variant: str = "outlined", **options: Any
) -> pmui.Button:
    """Return a button; ``act`` is called with each press."""
    button = pmui.Button(label=label, variant=variant, **options)
    button.on_click(act)
    return button
