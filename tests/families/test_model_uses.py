"""A model that an unfinished job uses is neither discarded nor deleted, whatever the kind of job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, Table, insert, select
from sqlalchemy.types import Double, Integer, LargeBinary

from steelyard.bulk.tables import bulk_partitions, bulk_runs
from steelyard.errors import VersionInUseError
from steelyard.evaluations.tables import evaluations
from steelyard.labeling.tables import labeling_jobs
from steelyard.labeling.teachers import JobTeacher
from steelyard.named.tables import named_comparisons
from steelyard.prompt_tuning.tables import prompt_tunings


def add(connection: Connection, table: Table, **values: Any) -> None:
    """Add a row with only some values given, and the rows that it refers to."""
    for column in table.columns:
        if column.name in values or column.nullable:
            continue
        kind = column.type
        value: Any = "x"
        if isinstance(kind, LargeBinary):
            value = b"{}"
        elif isinstance(kind, Integer | Double):
            value = 0
        values[column.name] = value
    for key in table.foreign_keys:
        name, target = key.parent.name, key.column
        value = values.get(name)
        found = select(target).where(target == value)
        if value is not None and connection.execute(found).first() is None:
            add(connection, target.table, account_id="local", **{target.name: value})
    connection.execute(insert(table), values)


def running(table: Table, **values: Any) -> Callable[[Connection], None]:
    """Return a function that adds a running job."""
    named = {"id": "job_1", "account_id": "local", "status": "running", **values}
    if "charge" in table.columns:
        named["charge"] = "free"
    return lambda connection: add(connection, table, **named)


def teachers(*models: str) -> bytes:
    return msgspec.json.encode(
        [
            JobTeacher(name=model, model_id=model, evaluation_key="", price_nano=0)
            for model in models
        ]
    )


def bulk(**values: Any) -> Callable[[Connection], None]:
    """Return a function that adds a file with a waiting part and an answered one."""

    def work(connection: Connection) -> None:
        add(connection, bulk_runs, id="job_1", account_id="local", **values)
        for number, output in ((1, None), (2, "f")):
            add(connection, bulk_partitions, run_id="job_1", number=number, output_sha256=output)

    return work


#: What uses the model, by kind; each is given its adapter and its number.
USES: dict[str, Callable[[str, str], Callable[[Connection], None]]] = {
    "prompt tuning": lambda model, _: running(prompt_tunings, model_id=model, effort="standard"),
    "labeling": lambda model, _: running(labeling_jobs, teachers=teachers("judge", model)),
    "comparison, before": lambda model, _: running(named_comparisons, from_model_id=model),
    "comparison, after": lambda model, _: running(named_comparisons, to_model_id=model),
    "file": lambda model, _: bulk(model_id=model),
    "file that waits": lambda _, ref: bulk(asked=msgspec.json.encode({"model": ref})),
}


@pytest.fixture
def grown(make_kept):
    """A family at its second model."""
    kept = make_kept()
    kept.grow(n_models=2)
    return kept


def roll_back(kept):
    return kept.post("roll_back", "router", to="router@1", discard=["router@2"])


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_rollback_spares_models_of_jobs(grown, use):
    grown.state.write_now(use(grown.models()[1], "router@2"))
    with pytest.raises(VersionInUseError, match="job_1"):
        roll_back(grown)
    grown.post("switch", "router", on=False)
    with pytest.raises(VersionInUseError, match="job_1"):
        grown.post("delete", "router")


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_rollback_discards_models_without_jobs(grown, use):
    grown.state.write_now(use(grown.models()[0], "router@1"))
    roll_back(grown)
    assert grown.get().latest.ref == "router@1"


def test_a_rollback_cancels_evaluations(grown):
    grown.evaluate(grown.models()[1])
    roll_back(grown)
    [status] = grown.state.read_now(
        lambda c: c.execute(select(evaluations.c.status)).scalars().all()
    )
    assert status == "cancelled"


def test_an_ended_job_uses_no_model(grown):
    model = grown.models()[1]
    grown.state.write_now(running(labeling_jobs, teachers=teachers(model), status="review_ready"))
    roll_back(grown)
