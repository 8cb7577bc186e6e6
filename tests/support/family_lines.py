"""Lines of models for tests: short ways to commands under conditions that allow everything."""

from __future__ import annotations

from steelyard.evaluations.gate_wire import BeforeAfter, Gate, GateDeltas
from steelyard.families.continuing import Growth
from steelyard.families.fine_tunes import (
    Order,
    continue_family,
    finish_job,
    start_family,
    start_job,
)
from steelyard.families.fine_tuning.wire import JobLineage, JobSplit, ResolvedHyperparameters
from steelyard.families.lineage import Conditions, Lines, adapter_of
from steelyard.families.moving import move_ready
from steelyard.families.wire import ContinueRows

BASE = "base-1"
HOUR = 3600.0
DAY = 86_400.0
#: When the lines of these tests begin.
START = 1_000_000.0


class AllLoaded(dict):
    """Every model is loaded but for those that it says otherwise of."""

    def get(self, key, default=None):
        return super().get(key, "loaded")


def at(now: float = START, **members) -> Conditions:
    """Conditions with every model loaded, and one base model that can be fine-tuned."""
    return Conditions(
        **{
            "now": now,
            "states": AllLoaded(),
            "base_models": frozenset({BASE, "base-2"}),
            "trainable": frozenset({BASE}),
            **members,
        }
    )


def make_gate(passed: bool = True, reasons: tuple[str, ...] = ("new_rows_worse",)) -> Gate:
    return Gate(
        passed=passed,
        against="base",
        reasons=[] if passed else list(reasons),
        groups={},
        deltas=GateDeltas(),
        ece=BeforeAfter(before=None, after=None),
    )


def make_order(job_id: str, **members) -> Order:
    return Order(
        **{
            "id": job_id,
            "dataset_id": "ds_1",
            "dataset_version": 1,
            "method": "sft",
            "hyperparameters": ResolvedHyperparameters(
                steps=20, learning_rate=1e-4, lora_rank=8, seed=0
            ),
            "split": JobSplit(train_rows=40, validation_rows=8, trained_tokens=900),
            "lineage": JobLineage(
                new_training=40, earlier_training=0, new_evaluation=8, earlier_evaluation=0
            ),
            "max_questions": 64,
            "price_nano": 0,
            **members,
        }
    )


def make_growth(version: int, **members) -> Growth:
    return Growth(
        **{
            "version": version,
            "added_at": START,
            "added_from": None,
            "needed": 20,
            "rows": ContinueRows(new=40, earlier=40, evaluation=8),
            "evaluation_decisions": 30,
            **members,
        }
    )


def start(lines: Lines, name: str, *, conditions: Conditions | None = None) -> Lines:
    """A family whose first fine-tune is queued; its id is ``ftj_NAME_1``."""
    order = make_order(f"ftj_{name}_1")
    return start_family(lines, name, BASE, order, conditions or at()).lines


def join(lines: Lines, job_id: str, *, conditions: Conditions | None = None) -> Lines:
    """The fine-tune trained, its gate passed, and its model served where it can be."""
    conditions = conditions or at()
    lines = start_job(lines, job_id, conditions).lines
    lines = finish_job(lines, job_id, make_gate(), {"accuracy": 0.9}, conditions).lines
    return move_ready(lines, conditions).lines


def grow(lines: Lines, name: str, n_models: int, *, conditions: Conditions | None = None) -> Lines:
    """A family continued until it has so many models."""
    conditions = conditions or at()
    if name not in lines.families:
        lines = join(
            start(lines, name, conditions=conditions), f"ftj_{name}_1", conditions=conditions
        )
    while (n := len(lines.families[name].models) + 1) <= n_models:
        order = make_order(f"ftj_{name}_{n}", dataset_version=n)
        change = continue_family(lines, name, order, make_growth(n), conditions)
        lines = join(change.lines, order.id, conditions=conditions)
    return lines


def adapter(name: str, version: int) -> str:
    return adapter_of(f"ftj_{name}_{version}")
