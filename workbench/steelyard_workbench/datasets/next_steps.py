"""What a dataset is for, each one click away: a map of it, evaluating, reviewing, fine-tuning."""

from __future__ import annotations

from collections.abc import Callable

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard_workbench.session import Session
from steelyard_workbench.states import refused_button

#: What of the families page is shown first: the form that starts one.
START = "start"


def next_steps(session: Session, dataset: Dataset, version: int, what: str) -> list[Viewable]:
    """Return a button for each; one that cannot be done now says why beside it.

    Parameters
    ----------
    what : str
        What a button calls the version, as ``it``.
    """
    archived = [] if dataset.archived_at is None else ["the dataset is archived"]
    older = (
        []
        if version == dataset.version
        else [f"only the newest, version {dataset.version}, can be"]
    )
    no_evaluation = [] if dataset.split.evaluation else ["it has no evaluation rows"]
    no_training = [] if dataset.split.training else ["it has no training rows"]
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


def _step(label: str, reasons: list[str], go: Callable[[], None]) -> Viewable:
    if reasons:
        return refused_button(label, reasons)
    button = pmui.Button(label=label, variant="outlined")
    button.on_click(lambda _: go())
    return button
