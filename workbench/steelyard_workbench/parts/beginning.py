"""Where a newcomer begins: three cards, each of which leads to a first result within a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import panel as pn
from panel.viewable import Viewable

from steelyard.cli.samples import SAMPLES, sample_file
from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.evaluations.wire import Evaluation
from steelyard.families.wire import Family
from steelyard.review.wire import Draft, DraftSummary
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.parts.review.sending import draft_of

_REVIEW = "Review the sample"


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is there of a newcomer.

    Parameters
    ----------
    sample : Dataset or None
        The one to review; ``None`` where it is not loaded yet.
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
    review = _review(session, beginning.sample, problem, scope)
    cards = [
        Choice(
            "Ask a question",
            lambda: session.open("playground", named=""),
            text="An example is filled in: press Ask to see the probability of each outcome.",
        ),
        Choice(
            _REVIEW,
            review,
            text="Go through labelled tickets with the keys 1 to 9, and correct wrong labels."
            if review
            else "This installation has no samples.",
        ),
        Choice(
            "Import your data",
            lambda: session.open("datasets", dataset=""),
            text="Choose a CSV, Excel, Parquet or JSON Lines file. You see every problem before "
            "anything is stored.",
        ),
    ]
    return pn.Column(
        Choices(
            [replace(card, title=card.label, look="filled") for card in cards],
            level=2,
            layout="cards",
        ),
        problem,
        sizing_mode="stretch_width",
    )


def load_sample(client: Client) -> Dataset:
    """Make a dataset of the sample that is reviewed first.

    Raises
    ------
    FileNotFoundError
        When this installation has no samples.
    """
    file = sample_file(SAMPLES[0])
    if file is None:
        raise FileNotFoundError("This installation has no samples. Import a file instead.")
    return client.datasets.create(SAMPLES[0], file)


def _review(
    session: Session, sample: Dataset | None, problem: Any, scope: Scope
) -> Callable[[], Any] | None:
    """Return what opens a draft of the sample; ``None`` where this installation has none."""
    if sample is None and sample_file(SAMPLES[0]) is None:
        return None

    def make_draft() -> Draft | DraftSummary:
        dataset = load_sample(session.client) if sample is None else sample
        return draft_of(session.client, dataset.id, dataset.version)

    async def open_draft() -> None:
        draft = await asyncio.to_thread(make_draft)
        if not scope.say_if_ended("The review is started. It is on the Review page."):
            session.open(
                "review", dataset=draft.dataset_id, version=draft.dataset_version, draft=draft.id
            )

    return Write(open_draft, "Not started:", problem, refused=_REVIEW, scope=scope).start
