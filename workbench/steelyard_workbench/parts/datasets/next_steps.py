"""What a dataset is for, each one click away: a map of it, evaluating, reviewing, fine-tuning."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.datasets.wire import Dataset
from steelyard_workbench.kit.components.choices import Choice
from steelyard_workbench.kit.session import Session

#: What of the families page is shown first: the form that starts one.
START = "start"


def next_steps(session: Session, dataset: Dataset, version: int, what: str) -> list[Choice]:
    """Return a choice for each; one that cannot be made now says why under it.

    Parameters
    ----------
    what : str
        What a button calls the version, as ``it``.
    """
    archived = [] if dataset.archived_at is None else ["The dataset is archived."]
    older = (
        []
        if version == dataset.version
        else [f"This can be done with the newest version alone, {dataset.version}."]
    )
    no_evaluation = [] if dataset.split.evaluation else ["It has no evaluation rows."]
    no_training = [] if dataset.split.training else ["It has no training rows."]
    return [
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
        _step(
            f"Map {what}",
            [],
            lambda: session.open("map", dataset=dataset.id, version=version),
        ),
        _step(
            f"Fine-tune on {what}",
            archived + older + no_training,
            lambda: session.open("families", view=START, dataset=dataset.id, family="", job=""),
        ),
    ]


def _step(label: str, reasons: list[str], go: Callable[[], None]) -> Choice:
    return Choice(label, None if reasons else go, text=" ".join(reasons), look="outlined")
