"""How answers show themselves in a notebook: static HTML, every text in it escaped.

Names of decisions, outcomes and actions come from the request, so none is trusted.
The context is in no answer and so is never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import msgspec
from msgspec import UNSET

from steelyard.client.answers import expected_of, labels_of
from steelyard.datasets.from_feedback_wire import DatasetFromFeedback
from steelyard.datasets.wire import Dataset, DatasetPage, RowPage
from steelyard.decisions.lint.wire import LintResponse
from steelyard.decisions.wire import DecideResponse, DecisionResult
from steelyard.wire.shown import to_frame, to_html

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


@to_html.register
def _(answer: DecideResponse) -> str:
    parts = [_decision_html(name, result) for name, result in answer.decisions.items()]
    facts = [answer.model, f"{answer.usage.input_tokens:,} input tokens"]
    if answer.rule is not UNSET:
        facts.insert(0, f"{answer.rule.action}: {answer.rule.why}")
    if "total" in answer.timing_ms:
        facts.append(f"{answer.timing_ms['total']:.1f} ms")
    if answer.fallback is not None:
        facts.append(f"instead of {answer.fallback.from_} ({answer.fallback.reason})")
    return f"<div>{''.join(parts)}<p>{escape(', '.join(facts))}</p></div>"


@to_html.register
def _(response: LintResponse) -> str:
    if not response.warnings:
        return "<p>Nothing found.</p>"
    columns = ("decision", "rule", "severity", "message")
    rows = [
        tuple(str(getattr(warning, column)) for column in columns) for warning in response.warnings
    ]
    return table_html("Findings", columns, rows)


@to_html.register
def _(dataset: Dataset) -> str:
    return _datasets_html([dataset])


@to_html.register
def _(page: DatasetPage) -> str:
    return _datasets_html(page.data)


@to_html.register
def _(dataset: DatasetFromFeedback) -> str:
    counts = msgspec.structs.asdict(dataset.feedback)
    rows = [(name.replace("_", " "), f"{count:,}") for name, count in counts.items()]
    became = table_html("Stored decisions", ("", "decisions"), rows)
    return f"<div>{_datasets_html([dataset])}{became}</div>"


@to_html.register
def _(page: RowPage) -> str:
    last = page.offset + len(page.data)
    caption = f"Rows {page.offset + 1:,} to {last:,} of {page.total:,}, version {page.version}"
    rows = []
    for row in page.data:
        tops = {name: expected_of(row, name) for name in labels_of(row)}
        labels = ", ".join(f"{name}: {top}" for name, top in tops.items() if top is not None)
        rows.append((cut_context(row.context), labels))
    return table_html(
        caption if rows else f"No rows of {page.total:,}, version {page.version}",
        ("context", "labels"),
        rows,
    )


@to_frame.register
def _(page: RowPage) -> Any:
    """Return the rows: context, decisions and, by decision id, the outcome that is expected most.

    ``context`` is the text, or the JSON of another context; an outcome is null where there is no
    label. A decision that is called like one of the others has ``label:`` before its id.
    """
    import polars as pl  # noqa: PLC0415  a client without frames needs none

    decision_ids = dict.fromkeys(name for row in page.data for name in labels_of(row))
    columns: dict[str, list[Any]] = {
        "context": [_text(row.context) for row in page.data],
        "decisions": [_json(row.decisions) for row in page.data],
    }
    taken = frozenset(columns)
    for name in decision_ids:
        labels = [expected_of(row, name) for row in page.data]
        columns[f"label:{name}" if name in taken else name] = labels
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _datasets_html(datasets: Sequence[Dataset]) -> str:
    columns = ("name", "id", "version", "rows", "training", "evaluation", "method")
    rows = []
    for dataset in datasets:
        counts = (dataset.version, dataset.rows, dataset.split.training, dataset.split.evaluation)
        numbers = "".join(f'<td style="{_NUMBER}">{count:,}</td>' for count in counts)
        rows.append(f"{_cell(dataset.name)}{_cell(dataset.id)}{numbers}{_cell(dataset.method)}")
    return _table_html("Datasets", columns, rows)


def cut_context(context: Any) -> str:
    """Return as much of a context as a table shows."""
    text = _text(context)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _text(context: Any) -> str:
    return context if isinstance(context, str) else _json(context)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def table_html(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    bars: Sequence[float] | None = None,
) -> str:
    """Return texts as an HTML table, every one escaped; ``bars`` are 0 to 1, one a row."""
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
    if result.route is not UNSET:
        facts.append(
            "asked: " + ", ".join(f"{step.model} ({step.p_top:.2f})" for step in result.route)
        )
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
