"""After sealing a draft: its version, the same models scored on it, a family grown on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

import panel as pn
from panel.viewable import Viewable

from steelyard.evaluations.wire import Evaluation
from steelyard.families.wire import Family
from steelyard.review.wire import Draft, SealedDraft
from steelyard_workbench.kit import corner
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.views import refused_button
from steelyard_workbench.parts.datasets.next_steps import START
from steelyard_workbench.parts.families.labels import CANNOT_CONTINUE, CONTINUE, continue_of

#: Evaluations among which those of the version that was evaluated last are looked for.
_MOST_EVALUATIONS = 50


class AfterSealing(Boxed):
    """Buttons for the next steps; those that ask the server first come once it has answered."""

    def __init__(self, session: Session, draft: Draft, sealed: SealedDraft) -> None:
        super().__init__()
        self._session, self._draft, self._sealed = session, draft, sealed
        self._problem = stack()
        self.evaluate = Write(
            self._evaluate, "Not evaluated:", self._problem, refused="Evaluate again"
        )
        self.part = Loaded("What comes next", self._fetch, self._show, n_lines=1)
        go = action_button(
            f"Open version {sealed.version}",
            lambda _: session.open("versions", dataset=sealed.dataset_id, version=sealed.version),
        )
        self._box = stack(pn.Row(go, self.part), self._problem)

    def _fetch(self) -> tuple[list[str], list[Family]]:
        """Return the models that were scored last, and the families that grow on the dataset."""
        client = self._session.client
        scored = islice(client.evaluations.list(self._draft.dataset_id), _MOST_EVALUATIONS)
        families = client.families.list().data
        return last_models(list(scored)), [
            family for family in families if family.dataset_id == self._sealed.dataset_id
        ]

    def _show(self, answers: tuple[list[str], list[Family]]) -> Viewable:
        models, families = answers
        evaluate = action_button("Evaluate it", lambda _: self._open_evaluations())
        if models:
            again, names = lambda _: self.evaluate.start(models), ", ".join(models)
            evaluate = action_button("Evaluate again", again, description=names)
        learn = [self._offer(family) for family in families] or [self._offer_training()]
        return pn.FlexBox(*learn, evaluate, align_items="center")

    def _offer_training(self) -> Viewable:
        """Return the button that begins a family on the dataset."""
        dataset = self._sealed.dataset_id
        return action_button(
            "Train on it",
            lambda _: self._session.open(
                "families", view=START, dataset=dataset, family="", job=""
            ),
            variant="contained",
        )

    def _offer(self, family: Family) -> Viewable:
        label, continuation = f"Continue {family.id}…", continue_of(family)
        if continuation is not None and continuation.state in CANNOT_CONTINUE:
            return refused_button(label, [CANNOT_CONTINUE[continuation.state]])
        return action_button(
            label,
            lambda _: self._session.open("families", view=CONTINUE, family=family.id, job=""),
            variant="contained",
        )

    async def _evaluate(self, models: list[str]) -> None:
        evaluation = await asyncio.to_thread(
            self._session.client.evaluations.create, self._sealed.dataset_id, models
        )
        self._problem[:] = []
        if (self._session.page, self._session.draft) == ("review", self._draft.id):
            self._open_evaluations()
        else:
            corner.say(
                f"{evaluation.queued:,} evaluations started; they are on the Evaluations page."
            )

    def _open_evaluations(self) -> None:
        self._session.open("evaluations", dataset=self._sealed.dataset_id, version=0, evaluation="")


def last_models(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the names of the models that the newest evaluated version was scored with."""
    names = [
        evaluation.named if isinstance(evaluation.named, str) else evaluation.model_id
        for evaluation in evaluations
        if evaluation.dataset_version == evaluations[0].dataset_version
    ]
    return list(dict.fromkeys(names))
