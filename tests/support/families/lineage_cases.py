"""Lineage for tests: short ways to commands under conditions that allow everything."""

from __future__ import annotations

from steelyard.evaluations.gate_wire import BeforeAfter, Gate, GateDeltas
from steelyard.families.fine_tune_wire import JobLineage, JobSplit, ResolvedHyperparameters
from steelyard.families.lineage.continuing import NewRows
from steelyard.families.lineage.fine_tunes import (
    Order,
    continue_family,
    finish_job,
    start_family,
    start_job,
)
from steelyard.families.lineage.lineage import Conditions, Lineage, adapter_of
from steelyard.families.lineage.moving import move_ready
from steelyard.families.lineage.plan import TuningPlan
from steelyard.families.wire import ContinueRows

BASE, OTHER_BASE = "base-1", "base-2"
HOUR = 3600.0
DAY = 86_400.0
#: When the lineage of these tests begins.
START = 1_000_000.0
#: Words alone answer first, and an adapted encoder with a ladder follows.
WORDS_FIRST = ResolvedHyperparameters(
    steps=20, learning_rate=1e-4, lora_rank=8, seed=0, heads="ladder", first="words"
)


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
            "base_models": frozenset({BASE}),
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


def make_order(job_id: str, price_nano: int = 0, **members) -> Order:
    plan = TuningPlan(
        **{
            "base": BASE,
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
            "rows": ContinueRows(new=40, earlier=0, evaluation=8),
            "passes": 8.0,
            "growth": make_growth(1),
            **members,
        }
    )
    return Order(id=job_id, plan=plan, price_nano=price_nano)


def make_growth(version: int, **members) -> NewRows:
    return NewRows(
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


def start(lineage: Lineage, name: str, *, conditions: Conditions | None = None) -> Lineage:
    """A family whose first fine-tune is queued; its id is ``ftj_NAME_1``."""
    order = make_order(f"ftj_{name}_1")
    return start_family(lineage, name, BASE, order, conditions or at()).lineage


def join(lineage: Lineage, job_id: str, *, conditions: Conditions | None = None) -> Lineage:
    """The fine-tune trained, its gate passed, and its model served where it can be."""
    conditions = conditions or at()
    lineage = start_job(lineage, job_id, conditions).lineage
    lineage = finish_job(lineage, job_id, make_gate(), {"accuracy": 0.9}, conditions).lineage
    return move_ready(lineage, conditions).lineage


def grow(
    lineage: Lineage, name: str, n_models: int, *, conditions: Conditions | None = None
) -> Lineage:
    """A family continued until it has so many models."""
    conditions = conditions or at()
    if name not in lineage.families:
        lineage = join(
            start(lineage, name, conditions=conditions), f"ftj_{name}_1", conditions=conditions
        )
    while (n := len(lineage.families[name].models) + 1) <= n_models:
        order = make_order(f"ftj_{name}_{n}", dataset_version=n)
        change = continue_family(lineage, name, order, make_growth(n), conditions)
        lineage = join(change.lineage, order.id, conditions=conditions)
    return lineage


def adapter(name: str, version: int) -> str:
    return adapter_of(f"ftj_{name}_{version}")
