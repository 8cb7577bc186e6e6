"""Families, models and fine-tunes in words, as the pages say them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, structs

from steelyard.evaluations.gate_wire import Gate, GateGroup
from steelyard.evaluations.wire import Evaluation
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import (
    AnyModelVersion,
    Continue,
    DeletedModelVersion,
    Family,
    FamilyJob,
    ModelVersion,
    Move,
)
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.words import ago, ahead, is_free, percent_text
from steelyard_workbench.parts.families.verdicts import verdict_of

#: States of a continuation while a fine-tune is under way.
TRAINING = frozenset({"queued", "training"})
_OFF = {"owner": "switched off", "idle": "switched off because it was not used", None: "off"}
#: View of a family that asks at once whether to continue it.
CONTINUE = "continue"
#: Why a family cannot be continued, by the state that the server sends.
CANNOT_CONTINUE = {
    "fine_tuning_off": "nothing can be trained here: the server has no trainer",
    "dataset_deleted": "its dataset was deleted",
    "dataset_archived": "its dataset is archived: restore it first",
    "origin_gone": "the model that it started from is gone",
    "queued": "a fine-tune of it is queued",
    "training": "a fine-tune of it is running",
    "no_new_data": "no row of its dataset was added or corrected since its last fine-tune",
    "not_enough_evaluation_data": "too few rows for the check to judge by",
}
_CONTINUE = {
    "new_data": "has new or corrected rows to continue on",
    "retry": "may try its last fine-tune again",
    "no_new_data": "no new or corrected rows",
    "not_enough_evaluation_data": "too few evaluation decisions",
    "queued": "a fine-tune is queued",
    "training": "a fine-tune is running",
    "origin_gone": "its origin is gone",
    "dataset_deleted": "its dataset is deleted",
    "dataset_archived": "its dataset is archived",
    "fine_tuning_off": "no training here",
}
_WAITS = {
    "engines": "it is loading",
    "place": "the limit of models that answer at once is reached; switch another off",
    "warm_place": "the limit of models kept warm is reached; stop another's keep warm",
    "warm_capacity": "there is no room to keep another model of its size loaded",
}
_OUTCOMES: dict[str | None, tuple[Status, str]] = {
    "joined": ("good", "joined"),
    "gate_failed": ("unsure", "check not passed"),
    "failed": ("bad", "failed"),
    "cancelled": ("off", "cancelled"),
    "rolled_back": ("off", "rolled back"),
}
_MARKS: dict[Status, str] = {"good": "✓", "bad": "✗", "unsure": "?", "running": "…", "off": "-"}
#: The view of the playground that asks a family in the wording of its dataset.
ASK = "family"
LINE_COLUMNS = ("model", "now", "status", "weights", "check", "joined", "trained from")


@dataclass(frozen=True, slots=True)
class FineTuneChoice:
    """A fine-tune of a family, and the model that it made."""

    job: FamilyJob
    #: ``None`` while it made none.
    model: AnyModelVersion | None

    @property
    def label(self) -> str:
        """How it is called in a list."""
        if self.model is not None:
            return f"{self.model.ref}, {self.model.status}"
        version, ended = self.job.dataset_version, outcome_of(self.job)[1]
        return f"fine-tune on version {version}, {ended} (…{self.job.id[-6:]})"


def choices_of(family: Family) -> list[FineTuneChoice]:
    """Return a family's fine-tunes with their models, newest first."""
    jobs = family.jobs if isinstance(family.jobs, list) else []
    by_adapter = {model.adapter: model for model in family.models}
    return [FineTuneChoice(job, by_adapter.get(job.output_model or "")) for job in jobs]


def outcome_of(job: FamilyJob) -> tuple[Status, str]:
    """Return how a fine-tune ended, as a status and in words."""
    if job.outcome is None:
        return ("running", job.status)
    return _OUTCOMES[job.outcome]


def mark(status: Status, word: str) -> str:
    """Return a word with a sign, for tables, which do not rely on colour."""
    return f"{_MARKS[status]} {word}"


