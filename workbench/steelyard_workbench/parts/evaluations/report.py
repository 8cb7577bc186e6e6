"""An evaluation as files: one HTML page that needs nothing else, JSON, and its records as a table.

The page is a template of ours with Bokeh's own script in it: a saved Panel page would ask a CDN for
panel-material-ui.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from bokeh.embed import json_item
from bokeh.resources import Resources
from bokeh.themes import Theme
from jinja2 import Environment, PackageLoader

from steelyard.client.display_evaluations import measure_of
from steelyard.evaluations.wire import ConfusionMatrix, EvaluationDetail, EvaluationRecordPage
from steelyard.version import __version__
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.words import measure_text
from steelyard_workbench.parts.evaluations.charts import (
    CHANCE,
    MOST_SLICES,
    TITLES,
    bin_counts_chart,
    bin_name,
    confusion_chart,
    coverage_chart,
    forest_chart,
    headline_of,
    reliability_chart,
    slice_rows,
    slice_text,
)
from steelyard_workbench.parts.evaluations.scored import Scored, right_outcomes

#: Decisions whose confusion matrix and outcomes are in a report; the rest is counted.
MOST_DECISIONS = 12


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of texts under a chart, or by itself."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading, charts by name, a table, and a note."""

    title: str
    charts: dict[str, object]
    table: _Table | None = None
    note: str = ""


def report_html(scored: Scored, worst: EvaluationRecordPage) -> str:
    """Return an evaluation as one HTML page of about 1.3 MB that opens offline."""
    sections = _sections(scored.detail, scored.ceiling)
    charts = {name: chart for section in sections for name, chart in section.charts.items()}
    items = [_item(name, chart) for name, chart in charts.items()]
    templates = Environment(
        loader=PackageLoader("steelyard_workbench.parts.evaluations"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Bokeh reads models in the order in which they were written.
    templates.policies["json.dumps_kwargs"] = {"sort_keys": False}
    evaluation = scored.evaluation
    return templates.get_template("evaluation.html").render(
        title=f"{evaluation.model_label} on {scored.dataset_name}",
        facts={
            "Model": evaluation.model_label,
            "Dataset": f"{scored.dataset_name}, version {evaluation.dataset_version}",
            "Evaluation": evaluation.id,
            "Scored": utc_text(evaluation.updated_at),
            "Rows": f"{evaluation.evaluation_rows:,}, {scored.detail.overall.n:,} decisions",
            "Model SHA-256": evaluation.model_sha256,
            "Evaluation rows SHA-256": evaluation.evaluation_sha256,
        },
        headline=headline_of(scored.detail, scored.ceiling),
        sections=sections,
        items=items,
        # Not render(): Panel adds files to it that are elsewhere.
        bokeh=Resources(mode="inline", components=["bokeh"]).js_raw,
        worst=[
            (
                f"{record.row:,}",
                record.decision_id,
                " or ".join(right_outcomes(record)),
                top := max(record.probabilities, key=record.probabilities.__getitem__),
                f"{record.probabilities[top]:.3f}",
                record.context_sha256[:16],
            )
            for record in worst.data
        ],
        n_worst=worst.total,
        made=utc_text(time.time()),
        version=__version__,
    )


def report_json(scored: Scored) -> bytes:
    """Return an evaluation and everything measured as indented JSON, in the API's own shapes."""
    encoded = msgspec.json.encode(
        {
            "dataset_name": scored.dataset_name,
            "evaluation": scored.evaluation,
            "detail": scored.detail,
        }
    )
    return msgspec.json.format(encoded, indent=1)


def _item(name: str, chart: Any) -> dict[str, Any]:
    """Return a chart as Bokeh embeds it, without the models that Panel adds to every document."""
    # A theme of its own, so that a page made from a dark browser is as legible on paper.
    item: dict[str, Any] = dict(json_item(chart, name, theme=Theme(json={})))
    item["doc"] = {**item["doc"], "defs": []}
    return item


def _sections(detail: EvaluationDetail, people: Measure | None) -> list[_Section]:
    sections = []
    rows = detail.reliability
    if isinstance(rows, list):
        bins = [
            (
                bin_name(row),
                f"{row.n:,}",
                f"{row.mean_top_probability or 0:.3f}",
                measure_text(row.accuracy),
            )
            for row in rows
            if row.n
        ]
        sections.append(
            _Section(
                "How sure and right",
                {
                    "reliability": reliability_chart(rows, people=people),
                    "bins": bin_counts_chart(rows),
                },
                _Table(("promised", "n", "mean", "accuracy"), bins),
            )
        )
    for place, decision in enumerate(detail.decisions[:MOST_DECISIONS]):
        matrix, outcomes = decision.confusion, decision.outcomes
        if not isinstance(matrix, ConfusionMatrix) or not isinstance(outcomes, list):
            continue
        sections.append(
            _Section(
                f"Decision {decision.decision_id}",
                {f"confusion{place}": confusion_chart(decision.decision_id, matrix)},
                _Table(
                    ("outcome", "right in", "answered in", "precision", "recall", "F1", "AUC"),
                    [
                        (
                            outcome.outcome,
                            f"{outcome.support:,}",
                            f"{outcome.predicted:,}",
                            measure_text(outcome.precision),
                            measure_text(outcome.recall),
                            measure_text(outcome.f1),
                            measure_text(outcome.auc),
                        )
                        for outcome in outcomes
                    ],
                ),
            )
        )
    sections.append(_Section("Abstaining", {"coverage": coverage_chart(detail.coverage_curve)}))
    sections += _slices(detail, people)
    return sections


def _slices(detail: EvaluationDetail, people: Measure | None) -> list[_Section]:
    measure = next(
        (
            name
            for name in ("accuracy", "scaled_reward", "expected_reward")
            if measure_of(detail.overall, name) is not None
        ),
        None,
    )
    rows = [] if measure is None else slice_rows(measure, detail.slices, detail.decisions)
    if measure is None or not rows:
        return []
    overall = measure_of(detail.overall, measure)
    chart = forest_chart(
        [row for row in rows if row.is_measured][:MOST_SLICES],
        title=f"{TITLES[measure]} by slice",
        x=TITLES[measure],
        reference=None if overall is None else overall.value,
        people=people if measure == "accuracy" else None,
    )
    values = [(row.name, slice_text(row)) for row in rows]
    note = f"{len(rows):,} slices. {CHANCE}"
    return [_Section("Slices", {"slices": chart}, _Table(("slice", TITLES[measure]), values), note)]


def utc_text(at: float) -> str:
    """Return a time in Unix seconds as UTC text, to the minute."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
