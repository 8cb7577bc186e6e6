"""The next steps of a dataset, each one click away: a map, evaluating, reviewing, fine-tuning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard_workbench.kit.components.choices import Choice
from steelyard_workbench.kit.session import Session

#: The step that draws a map.
MAP = "Map it"
#: What of the families page is shown first: the form that starts one.
START = "start"
#: Open drafts whose assigned rows are counted.
_MOST_DRAFTS = 3


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step of a dataset."""

    dataset: Dataset
    #: The one of ``next_steps`` that is next.
    label: str
    #: What its button says instead; empty where it says its label.
    text: str = ""


def fetch_next(session: Session, dataset: Dataset) -> tuple[str, str]:
    """Return the next step and its button: assigned rows first, then review, evaluate, train."""
    client, review = session.client, "Review it"
    try:
        drafts = client.drafts.list(dataset_id=dataset.id, status="open", limit=_MOST_DRAFTS).data
        shares = [share for draft in drafts for share in client.drafts.assignments(draft.id).data]
        n = sum(each.rows - each.done for each in shares if each.reviewer == session.reviewer)
        if n:
            return review, f"Review {n:,} for you"
        if session.role == "reviewer":
            return review, ""
        is_evaluated = any(True for _ in client.evaluations.list(dataset.id, page_size=1))
    except SteelyardError:  # the page is of use without it
        is_evaluated = False
    if dataset.split.evaluation and not is_evaluated:
        return "Evaluate it", ""
    return ("Train on it" if dataset.split.training else review), ""


def next_steps(session: Session, dataset: Dataset, version: int, what: str) -> list[Choice]:
    """Return a choice for each step of ``what``; one that cannot be made now has the reason."""
    archived = [] if dataset.archived_at is None else ["The dataset is archived."]
    older = (
        []
        if version == dataset.version
        else [f"This can be done with the newest version alone, {dataset.version}."]
    )
    no_evaluation = [] if dataset.split.evaluation else ["It has no rows for the check."]
    no_training = [] if dataset.split.training else ["It has no rows to train on."]
    steps = [
        _step(
            f"Evaluate {what}",
            archived + older + no_evaluation,
            lambda: session.open("evaluations", dataset=dataset.id, version=0, evaluation=""),
        ),
        _step(
            f"Review {what}",
            archived,
            lambda: session.open("review", dataset=dataset.id, version=version, draft=""),
        ),
        _step(f"Map {what}", [], lambda: session.open("map", dataset=dataset.id, version=version)),
        _step(
            f"Train on {what}",
            archived + older + no_training,
            lambda: session.open("families", view=START, dataset=dataset.id, family="", job=""),
        ),
    ]
    # A reviewer has pages of data alone.
    return steps if session.may_change else steps[1:3]


def _step(label: str, reasons: list[str], go: Callable[[], None]) -> Choice:
    return Choice(label, None if reasons else go, text=" ".join(reasons), look="outlined")
