"""Where a newcomer begins: three cards, each of which leads to a first result within a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard.evaluations.wire import Evaluation
from steelyard.families.wire import Family
from steelyard_workbench.components.facts import heading
from steelyard_workbench.review.sending import draft_of
from steelyard_workbench.session import Session
from steelyard_workbench.states import refused_button
from steelyard_workbench.tasks import Scope, Write

#: Names of the datasets that `steelyard up` loads; the first is the one to review.
SAMPLES = ("support_triage", "reply_action")
_REVIEW = "Review the sample"


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is there of a newcomer.

    Parameters
    ----------
    sample : Dataset or None
        The one to review; ``None`` where none is loaded.
    """

    sample: Dataset | None


def find_beginning(
    datasets: Sequence[Dataset], evaluations: Sequence[Evaluation], families: Sequence[Family]
) -> Beginning | None:
    """Return where somebody begins who has nothing but the samples; ``None`` for others."""
    by_name = {dataset.name: dataset for dataset in datasets}
    if evaluations or families or len(by_name) < len(datasets) or not by_name.keys() <= {*SAMPLES}:
        return None
    return Beginning(next((by_name[name] for name in SAMPLES if name in by_name), None))


def show_beginning(session: Session, beginning: Beginning, scope: Scope) -> Viewable:
    """Show the three cards."""
    problem = pn.Column(sizing_mode="stretch_width")
    return pn.Column(
        pn.FlexBox(
            _card(
                "Ask a question",
                "An example is filled in: press *Ask* to see the probability of each outcome.",
                _button("Ask a question", lambda: session.open("playground")),
            ),
            _card(
                _REVIEW,
                "Go through labelled tickets with the keys 1 to 9, and correct wrong labels.",
                _review(session, beginning.sample, problem, scope),
            ),
            _card(
                "Import your data",
                "Choose a CSV, Excel, Parquet or JSON Lines file. You see every problem before "
                "anything is stored.",
                _button("Import your data", lambda: session.open("datasets", dataset="")),
            ),
        ),
        problem,
        sizing_mode="stretch_width",
    )


def _review(session: Session, sample: Dataset | None, problem: Any, scope: Scope) -> Viewable:
    if sample is None:
        return refused_button(_REVIEW, ["this server has no samples; `steelyard up` loads two"])

    async def open_draft() -> None:
        draft = await asyncio.to_thread(draft_of, session.client, sample.id, sample.version)
        if not scope.say_if_ended("The review is started. It is on the Review page."):
            session.open("review", dataset=sample.id, version=draft.dataset_version, draft=draft.id)

    review = Write(open_draft, "Not started:", problem, refused=_REVIEW, scope=scope)
    return _button(_REVIEW, review.start)


def _button(label: str, go: Callable[[], Any]) -> Viewable:
    button = pmui.Button(label=label, variant="contained")
    button.on_click(lambda _: go())
    return button


def _card(title: str, text: str, action: Viewable) -> Viewable:
    return pmui.Paper(
        heading(title), pmui.Typography(text, variant="body2"), action, width=320, margin=10
    )
