"""The states that any part of a page can be in besides showing its data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import action_button, html_pane, small_text, stack
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.problems import Problem
from steelyard_workbench.kit.theme import READING_WIDTH, SMALL, TEXT, Status, token

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
