"""Sealing a draft: its changes, whether it becomes a next version or a dataset of its own, and what comes next."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.errors import SteelyardError
from steelyard.evaluations.wire import Evaluation
from steelyard.families.wire import Continue, Family
from steelyard.review.duties_wire import DraftAgreement
from steelyard.review.outcomes_wire import DraftOutcomes
from steelyard.review.wire import Draft, SealAs, SealedDraft
from steelyard_workbench.kit import corner
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.dialogs import DrawnDialog
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import Problem, problem_of, typed
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.views import failed, refused_button, table, verdict
from steelyard_workbench.parts.datasets.next_steps import START
from steelyard_workbench.parts.families.labels import CANNOT_CONTINUE, CONTINUE, continue_of

_VERSION, _DATASET = "The next version of its dataset", "A new dataset"
_STATES = {
    "relabelled": "rows get another label",
    "excluded": "rows are left out",
    "accepted": "rows were accepted as they are",
    "skipped": "rows were skipped, and stay as they are",
    "untouched": "rows were not looked at, and stay as they are",
}
#: Outcomes without rows whose names are shown.
_MOST_NAMES = 8
_UNSETTLED = (
    "Edits that are being sent, or that conflict with somebody else's, would be "
    "missing. Finish once all are sent and settled."
)
#: Evaluations among which those of the version that was evaluated last are looked for.
_MOST_EVALUATIONS = 50


@dataclass(frozen=True, slots=True)
class DraftChanges:
    """A draft's changes, its unsettled rows, and the effect on families."""

    draft: Draft
    agreement: DraftAgreement
    growths: Mapping[str, Continue]
    outcomes: DraftOutcomes

    @property
    def n_renamed(self) -> int:
        """Outcomes that get another name, or are merged into another."""
        return sum(
            outcome.name != outcome.outcome or outcome.same_as is not None
            for decision in self.outcomes.data
            for outcome in decision.outcomes
        )

    @property
    def n_guided(self) -> int:
        """Decisions that get another guideline."""
        return sum(decision.has_new_guideline for decision in self.outcomes.data)

    @property
    def unused(self) -> list[str]:
        """Outcomes that no row has, of decisions of which two others are left."""
        unused: list[str] = []
        for decision in self.outcomes.data:
            rows: Counter[str] = Counter()
            for outcome in decision.outcomes:
                rows[outcome.name] += outcome.rows
            empty_names = [name for name, count in rows.items() if not count]
            if decision.fixed is None and len(rows) - len(empty_names) > 1:
                unused += empty_names
        return unused


