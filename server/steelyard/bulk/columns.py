"""The columns that decisions add to rows: outcomes, probabilities and actions, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from steelyard.decisions.kinds import Decision
from steelyard.errors import SteelyardError

#: Why a row has no answer; null where it has one.
ERROR = "error"
#: The action that the rules of a named decision take.
RULE = "rule"
#: Its place in an answer: no decision has this id.
RULE_ID = ""

#: The answer's decisions by id, as plain values, and the action of rules; or why there is none.
Answered = Mapping[str, Any] | SteelyardError


def schema_of(decisions: Sequence[Decision], *, has_rules: bool = False) -> dict[str, pl.DataType]:
    """Return the columns of decisions, in their order, that of rules, and last the one of errors."""
    schema: dict[str, pl.DataType] = {}
    for decision in decisions:
        schema |= {f"{decision.id}.top": pl.String(), f"{decision.id}.p_top": pl.Float64()}
        schema[f"{decision.id}.action"] = pl.String()
        if decision.kind == "ordinal":
            schema[f"{decision.id}.expected_level"] = pl.Float64()
        schema |= {f"{decision.id}.p.{name}": pl.Float64() for name in decision.outcomes.names}
    return schema | ({RULE: pl.String()} if has_rules else {}) | {ERROR: pl.String()}


def _scored_frame(
    schema: dict[str, pl.DataType], decisions: Sequence[Decision], answers: Sequence[Answered]
) -> pl.DataFrame:
    """Return the columns of answered rows: one row for each answer."""
    columns: dict[str, list[Any]] = {name: [] for name in schema}
    for answered in answers:
        if isinstance(answered, SteelyardError):
            for values in columns.values():
                values.append(None)
            columns[ERROR][-1] = answered.message
            continue
        for decision in decisions:
            result = answered[decision.id]
            columns[f"{decision.id}.top"].append(result["top"])
            columns[f"{decision.id}.p_top"].append(result["p_top"])
            columns[f"{decision.id}.action"].append(result["action"])
            if decision.kind == "ordinal":
                columns[f"{decision.id}.expected_level"].append(result["expected_level"])
            for name in decision.outcomes.names:
                columns[f"{decision.id}.p.{name}"].append(result["probabilities"][name])
        if RULE in columns:
            columns[RULE].append(answered[RULE_ID])
        columns[ERROR].append(None)
    return pl.DataFrame(columns, schema=schema)


def with_answers(
    rows: pl.DataFrame,
    decisions: Sequence[Decision],
    answers: Sequence[Answered],
    *,
    has_rules: bool = False,
) -> pl.DataFrame:
    """Return rows with the columns of their answers; of rows without columns these alone."""
    scored = _scored_frame(schema_of(decisions, has_rules=has_rules), decisions, answers)
    return rows.hstack(scored) if rows.width else scored


def check_columns(names: Sequence[str], context: Sequence[str], added: Sequence[str]) -> None:
    """Raise ``ValueError`` when a column of the context is missing, or one to be added is there."""
    missing = [name for name in context if name not in names]
    if missing:
        raise ValueError(
            f"There is no column {missing[0]!r}; name the context's among {', '.join(names)}."
        )
    repeated = [name for name in context if list(names).count(name) > 1]
    if repeated:
        raise ValueError(f"Two columns are named {repeated[0]!r}; rename one.")
    taken = [name for name in added if name in names]
    if taken:
        raise ValueError(f"The rows have a column {taken[0]!r} already; rename or drop it.")
