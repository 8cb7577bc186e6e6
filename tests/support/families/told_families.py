"""A client that reports families as a test sets them up, and records its calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from steelyard.datasets.wire import Dataset
from steelyard.evaluations.wire import Evaluation, JobRecord
from steelyard.families.fine_tune_wire import FineTuneEstimate, Job, JobEvents
from steelyard.families.wire import Family, FamilyList
from steelyard.maps.wire import DatasetMap
from steelyard.models.wire import Model, ModelList
from support.families.family_data import family, job

ESTIMATE = {
    "currency": "USD",
    "price_usd": "0.25",
    "minimum_applied": True,
    "trained_tokens": 9000,
    "steps": 28,
    "seed": 7,
    "passes": 2.0,
    "train_rows": 80,
    "rows": {"new": 80, "earlier": 0, "evaluation": 20},
    "dataset_version": 3,
}


class Calls:
    """Methods that return or raise the values that a test sets; every call is recorded."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.asked.append((name, args, kwargs))
            answer = self.answers[name]
            if isinstance(answer, list) and answer and isinstance(answer[0], Answers):
                answer = answer[0].next()
            if callable(answer):
                answer = answer(*args, **kwargs)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return call

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Return the calls of a method."""
        return [(args, kwargs) for asked, args, kwargs in self.asked if asked == name]


class Answers:
    """Answers one after the other; the last stays."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def next(self) -> Any:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def in_turn(*answers: Any) -> list[Answers]:
    """Answer each call with the next of these."""
    return [Answers(*answers)]


def told_family(**fields: Any) -> Family:
    """The family router, as a server tells it."""
    return msgspec.convert(family(**fields), Family)


def told_job(**fields: Any) -> Job:
    """A fine-tune of it."""
    return msgspec.convert(job(**fields), Job)


def family_job(number: int, **fields: Any) -> dict[str, Any]:
    """A fine-tune as its family tells it, which made the model of that number."""
    return {
        "id": f"ftj_{number}",
        "status": "succeeded",
        "outcome": "joined",
        "reason": None,
        "dataset_version": number,
        "output_model": f"ft-ftj_{number}",
        "created_at": 1_790_000_000.0 + number,
        "price_usd": "0",
        "charge": "free",
        **fields,
    }


def growth(state: str = "no_new_data", **fields: Any) -> dict[str, Any]:
    """The effect of continuing."""
    return {
        "state": state,
        "version": 3,
        "added_at": None,
        "added_from": None,
        "evaluation_decisions": 12,
        "needed": 20,
        "rows": {"new": 40, "earlier": 40, "evaluation": 8},
        "price_usd": None,
        **fields,
    }


def told_dataset(**fields: Any) -> Dataset:
    """A dataset with training rows."""
    given = {
        "id": "ds_1",
        "name": "tickets",
        "created_at": 1.0,
        "sha256": "0" * 64,
        "version": 3,
        "rows": 100,
        "contexts": 100,
        "duplicates_removed": 0,
        "method": "sft",
        "evaluation_only": False,
        "evaluation_fraction": 0.2,
        "archived_at": None,
        "used_at": None,
        "split": {"training": 80, "evaluation": 20},
        **fields,
    }
    known = {one.encode_name for one in msgspec.structs.fields(Dataset)}
    return msgspec.convert({k: v for k, v in given.items() if k in known}, Dataset, strict=False)


def told_evaluation(**fields: Any) -> Evaluation:
    """An evaluation that runs."""
    return msgspec.convert(
        {
            "id": "eval_1",
            "dataset_id": "ds_1",
            "dataset_version": 3,
            "model_id": "hashing",
            "model_sha256": "0" * 64,
            "model_label": "hashing",
            "model_name": None,
            "version": None,
            "status": "running",
            "created_at": 1_790_000_100.0,
            "updated_at": 1_790_000_100.0,
            "generation": 1,
            "training_job_id": None,
            "dataset_sha256": "0" * 64,
            "evaluation_sha256": "0" * 64,
            "method": "sft",
            "evaluation_rows": 200,
            "decisions": 200,
            "completed_rows": 50,
            "metrics": None,
            "error": None,
            **fields,
        },
        Evaluation,
    )


