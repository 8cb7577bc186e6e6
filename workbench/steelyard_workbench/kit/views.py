"""Plain views: headings, tables, facts, cards and details, and what a part shows while it has no data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard_workbench.kit.basics import Boxed, action_button, html_pane, small_text, stack
from steelyard_workbench.kit.look import CARD_CSS, CELL_CSS, TABLE_CSS, Drawn
from steelyard_workbench.kit.problems import Problem
from steelyard_workbench.kit.theme import (
    HEADING,
    IN_CARD,
    READING_WIDTH,
    SMALL,
    TEXT,
    Status,
    token,
)
from steelyard_workbench.kit.words import escape_markdown, term_of

#: What stands between a text and its details.
_DETAILS = "\n\nDetails: "
_SEVERITY: dict[Status, str] = {
    "good": "success",
    "bad": "error",
    "unsure": "warning",
    "running": "info",
    "off": "info",
}
_QUIET = {
    "& .MuiAccordion-root, &.MuiAccordion-root": {"&&": {"border": 0, "background": "none"}},
    "& .MuiAccordionSummary-root": {"padding": 0, "minHeight": "28px", "width": "fit-content"},
    "& .MuiAccordionSummary-content": {"margin": 0},
    "& .MuiAccordionDetails-root": {"padding": 0},
}
#: Panel-material-ui gives code a light blue of 2.3 to 1 on white.
_PLAIN = (
    "p:first-of-type { margin-top: 0; } p:last-of-type { margin-bottom: 0; } "
    "code { color: inherit !important; }"
)
#: A word of more characters is broken where its column is narrow; others stay whole.
_LONGEST_WORD = 24
_GRID_CSS = """
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 16px; }
.grid .card { padding: 16px; }
.grid .note::first-letter { text-transform: uppercase; }
"""
FRAME = {
    **IN_CARD,
    "border": f"1px solid {token('line')}",
    "border-radius": "8px",
    "background": token("surface"),
    "padding": "14px",
    "box-sizing": "border-box",
}


def loading(n_lines: int = 4, label: str = "Loading", shape: str = "") -> Viewable:
    """Show a placeholder of coming content: lines, or blocks of the shape of a ``skeleton``."""
    # One part for all lines: each component of React costs a browser milliseconds.
    return html_pane(skeleton(shape or "28 " * n_lines), name=label, margin=(5, 10))


def skeleton(shape: str, colour: str = token("line")) -> str:
    """Return blocks of a shape as HTML: of each row the height, and how many stand beside each other.

    >>> skeleton("28 120*4", "grey").count('class="skeleton"')
    5
    """
    rows = ""
    for row in shape.split():
        height, _, n_blocks = row.partition("*")
        block = (
            f'<div class="skeleton" style="height: {height}px; border-radius: 8px; '
            f'background: {colour}"></div>'
        )
        rows += (
            '<div style="display: grid; gap: 12px 16px; margin-bottom: 12px; '
            f'grid-template-columns: repeat(auto-fit, minmax(min(100%, 150px), 1fr))">'
            f"{block * int(n_blocks or 1)}</div>"
        )
    return rows


def empty(text: str, *actions: Viewable, is_good: bool = False) -> Viewable:
    """Show an empty place: in Markdown its purpose, or what left nothing, and one thing to do about it."""
    if actions:
        return stack(empty(text, is_good=is_good), pn.FlexBox(*actions))
    text, _, details = text.partition(_DETAILS)
    if details:
        body = re.sub("`([^`]+)`", r"<code>\1</code>", escape(details))
        drawn = f'<details style="font-size:{SMALL}"><summary>Details</summary>{body}</details>'
        return stack(empty(text), pn.pane.HTML(drawn, margin=(0, 10)))
    if is_good:
        return _alert(text, "success")
    # Without an icon it is plain text: no React root for it.
    return pn.pane.Markdown(
        text,
        margin=(5, 10),
        styles={"max-width": READING_WIDTH, "font-size": TEXT},
        stylesheets=[_PLAIN],
        sizing_mode="stretch_width",
    )


def _alert(text: str, severity: str) -> pmui.Alert:
    return pmui.Alert(
        object=text,
        severity=severity,
        variant="outlined",
        closeable=False,
        margin=(5, 10),
        sizing_mode="stretch_width",
    )


def with_details(text: str, details: str) -> str:
    """Return a text for ``empty`` under whose *Details* is the command for the operator."""
    return f"{text}{_DETAILS}{details}"


def failed(
    problem: Problem, retry: Callable[[Any], Any] | None = None, refused: str = ""
) -> Viewable:
    """Show a failure: the problem in a sentence, a way to try again, and the rest behind *Details*.

    A missing permission is named, and there is no second try: the button of the label ``refused`` is
    disabled then, with the reason beside it.
    """
    if not problem.code:
        return verdict("bad", problem.message)
    title = "Not allowed." if problem.is_forbidden else problem.title
    lines = [f"**{escape_markdown(title)}** {escape_markdown(problem.message)}"]
    if problem.details:
        lines.append("\n".join(f"- {escape_markdown(detail)}" for detail in problem.details))
    views = [_alert("\n\n".join(lines), "warning" if problem.is_forbidden else "error")]
    if retry is not None and not problem.is_forbidden:
        views.append(action_button("Try again", retry))
    code = f"Code `{problem.code}`"
    if problem.request_id:
        code += f", request `{problem.request_id}`"
    views.append(
        pmui.Accordion(
            ("Details", small_text(code)),
            title_variant="caption",
            disable_gutters=True,
            margin=(0, 10),
            sx=_QUIET,
            sizing_mode="stretch_width",
        )
    )
    if refused and problem.is_forbidden:
        views.append(refused_button(refused, [problem.message]))
    return stack(*views)


def verdict(status: Status, word: str, text: str = "") -> Viewable:
    """Show a verdict by an icon, a ``word``, which may be empty, and a colour; ``text`` is Markdown."""
    worded = f"**{escape_markdown(word)}** {text}".strip() if word else text
    return _alert(worded, _SEVERITY[status])


def refused_button(label: str, reasons: Sequence[str]) -> Viewable:
    """Show an action that cannot be done now, and why under it: each reason becomes a sentence."""
    return pn.Column(
        pmui.Button(label=label, disabled=True, variant="outlined"),
        small_text(" ".join(map(as_sentence, reasons)), margin=(0, 10)),
        styles={"max-width": "360px"},
    )


def as_sentence(text: str) -> str:
    """Return a text with a capital at its start and a full stop at its end.

    >>> as_sentence("its dataset was deleted")
    'Its dataset was deleted.'
    >>> as_sentence("Switch it off first.")
    'Switch it off first.'
    """
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def heading(text: str, level: int = 2) -> Viewable:
    """Return a heading under that of the page; its text is escaped."""
    size = HEADING if level == 2 else TEXT
    # Plain HTML: a React root for each costs a browser milliseconds.
    return html_pane(
        f'<h{level} style="font-size:{size};font-weight:700;line-height:1.25;'
        f'margin:0.8em 0 0">{escape(text)}</h{level}>',
        margin=(5, 10),
    )


def unseen_heading(text: str) -> Viewable:
    """Return a heading for screen readers, over parts that need none for the eye."""
    style = "position:absolute;clip-path:inset(50%);height:1px;overflow:hidden;margin:0"
    return pn.pane.HTML(f'<h2 style="{style}">{escape(text)}</h2>', margin=0, height=0)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    label: str,
    numbers: Sequence[int] = (),
) -> Viewable:
    """Return a table of texts, every one escaped; of ``Drawn`` cells behind the first too."""
    head = "".join(
        f'<th scope="col"{_class(i in numbers)}>{_word(name)}</th>'
        for i, name in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{escape(name)}"{_class(i in numbers, cell)}>{_word(cell) if i == 0 else _cell(cell)}</td>'
            for i, (name, cell) in enumerate(zip(columns, row, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return html_pane(
        f'<table class="cards" aria-label="{escape(label)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>",
        CELL_CSS if any(isinstance(cell, Drawn) for row in rows for cell in row) else "",
        TABLE_CSS,
    )


def _cell(text: str) -> str:
    return text if isinstance(text, Drawn) else escape(text)


def facts(values: Mapping[str, str], terms: Mapping[str, str] | None = None) -> Viewable:
    """Return names with their values, all escaped; ``terms`` are shown where a pointer rests on one."""
    titles = terms or {}
    rows = "".join(
        f'<tr><th scope="row" style="width:18em">{_word(name, titles.get(name, ""))}</th>'
        f'<td class="long">{escape(value)}</td></tr>'
        for name, value in values.items()
    )
    return html_pane(f"<table><tbody>{rows}</tbody></table>", TABLE_CSS)


def _word(text: str, term: str = "") -> str:
    """Return a text escaped, with the exact term for it where there is one."""
    term = term or term_of(text)
    return f'<abbr title="{escape(term)}">{escape(text)}</abbr>' if term else escape(text)


def _class(is_number: bool, text: str = "") -> str:
    longest = max(map(len, text.split()), default=0)
    names = [*(["number"] if is_number else []), *(["long"] if longest > _LONGEST_WORD else [])]
    return f' class="{" ".join(names)}"' if names else ""


def cards(figures: Sequence[tuple[str, str, str]]) -> Viewable:
    """Return cards beside each other: of each the name, the value and a note."""
    drawn = "".join(
        f'<div class="card"><div class="note" title="{escape(term_of(name))}">{escape(name)}</div>'
        f'<div class="figure">{escape(value)}</div><div class="note">{escape(note)}</div></div>'
        for name, value, note in figures
    )
    return html_pane(f'<div class="grid">{drawn}</div>', CARD_CSS, _GRID_CSS, margin=(5, 10))


def card(*parts: Viewable) -> Viewable:
    """Return parts under each other in a frame of their own."""
    return stack(*parts, margin=(6, 10), styles=FRAME)


def behind_button(label: str, form: Viewable | Viewer) -> list[Viewable]:
    """Return a button, and a form that it shows and hides: on a page that begins with its result."""
    box = stack(form, visible=False)
    button = action_button(
        label, lambda _: box.param.update(visible=not box.visible), variant="contained"
    )
    return [button, box]


class Details(Boxed):
    """A card of one line, a ``hint`` of its contents; ``draw`` makes them when it is opened first."""

    def __init__(
        self,
        draw: Callable[[], Sequence[Viewable]],
        hint: str = "",
        *,
        is_open: bool = False,
        on_open: Callable[[bool], None] | None = None,
    ) -> None:
        super().__init__()
        self._draw, self._on_open = draw, on_open
        self._place = stack()
        self._box = pmui.Accordion(
            (f"Details: {hint}" if hint else "Details", self._place),
            title_variant="body1",
            disable_gutters=True,
            margin=(12, 10),
            sizing_mode="stretch_width",
        )
        pn.bind(self._on_active, self._box.param.active, watch=True)
        if is_open:
            self.open()

    def open(self) -> None:
        """Show its parts."""
        self._box.active = [0]

    def _on_active(self, active: list[int]) -> None:
        if active and not self._place.objects:
            self._place[:] = list(self._draw())
        if self._on_open is not None:
            self._on_open(bool(active))