def gate_mark(gate: Gate) -> str:
    """Return the verdict of a gate with a sign."""
    verdict = verdict_of(gate)
    return mark(verdict.status, verdict.word)


def switch_text(family: Family) -> str:
    """Return in words whether a family is on, since when it is off and why."""
    return "on" if family.switched_on else _off_text(family)


def own_switch_text(model: ModelVersion) -> str:
    """Return in words whether a model's own switch is on, or why it is off."""
    if model.on_at is not None:
        idle = "" if model.switches_off_at is None else f", {idle_text(model.switches_off_at)}"
        return f"on since {ago(model.on_at)}{idle}"
    return _off_text(model)


def _off_text(thing: Family | ModelVersion) -> str:
    since = "" if thing.off_at is None else f" {ago(thing.off_at)}"
    return f"{_OFF[thing.off_reason]}{since}"


def idle_text(switches_off_at: float | None) -> str:
    """Return in words when an idle thing switches off."""
    if switches_off_at is None:
        return "does not switch itself off"
    return f"switches off {ahead(switches_off_at)} unless it is used"


def warm_text(thing: Family | ModelVersion) -> str:
    """Return in words whether something is kept warm, its price, and the end of the hour."""
    if thing.keep_warm:
        window = thing.keep_warm_window
        if window is None or is_free(window.reserved_usd):
            return "kept warm"
        return (
            f"kept warm: {window.reserved_usd} USD are held for the hour that ends "
            f"{ahead(window.ends_at)}"
        )
    if thing.keep_warm_stopped_at is not None:
        return (
            f"not kept warm: it stopped {ago(thing.keep_warm_stopped_at)}, for the next hour could "
            "not be held"
        )
    return "not kept warm"


def continue_text(continuation: Continue | None) -> str:
    """Return in words the effect of continuing."""
    return "no dataset" if continuation is None else _CONTINUE[continuation.state]


def continue_of(family: Family) -> Continue | None:
    """Return the effect of continuing; ``None`` where the family has none."""
    return None if family.continue_ is UNSET else family.continue_


def move_text(move: Move) -> str:
    """Return in words the condition of a family's move to its latest model."""
    why = "" if move.reason is None else f" ({move.reason})"
    return f"It moves to {move.to} by itself, and waits: {_WAITS[move.waiting_for]}{why}."


def roles_of(family: Family, model: AnyModelVersion) -> str:
    """Return in words a model's role in its family: served, latest, or how it ended."""
    words = []
    if family.served is not None and model.adapter == family.served.adapter:
        words.append("answers" if family.switched_on else "would answer")
    if family.latest is not None and model.adapter == family.latest.adapter:
        words.append("latest")
    if model.status != "ready":
        words.append(model.status)
    return ", ".join(words)


def parent_of(family: Family, model: AnyModelVersion) -> str:
    """Return the parent of a model, by its number."""
    refs = {model_version.adapter: model_version.ref for model_version in family.models}
    return family.origin if model.parent is None else refs.get(model.parent, model.parent)


def version_name(choice: FineTuneChoice) -> str:
    """Return the model of a fine-tune, or its dataset version."""
    model = choice.model
    return f"fine-tune on version {choice.job.dataset_version}" if model is None else model.ref


def line_text(family: Family, choice: FineTuneChoice) -> str:
    """Return in words a fine-tune's place in its family, how often it is right, and when it was."""
    model = choice.model
    words = [roles_of(family, model) if model is not None else outcome_of(choice.job)[1]]
    if isinstance(model, ModelVersion) and model.gate is not None:
        right = right_of_gate(model.gate)
        words += [f"{percent_text(right.after)} right"] if right else []
    words += [f"version {choice.job.dataset_version} of its data", ago(choice.job.created_at)]
    return " · ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class RightShares:
    """How often the old and the new model are right, on as many answers for the check."""

    before: float
    after: float
    n_answers: int

    def __str__(self) -> str:
        return f"{percent_text(self.before)} → {percent_text(self.after)}"


