"""Families, fine-tunes and gates as a server reports them, for tests of their pages."""

from __future__ import annotations

from typing import Any

HOSTILE = '<img src=x onerror="alert(1)">&"\''


def change(before: float, after: float, margin: float = 0.02) -> dict[str, float]:
    moved = after - before
    return {
        "before": before,
        "after": after,
        "change": moved,
        "low": moved - margin,
        "high": moved + margin,
    }


def group(measure: str = "loss", before: float = 0.9, after: float = 0.6) -> dict[str, Any]:
    return {
        "decisions": 120,
        "contexts": 60,
        measure: change(before, after),
        "flips": {"fixed": 14, "broken": 3, "same_right": 90, "same_wrong": 13},
        "accuracy": {"before": 0.78, "after": 0.87},
    }


LADDER = {
    "thresholds": {"single": 0.81},
    "share": 0.9,
    "margin": 0.01,
    "confidence": 0.95,
    "lost": 0.002,
    "missing_rows": {},
    "cpu_ms": {"words": 0.3, "reading": 6.7, "mean": 0.97},
}
WORDS = {
    "decisions": 120,
    "as_right": True,
    "margin": 0.01,
    "right": {"before": 0.71, "after": 0.7, "change": -0.01, "low": -0.02, "high": 0.01},
    "cpu_ms": {"before": 6.7, "after": 0.3},
}


def gate(**fields: Any) -> dict[str, Any]:
    """A gate that passed; keyword arguments replace fields."""
    return {
        "passed": True,
        "against": "parent",
        "reasons": [],
        "groups": {"new": group(), "earlier": group(after=0.91)},
        "deltas": {"new": -0.3, "earlier": 0.01, "ece": -0.02},
        "ece": {"before": 0.09, "after": 0.07},
        "by_decision": [
            {**group(), "decision_id": HOSTILE, "p_value": 0.4, "worse": False},
        ],
        "by_outcome": [
            {
                **group(after=1.4),
                "decision_id": "team",
                "outcome": HOSTILE,
                "p_value": 0.001,
                "worse": True,
            }
        ],
        "baseline": group(before=0.7),
        **fields,
    }


def model(version: int, **fields: Any) -> dict[str, Any]:
    """A model of the line of router."""
    return {
        "version": version,
        "ref": f"router@{version}",
        "adapter": f"ft-ftj_{version}",
        "status": "ready",
        "state": "loaded",
        "on_at": None,
        "keep_warm": False,
        "keep_warm_window": None,
        "keep_warm_stopped_at": None,
        "used_at": None,
        "switches_off_at": None,
        "off_reason": None,
        "off_at": None,
        "parent": None if version == 1 else f"ft-ftj_{version - 1}",
        "created_at": 1_790_000_000.0 + version,
        "gate": gate(),
        "heldout": {"accuracy": 0.87, "loss": 0.6},
        **fields,
    }


def deleted(version: int) -> dict[str, Any]:
    return {
        "version": version,
        "ref": f"router@{version}",
        "adapter": f"ft-ftj_{version}",
        "status": "deleted",
        "parent": None,
        "deleted_at": 1_790_000_100.0,
    }


def family(**fields: Any) -> dict[str, Any]:
    """The family router, which serves its second model and has a third; fields are replaced."""
    second, third = model(2), model(3)
    return {
        "id": "router",
        "object": "family",
        "switched_on": True,
        "used_at": 1_790_000_000.0,
        "switches_off_at": None,
        "off_reason": None,
        "off_at": None,
        "dataset_id": "ds_1",
        "origin": "hashing",
        "created_at": 1_790_000_000.0,
        "served": second,
        "latest": third,
        "models": [deleted(1), second, third],
        "keep_warm": False,
        "keep_warm_window": None,
        "keep_warm_stopped_at": None,
        "move": {"to": "router@3", "waiting_for": "place", "reason": "live_limit"},
        "moved": None,
        "continue": None,
        "jobs": [
            {
                "id": "ftj_4",
                "status": "succeeded",
                "outcome": "gate_failed",
                "reason": HOSTILE,
                "dataset_version": 3,
                "output_model": None,
                "created_at": 1_790_000_000.0,
                "price_usd": "0.5",
                "charge": "charged",
            }
        ],
        **fields,
    }


def job(**fields: Any) -> dict[str, Any]:
    """A fine-tune that made ``router@3``; keyword arguments replace fields."""
    return {
        "id": "ftj_3",
        "dataset_id": "ds_1",
        "status": "succeeded",
        "created_at": 1_790_000_000.0,
        "updated_at": 1_790_000_050.0,
        "model": "hashing",
        "method": "sft",
        "hyperparameters": {"steps": 200, "learning_rate": 0.001, "lora_rank": 0, "seed": 7},
        "output_model": "ft-ftj_3",
        "metrics": {"gate": gate()},
        "error": None,
        "limits": {"max_questions": 3},
        "split": {"train_rows": 80, "validation_rows": 20, "trained_tokens": 9000},
        "progress": None,
        "curve": [
            {"step": 10, "loss": 1.2, "learning_rate": 0.001},
            {"step": 200, "loss": 0.3, "learning_rate": 0.0001},
        ],
        "family": "router",
        "parent": "ft-ftj_2",
        "family_deleted": False,
        "dataset_version": 2,
        "outcome": "joined",
        "reason": None,
        "lineage": None,
        "price_usd": "0.5",
        "charge": "charged",
        "rows_deleted": False,
        **fields,
    }
