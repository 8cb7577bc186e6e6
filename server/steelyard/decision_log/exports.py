"""Stored decisions as a table to export: a row for each decision of each answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from steelyard.decision_log.store import ObservedDecision
from steelyard.decision_log.traffic import is_right, logged_result
from steelyard.decision_log.true_shares import CheckedDecision
from steelyard.decision_log.wire import LoggedResult
from steelyard.decisions.wire import DecisionResult
from steelyard.exports import Column, ExportTable
from steelyard.wire.decoding import decoder_of

#: The most names of classes: beyond it outcomes are texts in a folder of ``datasets`` too.
MAX_NAMES = 10_000
_TEXT, _NUMBER, _BOOL = pa.string(), pa.float64(), pa.bool_()
_NUMBERS = pa.list_(pa.struct([("outcome", _TEXT), ("value", _NUMBER)]))

Pages = Callable[[], Iterator[Sequence[ObservedDecision]]]
_results = decoder_of(dict[str, DecisionResult])


def outcome_names(
    pages: Iterator[Sequence[ObservedDecision]], decision_id: str | None
) -> tuple[str, ...] | None:
    """Return the outcomes of stored decisions, or of the one of an id; ``None`` of very many."""
    distinct: dict[str, None] = {}
    for page in pages:
        for observed in page:
            for name, outcomes in observed.decision.outcome_names.items():
                if decision_id in {None, name}:
                    distinct.update(dict.fromkeys(outcomes))
        if len(distinct) > MAX_NAMES:
            return None
    return tuple(distinct) or None


def export_table(
    pages: Pages,
    is_exported: Callable[[str, LoggedResult], bool],
    names: tuple[str, ...] | None,
    checked: Mapping[str, CheckedDecision],
) -> ExportTable:
    """Return the wanted decisions of stored answers, in their order, as a table to export."""
    weights = {name: each.weights() for name, each in checked.items()}
    columns = (
        Column("id", _TEXT, "of the answer"),
        Column("created_at", pa.timestamp("us", "UTC"), "when it was answered"),
        Column("model", _TEXT, "the name that answered"),
        Column("version", _TEXT, "where a family answered, its model that did"),
        Column("total_ms", _NUMBER, "server time of the answer"),
        Column("context", _TEXT, "the text, or the JSON of a context that is no text"),
        Column("is_text", _BOOL, "which of the two"),
        Column("metadata", _TEXT, "JSON of what was sent beside, where there is any"),
        Column(
            "fields", _TEXT, "JSON of the values of a named decision's fields, where there are any"
        ),
        Column("rule_action", _TEXT, "the action of its rules, where it has some"),
        Column("rule", pa.int64(), "the number of the rule that held; empty where none did"),
        Column("decision_id", _TEXT, "which decision"),
        Column("decision", _TEXT, "JSON of the decision"),
        Column("kind", _TEXT, "single, binary or ordinal"),
        Column("top", _TEXT, "the outcome with the largest probability", names),
        Column("p_top", _NUMBER, "its probability"),
        Column("action", _TEXT, "what its policy chose, or the top outcome"),
        Column("abstained", _BOOL, "whether it chose none"),
        Column("probabilities", _NUMBERS, "of each outcome"),
        Column("feedback", _TEXT, "what came true, or is likeliest to have", names),
        Column("observed", _NUMBERS, "of each outcome, where what came true is not certain"),
        Column("is_right", _BOOL, "whether the top outcome came true"),
        Column(
            "weight",
            _NUMBER,
            "of a check that chance drew: how many answers it stands for; none of those picked by hand",
        ),
    )
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for page in pages():
            rows = [row for observed in page for row in _rows(observed, is_exported, weights)]
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)

    return ExportTable(
        title="Stored decisions",
        about="Decisions that Steelyard stored, the newest first, and what came true.",
        columns=columns,
        rows=batches,
        splits={"train": batches},
    )


def _rows(
    observed_decision: ObservedDecision,
    is_exported: Callable[[str, LoggedResult], bool],
    weights: Mapping[str, Mapping[str, float]],
) -> Iterator[dict[str, Any]]:
    stored = observed_decision.decision
    request = msgspec.json.decode(stored.request)
    decisions = {decision["id"]: decision for decision in request["decisions"]}
    context = request.get("context")
    is_text = isinstance(context, str)
    fields, rule = request.get("fields"), request.get("rule") or {}
    of_answer = {
        "id": stored.id,
        "created_at": datetime.fromtimestamp(stored.created_at, UTC),
        "model": stored.model,
        "version": stored.version,
        "total_ms": stored.total_ms,
        "context": context if is_text or context is None else _json(context),
        "is_text": is_text,
        "metadata": None if stored.metadata is None else stored.metadata.decode(),
        "fields": _json(fields) if fields else None,
        "rule_action": rule.get("action"),
        "rule": rule.get("number"),
    }
    for name, result in _results.decode(stored.results).items():
        outcome = observed_decision.outcomes.get(name)
        logged = logged_result(result, outcome)
        if not is_exported(name, logged):
            continue
        yield {
            **of_answer,
            "decision_id": name,
            "decision": _json(decisions.get(name)),
            "kind": result.kind,
            "top": result.top,
            "p_top": result.p_top,
            "action": result.action,
            "abstained": logged.abstained,
            "probabilities": _numbers(result.probabilities),
            "feedback": max(outcome, key=outcome.__getitem__)
            if isinstance(outcome, dict)
            else outcome,
            "observed": _numbers(outcome) if isinstance(outcome, dict) else None,
            "is_right": None if outcome is None else is_right(result.top, outcome),
            "weight": weights.get(name, {}).get(stored.id),
        }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _numbers(values: dict[str, float]) -> list[dict[str, Any]]:
    return [{"outcome": name, "value": value} for name, value in values.items()]