def told_model(name: str, **fields: Any) -> Model:
    """A base model, or one on it."""
    return msgspec.convert(
        {
            "id": name,
            "name": name,
            "status": "ready",
            "description": "",
            "evaluation_key": "0" * 64,
            "decision_price_nano": "0",
            "family": name,
            "created_at": 1.0,
            "max_input_tokens": 1,
            "max_prompt_tokens": 1,
            "max_questions": 1,
            "calibration": "",
            "engine": "hashing",
            "release_date": "2026-01-01",
            **fields,
        },
        Model,
    )


def told_numbers(base: str = "hashing") -> list[Model]:
    """The models of the family router."""
    return [told_model(f"router@{n}", lora=f"ft-ftj_{n}", family=base, base=base) for n in (2, 3)]


def told_map(**fields: Any) -> DatasetMap:
    """A map that is laid out."""
    return msgspec.convert(
        {
            "id": "map_1",
            "object": "dataset.map",
            "status": "running",
            "dataset_id": "ds_1",
            "dataset_version": 2,
            "model": "hashing",
            "rows": 100,
            "points": 100,
            "progress": {"phase": "laying_out", "step": 90, "steps": 450},
            "created_at": 1_790_000_200.0,
            "updated_at": 1_790_000_200.0,
            **fields,
        },
        DatasetMap,
    )


def record(context: str, right: str, p: float, **fields: Any) -> JobRecord:
    """A held-out decision between ``billing`` and ``shipping``; ``p`` is that of the right one."""
    other = "shipping" if right == "billing" else "billing"
    return msgspec.convert(
        {
            "context_sha256": context,
            "decision_id": "team",
            "probabilities": {right: p, other: 1 - p},
            "targets": {right: 1.0, other: 0.0},
            "loss": 1 - p,
            "accuracy": float(p > 0.5),
            **fields,
        },
        JobRecord,
    )


def make_client(**answers: Any) -> Any:
    """A client whose family is router; dotted names, as ``families_get``, replace answers."""
    given = {
        "families": {
            "list": lambda: FamilyList(data=[told_family()]),
            "get": lambda name: told_family(),
            "switch": lambda *a, **k: told_family(),
            "keep_warm": lambda *a, **k: told_family(),
            "roll_back": lambda *a, **k: told_family(),
            "continue_": lambda *a, **k: told_job(id="ftj_9"),
            "create": lambda *a, **k: told_job(id="ftj_9"),
            "estimate": lambda *a, **k: msgspec.convert(ESTIMATE, FineTuneEstimate),
            "estimate_continue": lambda *a, **k: msgspec.convert(ESTIMATE, FineTuneEstimate),
            "delete": lambda *a, **k: None,
        },
        "models": {
            "list": lambda: ModelList(data=[told_model("hashing"), *told_numbers()], models=[]),
            "switch": lambda *a, **k: None,
            "keep_warm": lambda *a, **k: None,
            "delete": lambda *a, **k: None,
        },
        "jobs": {
            "get": lambda job_id: told_job(id=job_id),
            "all": lambda **k: iter([told_job().summary]),
            "list": lambda **k: iter([told_job()]),
            "events": lambda job_id: JobEvents(data=[]),
            "records": lambda *a, **k: [],
            "cancel": lambda job_id: told_job(id=job_id),
        },
        "datasets": {
            "list": lambda **k: SimpleNamespace(data=[told_dataset()]),
            "get": lambda one: told_dataset(id=one),
        },
        "evaluations": {
            "list": lambda dataset_id: iter([]),
            "get": lambda one: told_evaluation(id=one),
            "cancel": lambda one: told_evaluation(id=one),
            "records": lambda *a, **k: [],
        },
        "maps": {
            "list": lambda **k: iter([]),
            "get": lambda one: told_map(id=one),
            "cancel": lambda one: told_map(id=one, status="cancelling"),
        },
    }
    for name, answer in answers.items():
        part, _, method = name.partition("_")
        given[part][method] = answer
    return SimpleNamespace(**{part: Calls(**methods) for part, methods in given.items()})
