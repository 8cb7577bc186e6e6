"""How answers show themselves in a notebook: static HTML, every text in it escaped.

Names of decisions, outcomes and actions come from whoever wrote the request, so none is trusted.
The context is in no answer and so is never shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import msgspec
from msgspec import UNSET

from steelyard.wire.datasets import Dataset, Example, RowPage
from steelyard.wire.decide import DecideResponse, DecisionResult
from steelyard.wire.lint import LintWarning

#: A table shows this many outcomes of a decision, the likeliest.
SHOWN_OUTCOMES = 12

#: A table of rows shows this many characters of a context.
SHOWN_CHARACTERS = 300

_TABLE = "border-collapse:collapse;margin:0 0 0.8em"
_CAPTION = "caption-side:top;text-align:left;font-weight:600;padding:0.2em 0"
_CELL = "text-align:left;padding:0.1em 0.6em;vertical-align:middle"
_NUMBER = "text-align:right;padding:0.1em 0.6em;font-variant-numeric:tabular-nums"
_TRACK = "width:10em;height:0.7em;background:rgba(128,128,128,0.2)"
_BAR = "height:100%;background:#2f6f9f"


def decide_html(answer: DecideResponse) -> str:
    """Give an answer as HTML: a table with bars per decision, its action, and what it used."""
    parts = [_decision_html(name, result) for name, result in answer.decisions.items()]
    facts = [answer.model, f"{answer.usage.input_tokens:,} input tokens"]
    if "total" in answer.timing_ms:
        facts.append(f"{answer.timing_ms['total']:.1f} ms")
    if answer.fallback is not None:
        facts.append(f"instead of {answer.fallback.from_} ({answer.fallback.reason})")
    return f"<div>{''.join(parts)}<p>{escape(', '.join(facts))}</p></div>"


def lint_html(warnings: Sequence[LintWarning]) -> str:
    """Give findings as HTML: a table with a row per finding."""
    if not warnings:
        return "<p>Nothing found.</p>"
    columns = ("decision", "rule", "severity", "message")
    return _table_html(
        "Findings",
        columns,
        (
            "".join(_cell(str(getattr(warning, column))) for column in columns)
            for warning in warnings
        ),
    )


def dataset_html(datasets: Sequence[Dataset]) -> str:
    """Give datasets as HTML: a table with a row per dataset."""
    columns = ("name", "id", "version", "rows", "training", "evaluation", "method")
    return _table_html(
        "Datasets",
        columns,
        (
            _cell(dataset.name)
            + _cell(dataset.id)
            + "".join(
                f'<td style="{_NUMBER}">{number:,}</td>'
                for number in (
                    dataset.version,
                    dataset.rows,
                    dataset.split.training,
                    dataset.split.evaluation,
                )
            )
            + _cell(dataset.method)
            for dataset in datasets
        ),
    )


def rows_html(page: RowPage) -> str:
    """Give a page of rows as HTML: a table with a row per row, long contexts cut."""
    last = page.offset + len(page.data)
    caption = f"Rows {page.offset + 1:,} to {last:,} of {page.total:,}, version {page.version}"
    return _table_html(
        caption if page.data else f"No rows of {page.total:,}, version {page.version}",
        ("context", "labels"),
        (_cell(_shortened(row.context)) + _cell(_labels_text(row)) for row in page.data),
    )


def _shortened(context: object) -> str:
    text = context if isinstance(context, str) else msgspec.json.encode(context).decode()
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _labels_text(row: Example) -> str:
    labels = row.targets if isinstance(row.targets, dict) else row.rewards
    if not isinstance(labels, dict):
        return ""
    tops = {name: max(values, key=values.__getitem__) for name, values in labels.items() if values}
    return ", ".join(f"{name}: {outcome}" for name, outcome in tops.items())


def table_html(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    bars: Sequence[float] | None = None,
) -> str:
    """Give texts as an HTML table, every one escaped.

    Parameters
    ----------
    caption : str
        What stands above it.
    columns : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        As many texts as there are columns.
    bars : sequence of float, optional
        One a row, 0 to 1: a bar after its texts.
    """
    cells = ["".join(map(_cell, row)) for row in rows]
    if bars is None:
        return _table_html(caption, columns, cells)
    drawn = [
        f'{row}<td style="{_CELL}"><div style="{_TRACK}"><div style="{_BAR};'
        f'width:{min(max(0.0, bar), 1.0) * 100:.1f}%"></div></div></td>'
        for row, bar in zip(cells, bars, strict=True)
    ]
    return _table_html(caption, (*columns, ""), drawn)


def _decision_html(name: str, result: DecisionResult) -> str:
    probabilities = result.probabilities
    ranked = sorted(probabilities, key=probabilities.__getitem__, reverse=True)
    shown = set(ranked[:SHOWN_OUTCOMES])
    table = _table_html(
        f"{name} ({result.kind})",
        ("outcome", "probability", ""),
        (
            _outcome_cells(outcome, probability, is_top=outcome == result.top)
            for outcome, probability in probabilities.items()
            if outcome in shown
        ),
    )
    facts = [f"action: {result.action}"]
    if result.expected_level is not UNSET:
        facts.append(f"expected level: {result.expected_level:.3f}")
    if len(shown) < len(probabilities):
        facts.append(f"{len(probabilities) - len(shown)} less likely outcomes not shown")
    return f"{table}<p>{escape('; '.join(facts))}</p>"


def _outcome_cells(outcome: str, probability: float, *, is_top: bool) -> str:
    name = f"<b>{escape(outcome)}</b>" if is_top else escape(outcome)
    width = min(max(0.0, probability), 1.0) * 100
    return (
        f'<th scope="row" style="{_CELL};font-weight:inherit">{name}</th>'
        f'<td style="{_NUMBER}">{probability:.4f}</td>'
        f'<td style="{_CELL}"><div style="{_TRACK}">'
        f'<div style="{_BAR};width:{width:.1f}%"></div></div></td>'
    )


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{escape(text)}</td>'


def _table_html(caption: str, columns: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
