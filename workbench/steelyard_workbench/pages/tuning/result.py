"""The result of a prompt-tuning job: the verdict, its numbers, and the wording."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from bokeh.models import ColumnDataSource
from panel.viewable import Viewable

from steelyard.prompt_tuning.wire import PartChange, TuningResult, TuningTest
from steelyard_workbench.kit.basics import html_pane, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.theme import BLUE, Status
from steelyard_workbench.kit.views import Details, heading, table, verdict
from steelyard_workbench.kit.words import changed_words, escape_markdown

_WORDS: dict[str, tuple[Status, str]] = {
    "improved": ("good", "Improved."),
    "inconclusive": ("unsure", "Not proven."),
    "no_improvement": ("off", "No improvement."),
}
#: So many parts between commas, of so few words each, are keywords.
_KEYWORDS, _KEYWORD_WORDS = 5, 2
_CELL = "text-align:left;vertical-align:top;padding:0.35em 0.8em 0.35em 0"


def show_result(result: TuningResult) -> Viewable:
    """Show a result, the verdict first."""
    status, word = _WORDS[result.verdict]
    text = escape_markdown(verdict_text(result))
    views: list[Viewable] = [verdict(status, word, text)]
    keywords = keyword_parts(result)
    if keywords:
        warning = (
            f"{', '.join(map(escape_markdown, keywords))}: a person would not write this, and on other "
            "rows it may help less. Reword it before you use it."
        )
        views.append(verdict("unsure", "A list of keywords.", warning))
    if result.changes:
        views += [heading("Wording before and after"), show_changes(result.changes)]
    if result.test is not None and result.candidate is not None:
        views += [heading("Rows of each answer that are right"), _recall(result.test)]
    if result.tuned is not None:
        text = json.dumps(result.tuned, indent=1, ensure_ascii=False)
        views += [heading("The decision to use"), CopyText(text, "tuned decision")]
    exact = _exact(result)
    if exact:
        views.append(Details(lambda: exact, "loss, with its interval and round by round"))
    return stack(*views)


def keyword_parts(result: TuningResult) -> list[str]:
    """Return which parts of a tuned wording are lists of keywords."""
    return [change.part for change in result.changes if is_keyword_list(change.after)]


def is_keyword_list(text: str) -> bool:
    """Whether a wording is a list of keywords, which a person would not write.

    >>> is_keyword_list("refund, charge, invoice, card, bank, money")
    True
    >>> is_keyword_list("Charges, invoices and refunds")
    False
    >>> is_keyword_list("Which team should own this ticket, given what the writer asks for?")
    False
    """
    parts = [part.split() for part in text.replace(";", ",").split(",")]
    return len(parts) >= _KEYWORDS and all(len(part) <= _KEYWORD_WORDS for part in parts)


def verdict_text(result: TuningResult) -> str:
    """Return in one sentence the result of the test, and why a gain is not proven."""
    test = result.test
    if test is None or result.candidate is None:
        return " ".join(result.reasons) or "The search found no better wording."
    sentence = (
        f"Of {test.rows:,} rows for the check {test.original_accuracy:.1%} were right before, "
        f"{test.tuned_accuracy:.1%} after."
    )
    return " ".join([sentence, *result.reasons])


def _exact(result: TuningResult) -> list[Viewable]:
    """Return what the verdict was found by: the loss."""
    test, views = result.test, []
    if test is not None and result.candidate is not None:
        text = (
            f"On {test.rows:,} rows for the check the loss went from {test.original_loss:.3f} to "
            f"{test.tuned_loss:.3f}: a gain of {test.gain:+.3f} (95 % interval {test.gain_low:+.3f} to "
            f"{test.gain_high:+.3f}; chance alone makes {result.noise_band:.3f})."
        )
        views.append(small_text(text))
    return [*views, _rounds(result)] if len(result.rounds) > 1 else views


def _rounds(result: TuningResult) -> Viewable:
    chart = figures.plot(
        "Best loss after each round, on validation rows", "round", "loss", height=220
    )
    source = ColumnDataSource(
        {
            "round": [round_.round for round_ in result.rounds],
            "loss": [round_.best_loss for round_ in result.rounds],
        }
    )
    chart.xaxis.ticker = [round_.round for round_ in result.rounds]
    chart.line(x="round", y="loss", source=source, color=BLUE, line_width=2)
    chart.scatter(x="round", y="loss", source=source, color=BLUE, size=7)
    chart.hover.tooltips = [("round", "@round"), ("loss", "@loss{0.0000}")]
    return figures.show(chart)


def _recall(test: TuningTest) -> Viewable:
    rows = [
        (name, f"{recall.rows:,}", _share(recall.original), _share(recall.tuned))
        for name, recall in test.recall.items()
    ]
    return table(
        ("answer", "rows", "before", "after"),
        rows,
        label="Rows of each answer that are right",
        numbers=(1, 2, 3),
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def show_changes(changes: Sequence[PartChange]) -> Viewable:
    """Show the changed parts of a wording, as one text each with removed and new words."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};width:14em">{escape(_part_name(change.part))}</th>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{changed_words(change.before, change.after)}</td></tr>'
        for change in changes
    )
    return html_pane(
        f'<table aria-label="Wording before and after" style="width:100%"><tbody>{rows}</tbody></table>'
    )


def _part_name(part: str) -> str:
    kind, _, name = part.partition(":")
    return f"{kind} {name}" if name else kind
