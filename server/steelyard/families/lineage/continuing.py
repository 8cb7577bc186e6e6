"""Continuing a family: whether its next fine-tune could start now, and the reasons against it."""

from __future__ import annotations

from msgspec import Struct

from steelyard import errors
from steelyard.evaluations.gate_wire import JudgedOn
from steelyard.families.lineage.lineage import (
    Conditions,
    FineTune,
    Lineage,
    TunedFamily,
    active_job,
    base_under,
    latest_of,
    next_base,
    parent_of,
)
from steelyard.families.wire import Continue, ContinueRows, ContinueState
from steelyard.ledger.money import to_usd
from steelyard.wire.filling import filled
from steelyard.wire.violations import BODY


class Changes(Struct, frozen=True, kw_only=True):
    """Rows added to and removed from a dataset since a family last trained."""

    #: Training rows that were there before, that came, and that went. A row that is corrected goes,
    #: and comes again with other labels.
    earlier: int
    new: int
    gone: int = 0
    #: Rows of both sides.
    every_new: int = 0
    every_gone: int = 0

    @property
    def training(self) -> int:
        """Training rows that were added, corrected or left out."""
        return max(self.new, self.gone)

    @property
    def added(self) -> int:
        """Rows that are more than there were."""
        return max(0, self.every_new - self.every_gone)

    @property
    def is_correction(self) -> bool:
        """Whether more rows were corrected or left out than were added."""
        return self.every_gone > self.added


class NewRows(Struct, frozen=True, kw_only=True):
    """A family's dataset, and its new rows since the family last trained."""

    version: int
    added_at: float | None
    added_from: str | None
    needed: int
    is_deleted: bool = False
    is_archived: bool = False
    rows: ContinueRows | None = None
    evaluation_decisions: int | None = None
    every_decision: int | None = None
    judged_on: JudgedOn = "new"
    changes: Changes | None = None
    price_nano: int | None = None


def last_job(lineage: Lineage, family: TunedFamily) -> FineTune | None:
    """Return a family's newest fine-tune."""
    return lineage.jobs[family.jobs[-1]] if family.jobs else None


def trained_version(lineage: Lineage, family: TunedFamily) -> int | None:
    """Return the dataset version that a family's latest model was trained on.

    Rows of a fine-tune that the gate refused, or whose model a rollback discarded, are untrained, and
    so are those of a model that answers first.
    """
    latest = latest_of(lineage, family)
    job = None if latest is None else lineage.jobs[latest.job_id]
    return None if job is None or job.is_first else job.dataset_version


def _last_finished(lineage: Lineage, family: TunedFamily) -> FineTune | None:
    """Return a family's newest fine-tune that succeeded, joined or not, and that none follows."""
    finished = (lineage.jobs[job] for job in reversed(family.jobs))
    return next((job for job in finished if job.status == "succeeded" and not job.is_first), None)


def continue_state(
    lineage: Lineage,
    family: TunedFamily,
    growth: NewRows,
    conditions: Conditions,
    *,
    base: str | None = None,
) -> ContinueState:
    """Return the effect of continuing a family now: the first state that applies, in this order.

    Without counts, reasons that need them are not seen. ``base`` is the base model of the request.
    """
    refusals: list[tuple[ContinueState, bool]] = [
        ("dataset_deleted", growth.is_deleted),
        ("dataset_archived", growth.is_archived),
        ("origin_gone", _is_origin_gone(lineage, family, conditions, base)),
    ]
    job = active_job(lineage, family)
    if job is not None:
        refusals.append(("queued" if job.status == "queued" else "training", True))
    changes = growth.changes
    has_new = growth.rows is None or growth.rows.new > 0 or bool(changes and changes.training)
    refusals.append(("no_new_data", not has_new or not _is_new(lineage, family, growth.version)))
    decisions = decisions_to_judge(growth)
    is_short = decisions is not None and decisions < growth.needed
    refusals.append(("not_enough_evaluation_data", is_short))
    refused = next((state for state, holds in refusals if holds), None)
    if refused is not None:
        return refused
    last = last_job(lineage, family)
    is_retry = (
        last is not None
        and last.status in {"failed", "cancelled"}
        and last.dataset_version == growth.version
    )
    return "retry" if is_retry else "new_data"


def continue_to_wire(
    lineage: Lineage, family: TunedFamily, growth: NewRows, conditions: Conditions
) -> Continue:
    """Return the effect of continuing a family now, in wire form."""
    state = continue_state(lineage, family, growth, conditions)
    can_start = state in {"new_data", "retry"}
    counts = can_start or state in {"no_new_data", "not_enough_evaluation_data"}
    is_counted = counts and growth.rows is not None
    price_nano = growth.price_nano if can_start and is_counted else None
    return filled(
        Continue,
        growth,
        state=state,
        evaluation_decisions=decisions_to_judge(growth) if is_counted else None,
        rows=growth.rows if is_counted else None,
        judged_on=growth.judged_on if is_counted else None,
        reasons=(
            _reasons(growth, state, is_tried=not _is_new(lineage, family, growth.version))
            if is_counted
            else []
        ),
        price_usd=None if price_nano is None else to_usd(price_nano),
    )