class SealDialog(DrawnDialog):
    """Asks for the form of a draft's result, and seals it."""

    def __init__(
        self,
        client: Client,
        draft_id: str,
        *,
        n_waiting: Callable[[], int],
        on_sealed: Callable[[Draft], None],
    ) -> None:
        self._client, self._draft_id = client, draft_id
        self._n_waiting, self._on_sealed = n_waiting, on_sealed
        self._draft = Loaded("The review", self._fetch, self._show)
        self._is_waiting = False
        self._as = pmui.RadioBoxGroup(
            label="Finish as", options=[_VERSION, _DATASET], value=_VERSION
        )
        self._name = pmui.TextInput(label="Name of the new dataset", sizing_mode="stretch_width")
        self._name.visible = False
        self.drop = pmui.Checkbox(label="", value=False, visible=False)
        self._said = stack()
        self.button = pmui.Button(label="Finish", variant="contained")
        self.seal = Write(self._send, on_failure=self._show_failure, fields={"name": self._name})
        self.button.on_click(self.seal.on_event)
        cancel = action_button("Cancel", lambda _: self.close())
        super().__init__(
            "Finish the review",
            self._draft.__panel__(),
            self._as,
            self._name,
            self.drop,
            self._said,
            pn.Row(self.button, cancel),
            width=520,
        )

    def ask(self) -> None:
        """Show the draft's changes, and ask."""
        self.open()
        self.drop.param.update(value=False, visible=False)
        self._said[:] = []
        self.fit_waiting()
        if not self._is_waiting:
            self._draft.start()

    def fit_waiting(self) -> None:
        """Note how many edits are no part of the draft yet: it is sealed with all of them."""
        if not self.is_open or self.button.loading:
            return
        n_waiting, was_waiting = self._n_waiting(), self._is_waiting
        self._is_waiting = bool(n_waiting)
        self._fit_button()
        if n_waiting:
            edits = "1 edit is" if n_waiting == 1 else f"{n_waiting} edits are"
            self._said[:] = [verdict("unsure", f"{edits} not part of the review yet.", _UNSETTLED)]
        elif was_waiting:
            self._said[:] = []
            self._draft.start()

    def choose(self, sealed_as: SealAs, name: str = "") -> None:
        """Select the form of the result."""
        self._as.value = _VERSION if sealed_as == "version" else _DATASET
        self._name.param.update(value=name, value_input=name)

    @property
    def _sealed_as(self) -> SealAs:
        return "version" if self._as.value == _VERSION else "dataset"

    async def _send(self) -> None:
        as_, draft = self._sealed_as, self._draft.data
        self._said[:] = []
        sealed = await asyncio.to_thread(
            self._client.drafts.seal,
            self._draft_id,
            as_,
            (typed(self._name) or None) if as_ == "dataset" else None,
            revision=None if draft is None else draft.draft.revision,
            drop_outcomes=bool(self.drop.value),
        )
        self.close()
        self._on_sealed(sealed)

    def _show_failure(self, error: Exception) -> Problem:
        problem = problem_of(error, "Not finished:")
        self._said[:] = [failed(problem)]
        return problem

    @param.depends("seal.is_running", watch=True)
    def _show_running(self) -> None:
        self.button.loading = self.seal.is_running
        self._fit_button()

    @param.depends("_draft.state", watch=True)
    def _fit_button(self) -> None:
        # What is loaded comes in above the button, and moves it from under the mouse.
        is_loading = self._draft.state == "loading"
        self.button.disabled = self.seal.is_running or self._is_waiting or is_loading

    @param.depends("_as.value", watch=True)
    def _fit(self) -> None:
        self._name.visible = self._as.value == _DATASET

    def _fetch(self) -> DraftChanges:
        drafts = self._client.drafts
        draft = drafts.get(self._draft_id)
        return DraftChanges(
            draft,
            drafts.agreement(self._draft_id),
            self._fetch_growths(draft),
            drafts.outcomes(self._draft_id),
        )

    def _fetch_growths(self, draft: Draft) -> dict[str, Continue]:
        """Return the effect of continuing each family of the dataset once the draft is sealed."""
        families = self._client.families
        try:
            names = [
                family.id
                for family in families.list().data
                if family.dataset_id == draft.dataset_id
            ]
            return {name: families.check_continue(name, draft_id=draft.id) for name in names}
        except SteelyardError:  # nothing is changed yet, or it cannot follow: sealing says which
            return {}

    def _show(self, changes: DraftChanges) -> Viewable:
        draft, agreement = changes.draft, changes.agreement
        states = {meaning: draft.states.get(state, 0) for state, meaning in _STATES.items()}
        states["rows have a note"] = draft.noted
        rows = [(f"{n:,}", meaning) for meaning, n in states.items() if n]
        if changes.n_renamed:
            rows.append((f"{changes.n_renamed:,}", "answers get another name or are merged"))
        if changes.n_guided:
            rows.append((f"{changes.n_guided:,}", "decisions get another guideline in all rows"))
        if changes.unused:
            names = ", ".join(changes.unused[:_MOST_NAMES])
            rest = len(changes.unused) - _MOST_NAMES
            more = f" and {rest:,} more" if rest > 0 else ""
            self.drop.param.update(
                label=f"Leave out answers that no row has: {names}{more}", visible=True
            )
        if agreement.blind > agreement.answered:
            n_waiting = agreement.blind - agreement.answered
            rows.append((f"{n_waiting:,}", "rows wait for two reviewers, and keep their label"))
        if agreement.to_adjudicate:
            rows.append((f"{agreement.to_adjudicate:,}", "rows are disputed, and keep their label"))
        counts = table(
            ("rows", f"of the {draft.rows:,} of version {draft.dataset_version}"),
            rows,
            label="What the review changes",
            numbers=(0,),
        )
        growths = [_describe_growth(name, growth) for name, growth in changes.growths.items()]
        return stack(counts, *growths)


def _describe_growth(name: str, growth: Continue) -> Viewable:
    """Show whether a family could continue on the next version, how the gate judges, and missing rows."""
    reasons = " ".join(growth.reasons)
    if growth.state in {"new_data", "retry"}:
        return verdict("good", f"{name} can continue on it.", reasons)
    if growth.state in CANNOT_CONTINUE and not reasons:
        reasons = f"Now: {CANNOT_CONTINUE[growth.state]}."
    return verdict("unsure", f"{name} cannot continue on it yet.", reasons)


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