def right_of_gate(gate: Gate) -> RightShares | None:
    """Return how often both models of a check are right; ``None`` where it judged no answers."""
    groups = gate.groups.values()
    judged = [(right, group.decisions) for group in groups if (right := right_of_group(group))]
    n = sum(decisions for _, decisions in judged)
    if not n:
        return None
    before, after = (sum(right[side] * part for right, part in judged) / n for side in (0, 1))
    return RightShares(before, after, n)


def right_of_group(group: GateGroup) -> tuple[float, float] | None:
    """Return how often the old and the new model are right; ``None`` where there is too little."""
    for sides in (group.accuracy, group.picked_best):
        if sides is not UNSET and sides.before is not None and sides.after is not None:
            return sides.before, sides.after
    return None


def line_rows(family: Family) -> list[tuple[str, ...]]:
    """Return a table row a model of the line, newest first."""
    rows: list[tuple[str, ...]] = []
    for model in reversed(family.models):
        gate, joined, state = "—", "—", "—"
        if not isinstance(model, DeletedModelVersion):
            joined = ago(model.created_at)
            state = model.state if model.status == "ready" else "—"
            gate = "—" if model.gate is None else gate_mark(model.gate)
        rows.append(
            (
                model.ref,
                roles_of(family, model) or "—",
                model.status,
                state,
                gate,
                joined,
                parent_of(family, model),
            )
        )
    return rows


def differences(before: Family, after: Family) -> list[str]:
    """Return in words a family's changes between two looks; empty without any that count."""
    changes = []
    for what, was, now in (
        ("it served", _ref(before.served), _ref(after.served)),
        ("its latest model was", _ref(before.latest), _ref(after.latest)),
        ("it was", switch_text(before), switch_text(after)),
        ("its keep warm was", _on(before.keep_warm), _on(after.keep_warm)),
        ("its dataset was", before.dataset_id, after.dataset_id),
    ):
        if was != now:
            changes.append(f"{what} {was}, and is now {now}")
    was_status = {model.ref: model.status for model in before.models}
    for model in after.models:
        status = was_status.get(model.ref)
        if status is None:
            changes.append(f"{model.ref} joined")
        elif status != model.status:
            changes.append(f"{model.ref} was {status} and is {model.status}")
    jobs = {choice.job.id: outcome_of(choice.job)[1] for choice in choices_of(before)}
    for choice in choices_of(after):
        now = outcome_of(choice.job)[1]
        if jobs.get(choice.job.id, now) != now:
            changes.append(f"the fine-tune {choice.job.id} is {now}")
        elif choice.job.id not in jobs:
            changes.append(f"the fine-tune {choice.job.id} was started")
    return changes


def is_same(before: Family, after: Family) -> bool:
    """Whether two looks at a family would be shown alike; its clock of use apart."""
    return _without_clock(before) == _without_clock(after)


def is_same_job(before: Job | None, after: Job | None) -> bool:
    """Whether two looks at a fine-tune would be shown alike; how far it is apart."""
    return _without_progress(before) == _without_progress(after)


def _without_clock(family: Family) -> Family:
    return structs.replace(
        family,
        used_at=0.0,
        switches_off_at=None,
        served=_unused(family.served),
        latest=_unused(family.latest),
        models=[_unused(model) for model in family.models],
    )


def _unused(model: AnyModelVersion | None) -> Any:
    if model is None or isinstance(model, DeletedModelVersion):
        return model
    return structs.replace(model, used_at=None, switches_off_at=None)


def _without_progress(job: Job | None) -> Job | None:
    if job is None:
        return None
    evaluation = job.dataset_evaluation
    if isinstance(evaluation, Evaluation):
        evaluation = structs.replace(evaluation, completed_rows=0, updated_at=0.0)
    return structs.replace(job, progress=None, updated_at=0.0, dataset_evaluation=evaluation)


def _ref(model: ModelVersion | None) -> str:
    return "none" if model is None else model.ref


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"
