"""A dataset in figures: its sides, its labels, and its tunable decisions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import panel as pn
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset, DecisionReadiness, LabelsToCheck
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.bar_list import BarChart, BarList
from steelyard_workbench.kit.theme import outcome_colours
from steelyard_workbench.kit.views import empty, facts, heading, table
from steelyard_workbench.kit.words import ago
from steelyard_workbench.parts.datasets.questions import top_of

METHODS = {"sft": "right answers", "reward": "rewards"}
_WHY_NOT = {
    "conflicting_decision": "no: rows word it in several ways",
    "structured_wording": "no: its wording is not plain text",
    "too_few_rows": "no: too few training rows",
    "too_many_rows": "no: too many training rows",
    "too_few_per_outcome": "no: too few rows to train on for an answer",
    "unbalanced_split": "no: an answer is missing to train on or for the check",
}
#: Outcomes of a decision in a chart; the rest is in the filter of the rows.
_MOST_BARS = 20


def show_facts(dataset: Dataset) -> Viewable:
    """Show the facts of a dataset."""
    split = dataset.split
    values = {
        "Version": f"{dataset.version}, the newest",
        "Texts": f"{dataset.contexts:,}: {split.training_contexts:,} training, "
        f"{split.evaluation_contexts:,} evaluation",
        "Duplicates left out": f"{dataset.duplicates_removed:,}",
        "Labelled with": METHODS[dataset.method],
        "Made": f"{when(dataset.created_at)} ({ago(dataset.created_at)})",
        "Last used": ago(dataset.used_at),
        "Id": dataset.id,
        "SHA-256": dataset.sha256,
    }
    if dataset.archived_at is not None:
        values["Archived"] = f"{ago(dataset.archived_at)}; it takes no new work until restored"
    if dataset.evaluation_only:
        values["Evaluation only"] = "yes: it has no training rows"
    if dataset.warnings:
        values["To correct"] = " ".join(warning.message for warning in dataset.warnings)
    return facts(values)


def size_text(dataset: Dataset) -> str:
    """Return how many rows a dataset has for training and evaluation."""
    split = dataset.split
    archived = "" if dataset.archived_at is None else "archived · "
    return (
        f"{archived}{dataset.rows:,} rows · {split.training:,} to train on · {split.evaluation:,} "
        f"for the check · version {dataset.version}"
    )


def show_readiness(dataset: Dataset) -> Viewable:
    """Show every decision of the training rows and whether prompt tuning can tune it."""
    if dataset.prompt_tuning is msgspec.UNSET:
        return empty("Rewards are not tuned by prompts; fine-tune on them instead.")
    ready = dataset.prompt_tuning
    view = table(
        ("decision", "rows to train on", "what they expect", "can be tuned"),
        [_readiness_row(decision) for decision in ready.decisions],
        label="Decisions of the training rows",
        numbers=(1,),
    )
    more = f"{ready.unlisted:,} more decisions are not listed." if ready.unlisted else ""
    return stack(view, *([small_text(more)] if more else []))


def show_labels(facets: Mapping[str, Any], on_outcome: Callable[[str, str], None]) -> Viewable:
    """Show how labels spread; ``on_outcome`` is called with the decision and outcome of a pressed bar."""
    expected: Mapping[str, Mapping[str, int]] = facets["expected"]
    if not expected:
        return empty("No row has a label.")
    charts = [count_chart(decision, counts) for decision, counts in expected.items()]

    def open_(chart: int, bar: int) -> None:
        on_outcome(list(expected)[chart], charts[chart]["bars"][bar]["name"])

    return BarList(charts, open_)


def count_chart(title: str, counts: Mapping[str, int]) -> BarChart:
    """Return a chart of how many rows each outcome has: levels in order, else the most first."""
    most, colours = max(counts.values()), outcome_colours(counts)
    if all(name.isdecimal() for name in counts):
        top = sorted(counts.items(), key=lambda item: int(item[0]))[:_MOST_BARS]
    else:
        top = sorted(counts.items(), key=lambda item: -item[1])[:_MOST_BARS]
    return {
        "title": title,
        "note": f"{sum(counts.values()):,} rows",
        "series": [("", "")],
        "bars": [
            {"name": name, "parts": [n / most], "text": f"{n:,}", "colour": colours[name]}
            for name, n in top
        ],
    }


def show_doubts(doubts: LabelsToCheck) -> Viewable:
    """Show the labels that prompt tuning doubted."""
    if not doubts.data:
        return pn.Column()
    view = table(
        ("row", "decision", "label", "why", "flagged"),
        [
            (
                doubt.row.removeprefix("r"),
                doubt.decision,
                top_of(doubt.targets or {}) or "—",
                doubt.reason,
                ago(doubt.flagged_at),
            )
            for doubt in doubts.data
        ],
        label="Labels to check",
        numbers=(0,),
    )
    return section("Worth a look: labels that prompt tuning doubts", view)


def section(title: str, *content: Viewable) -> Viewable:
    """Return a part of a page under its heading."""
    return stack(heading(title), *content)


def when(at: float) -> str:
    """Return a time in Unix seconds as the local date and minute."""
    return dt.datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")


def _readiness_row(readiness: DecisionReadiness) -> tuple[str, ...]:
    name = (
        readiness.decision.get("id", "")
        if isinstance(readiness.decision, Mapping)
        else readiness.decision
    )
    labels = ", ".join(f"{outcome} ({n:,})" for outcome, n in readiness.labels.items())
    return (
        str(name),
        f"{readiness.rows:,}",
        labels,
        "yes" if readiness.reason is None else _WHY_NOT.get(readiness.reason, readiness.reason),
    )