def check_continue(
    lineage: Lineage,
    family: TunedFamily,
    growth: NewRows,
    conditions: Conditions,
    *,
    dataset_version: int | None = None,
    base: str | None = None,
) -> None:
    """Refuse a fine-tune that cannot start, for a start and for its estimate."""
    if base is not None and base not in conditions.base_models:
        raise errors.InvalidReferenceError(
            f"{base[:60]!r} is no base model that runs here; give one of GET /v1/models, or leave "
            f"base out to stay on {next_base(lineage, family)}.",
            path=(*BODY, "base"),
        )
    version = growth.version if dataset_version is None else dataset_version
    state = continue_state(lineage, family, growth, conditions, base=base)
    match state:
        case "dataset_deleted":
            raise errors.DatasetDeletedError(f"The dataset {family.dataset_id} was deleted.")
        case "dataset_archived":
            raise errors.DatasetArchivedError(
                f"The dataset {family.dataset_id} is archived; restore it first."
            )
        case "origin_gone":
            raise _origin_error(lineage, family)
        case "queued" | "training":
            raise errors.FamilyTrainingError(
                f"A fine-tune of {family.name} has not ended; wait for it."
            )
        case _:
            pass
    if version > growth.version:
        raise errors.NotFoundError(
            f"The dataset {family.dataset_id} has no version {version}; the newest is "
            f"{growth.version}."
        )
    if state == "no_new_data" or not _is_new(lineage, family, version):
        raise errors.NoNewDataError(
            f"The family {family.name} trained on version {version} of its dataset already, or it "
            "gained no training rows since; add or correct rows first."
        )
    if state == "not_enough_evaluation_data":
        of = "that are new or corrected" if growth.judged_on == "new" else "in all"
        raise errors.NotEnoughEvaluationDataError(
            f"The gate needs {growth.needed} evaluation decisions to judge by, and there are "
            f"{decisions_to_judge(growth)} {of}; add rows first."
        )


def decisions_to_judge(growth: NewRows) -> int | None:
    """Return the evaluation decisions that the gate would judge by: new ones, or all of them."""
    return growth.evaluation_decisions if growth.judged_on == "new" else growth.every_decision


def _reasons(growth: NewRows, state: ContinueState, *, is_tried: bool) -> list[str]:
    """Return the gate's rules and missing rows, in sentences."""
    changes, decisions = growth.changes, decisions_to_judge(growth)
    if changes is None or decisions is None:
        return []
    if not changes.training:
        return ["No training row was added, corrected or left out since the family last trained."]
    reasons = []
    if is_tried:
        reasons.append(
            f"The last fine-tune had version {growth.version} and left no model, so its rows count as "
            "untrained. Add or correct rows: the next fine-tune takes them all."
        )
    if growth.judged_on == "new":
        reasons.append(
            f"The gate asks for a gain on the {decisions:,} evaluation decisions that are new or "
            "corrected."
        )
    else:
        reasons.append(
            f"{changes.every_gone:,} rows were corrected or left out, and with "
            f"{growth.evaluation_decisions or 0:,} evaluation decisions among them there are fewer "
            f"than {growth.needed:,} to ask a gain of. The gate judges all {decisions:,} evaluation "
            "decisions by their present labels: they must not become worse."
        )
    if state == "not_enough_evaluation_data":
        reasons.append(
            f"{growth.needed - decisions:,} more evaluation decisions are needed; add or correct "
            "evaluation rows."
        )
    return reasons


def _is_new(lineage: Lineage, family: TunedFamily, version: int) -> bool:
    last = _last_finished(lineage, family)
    return last is None or version > last.dataset_version


def _is_origin_gone(
    lineage: Lineage, family: TunedFamily, conditions: Conditions, base: str | None
) -> bool:
    parent = parent_of(lineage, family)
    # On another base too the gate compares with the parent, which answers on its own.
    needed = base_under(lineage, family, parent) if parent or base is None else base
    if needed not in conditions.base_models:
        return True
    if latest_of(lineage, family) is not None or family.origin_adapter is None:
        return False
    return lineage.models[family.origin_adapter].status != "ready"


def _origin_error(
    lineage: Lineage, family: TunedFamily
) -> errors.ModelDeletedError | errors.ModelDiscardedError | errors.InvalidReferenceError:
    origin = None if family.origin_adapter is None else lineage.models[family.origin_adapter]
    if origin is not None and origin.status == "deleted":
        return errors.ModelDeletedError(
            f"The model {family.origin}, which {family.name} starts from, was deleted; start "
            "another family."
        )
    if origin is not None and origin.status == "discarded":
        return errors.ModelDiscardedError(
            f"A rollback discarded the model {family.origin}, which {family.name} starts from; "
            "start another family."
        )
    return errors.InvalidReferenceError(
        f"The base model {next_base(lineage, family)} of {family.name} cannot be fine-tuned here any "
        "more; start another family.",
        path=("path", "family"),
    )
