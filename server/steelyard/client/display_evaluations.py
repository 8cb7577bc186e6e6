"""How evaluations show themselves in a notebook and turn into frames.

Polars is loaded only where a frame is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from steelyard.client.answers import RecordList
from steelyard.client.display import cut_context, table_html
from steelyard.evaluations.frontier_wire import Frontier
from steelyard.evaluations.wire import (
    Change,
    Evaluation,
    EvaluationComparison,
    EvaluationDetail,
    EvaluationSubmission,
    FlippedRecord,
    JobRecord,
    Measures,
    PairedMeasures,
)
from steelyard.review.duties_wire import PeopleAgreement
from steelyard.wire.measures import Measure, interval_text
from steelyard.wire.origins import INFERRED
from steelyard.wire.shown import to_frame, to_html

#: Measures in the order in which they are shown.
MEASURES = (
    "accuracy",
    "loss",
    "brier",
    "ece",
    "expected_reward",
    "scaled_reward",
    "picked_best",
)
_SHOWN_FLIPS = 20
_SHOWN_RECORDS = 20


@to_html.register
def _(evaluation: Evaluation) -> str:
    return _table([evaluation])


@to_html.register
def _(submission: EvaluationSubmission) -> str:
    return _table(submission.data)


@to_html.register
def _(detail: EvaluationDetail) -> str:
    shown = [name for name in MEASURES if measure_of(detail.overall, name) is not None]
    lines = [("all", detail.overall)]
    lines += [(decision.decision_id, decision.metrics) for decision in detail.decisions]
    parts = [
        table_html(
            "Measures with 95 % intervals",
            ("decision", "n", *shown),
            [
                (
                    name,
                    f"{measures.n:,}",
                    *(show_measure(measure_of(measures, measure)) for measure in shown),
                )
                for name, measures in lines
            ],
        )
    ]
    if detail.reliability is not msgspec.UNSET:
        parts.append(
            table_html(
                "Reliability: accuracy against promised probability",
                ("promised", "n", "mean", "accuracy"),
                [
                    (
                        f"{row.low:.1f} to {row.high:.1f}",
                        f"{row.n:,}",
                        f"{row.mean_top_probability:.3f}",
                        show_measure(row.accuracy),
                    )
                    for row in detail.reliability
                    if row.mean_top_probability is not None
                ],
                bars=[
                    row.accuracy.value
                    for row in detail.reliability
                    if row.accuracy is not None and row.mean_top_probability is not None
                ],
            )
        )
    return f"<div>{''.join(parts)}</div>"


@to_html.register
def _(comparison: EvaluationComparison) -> str:
    flips = comparison.overall.flips
    parts = [
        table_html(
            f"{comparison.overall.n:,} decisions: {flips.fixed:,} fixed, {flips.broken:,} broken, "
            f"p = {comparison.overall.p_value:.3g}",
            ("measure", "before", "after", "change"),
            change_rows(comparison.overall),
        )
    ]
    if comparison.flipped:
        parts.append(
            table_html(
                f"Surest of {comparison.flipped_total:,} flips",
                ("decision", "flip", "right", "before", "after"),
                [flip_cells(flip) for flip in comparison.flipped[:_SHOWN_FLIPS]],
            )
        )
    return f"<div>{''.join(parts)}</div>"


@to_html.register
def _(frontier: Frontier) -> str:
    return table_html(
        f"{len(frontier.data):,} models by {frontier.measure.replace('_', ' ')}",
        ("model", frontier.measure.replace("_", " "), "USD per 1,000", "ms", ""),
        [
            (
                item.model,
                show_measure(item.estimate),
                item.price_usd_per_1000 or "",
                "" if item.latency_ms is None else f"{item.latency_ms:.1f}",
                "" if item.dominated else "not dominated",
            )
            for item in frontier.data
        ],
    )


@to_html.register
def _(records: RecordList) -> str:
    shown = records[:_SHOWN_RECORDS]
    contexts = [getattr(record, "context", msgspec.UNSET) for record in shown]
    has_contexts = any(context is not msgspec.UNSET for context in contexts)
    return table_html(
        f"{len(records):,} scored decisions",
        ("decision", "top", "right", *(["context"] if has_contexts else [])),
        [
            (
                *(record.decision_id, _top(record.probabilities), _top(_labels(record))),
                *([cut_context(context)] if has_contexts else []),
            )
            for record, context in zip(shown, contexts, strict=True)
        ],
    )


@to_frame.register
def _(detail: EvaluationDetail) -> Any:
    """Return every measure as a row: its decision, name, value, interval and n."""
    import polars as pl  # noqa: PLC0415

    rows = [("overall", "all", *row) for row in _measure_rows(detail.overall)]
    for decision in detail.decisions:
        rows += [
            ("decision", decision.decision_id, *row) for row in _measure_rows(decision.metrics)
        ]
    for table in detail.slices:
        for slice_ in table.slices:
            rows += [(table.by, slice_.value, *row) for row in _measure_rows(slice_.metrics)]
    schema = {
        "by": pl.String,
        "of": pl.String,
        "measure": pl.String,
        "value": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "n": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


@to_frame.register
def _(comparison: EvaluationComparison) -> Any:
    """Return the decisions that flipped, as rows."""
    import polars as pl  # noqa: PLC0415

    return pl.DataFrame([msgspec.to_builtins(record) for record in comparison.flipped])


@to_frame.register
def _(frontier: Frontier) -> Any:
    """Return a row a model; its price is a number."""
    import polars as pl  # noqa: PLC0415

    rows = [
        (
            *(item.evaluation, item.model, item.family),
            *(item.estimate.value, item.estimate.low, item.estimate.high, item.estimate.n),
            None if item.price_usd_per_1000 is None else float(item.price_usd_per_1000),
            *(item.latency_ms, item.dominated),
        )
        for item in frontier.data
    ]
    schema = {
        **dict.fromkeys(("evaluation", "model", "family"), pl.String),
        **dict.fromkeys(("value", "low", "high"), pl.Float64),
        "n": pl.Int64,
        "price_usd_per_1000": pl.Float64,
        "latency_ms": pl.Float64,
        "dominated": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


@to_frame.register
def _(records: RecordList) -> Any:
    """Return a row a record; distributions are lists of outcome and value."""
    import polars as pl  # noqa: PLC0415

    return pl.DataFrame([_record_row(record) for record in records])


def _table(evaluations: Sequence[Evaluation]) -> str:
    return table_html(
        "Evaluations",
        ("id", "model", "status", "rows", "metrics"),
        [
            (
                evaluation.id,
                evaluation.model_label,
                evaluation.status,
                f"{evaluation.completed_rows:,} of {evaluation.evaluation_rows:,}",
                show_metrics(evaluation),
            )
            for evaluation in evaluations
        ],
    )


def show_metrics(evaluation: Evaluation) -> str:
    """Write the metrics of an evaluation, or why there are none, on one line."""
    if evaluation.error is not None:
        return evaluation.error.message
    if evaluation.metrics is None:
        return ""
    metrics = msgspec.to_builtins(evaluation.metrics)
    return ", ".join(f"{name} {metrics[name]:.4g}" for name in MEASURES if name in metrics)


def show_measure(measure: Measure | None) -> str:
    """Write a measure with its interval, or why it has none.

    >>> show_measure(Measure(value=0.9, low=0.85, high=0.93, n=120))
    '0.9000 [0.8500, 0.9300]'
    """
    if measure is None:
        return "-"
    return f"{measure.value:.4f} [{interval_text(measure.low, measure.high)}]"


def flip_cells(flip: FlippedRecord) -> tuple[str, ...]:
    """Return the cells of a flip: its decision, the kind of flip, the label, both answers."""
    return (
        flip.decision_id,
        flip.flip,
        ", ".join(flip.right),
        f"{flip.before} ({flip.p_before:.2f})",
        f"{flip.after} ({flip.p_after:.2f})",
    )


def show_change(change: Change) -> str:
    """Write a change with its interval."""
    return f"{change.change:+.4f} [{interval_text(change.low, change.high, form='+.4f')}]"


def labels_note(detail: EvaluationDetail) -> str | None:
    """Return in words how many labels clicks and models made; None where there are none."""
    counts = {
        slice_.value: slice_.metrics.n
        for table in detail.slices
        if table.by == "metadata.by"
        for slice_ in table.slices
        if set(INFERRED).intersection(slice_.value.split(", "))
    }
    if not counts:
        return None
    listed = ", ".join(f"{n:,} by {name}" for name, n in counts.items())
    return f"Nobody observed some of these labels: {listed}. Cut the figures by metadata.by."


def steps_note(detail: EvaluationDetail) -> str | None:
    """Return in words which share each step decided; None where one model answers all."""
    if not detail.decided_by:
        return None
    listed = "; ".join(f"{step} {show_measure(share)}" for step, share in detail.decided_by.items())
    return f"Share that each step decided: {listed}."


def people_note(people: PeopleAgreement) -> str | None:
    """Return in words how far people agree on the rows behind figures; ``None`` where that is not known.

    >>> agreed = Measure(value=0.71, low=0.62, high=0.79, n=120)
    >>> people_note(
    ...     PeopleAgreement(dataset_id="", version=1, rows=120, agreement=agreed, decisions={})
    ... )
    'People agree on 71 % [62, 79] of 120 rows that two labelled apart.'
    """
    agreement = people.agreement
    if agreement is None or agreement.low is None or agreement.high is None:
        return None
    ends = interval_text(100 * agreement.low, 100 * agreement.high, form=".0f")
    answers = "" if agreement.n == people.rows else f"{agreement.n:,} answers to "
    share = f"People agree on {100 * agreement.value:.0f} % [{ends}]"
    return f"{share} of {answers}{people.rows:,} rows that two labelled apart."


def measure_of(measures: Measures, name: str) -> Measure | None:
    """Return a measure by name; ``None`` where it was not measured."""
    measure = getattr(measures, name)
    return measure if isinstance(measure, Measure) else None


def change_of(measures: PairedMeasures, name: str) -> Change | None:
    """Return a change by the name of its measure; ``None`` where it was not measured."""
    change = getattr(measures, name)
    return change if isinstance(change, Change) else None


def change_rows(measures: PairedMeasures) -> list[tuple[str, str, str, str]]:
    """Return a row for each measure that was taken: its name, before, after and the change."""
    return [
        (name, f"{change.before:.4f}", f"{change.after:.4f}", show_change(change))
        for name in MEASURES
        if (change := change_of(measures, name)) is not None
    ]


def _measure_rows(measures: Measures) -> list[tuple[str, float, float | None, float | None, int]]:
    rows = []
    for name in MEASURES:
        measure = measure_of(measures, name)
        if measure is not None:
            rows.append((name, measure.value, measure.low, measure.high, measure.n))
    return rows


def _labels(record: JobRecord) -> dict[str, float]:
    labels = record.targets if isinstance(record.targets, dict) else record.rewards
    return labels if isinstance(labels, dict) else {}


def _top(values: dict[str, float]) -> str:
    if not values:
        return ""
    top = max(values, key=values.__getitem__)
    return f"{top} ({values[top]:.2f})"


def _record_row(record: JobRecord) -> dict[str, Any]:
    fields = msgspec.to_builtins(record)
    row: dict[str, Any] = {
        **({"context": fields["context"]} if "context" in fields else {}),
        "context_sha256": record.context_sha256,
        "decision_id": record.decision_id,
        "top": max(record.probabilities, key=record.probabilities.__getitem__),
        "p_top": max(record.probabilities.values()),
        "right": max(_labels(record), key=_labels(record).__getitem__),
        "outcomes": list(record.probabilities),
        "probabilities": list(record.probabilities.values()),
        "labels": list(_labels(record).values()),
    }
    if "row" in fields:
        row["row"] = fields["row"]
    row.update(
        (name, fields.get(name)) for name in (*MEASURES[:3], *MEASURES[4:]) if name in fields
    )
    return row
