"""The way of a newcomer: six steps on the sample, each of which the reader's own press does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from steelyard.cli.samples import SAMPLES, sample_file
from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.families.wire import Family
from steelyard.named.wire import NamedDecision
from steelyard.review.wire import Draft, DraftSummary
from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.unseen import TabMemory
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.parts.datasets.next_steps import START
from steelyard_workbench.parts.families.labels import TRAINING, continue_of
from steelyard_workbench.parts.named.naming import CODE, name_family, open_new
from steelyard_workbench.parts.review.sending import SEAL, draft_of, open_draft

_REVIEW = "Review the sample"
#: Seconds of the window of recent answers.
_LATELY_S = 30 * 86_400.0
#: Rows that are looked at before a first fine-tune.
N_REVIEWED = 10
#: What a browser remembers: the check was read, the code was copied, and that the line was put away.
_CHECK, _CODE, _AWAY = "check", "code", "away"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The state of each step."""

    #: Whether something was asked since the server started, or is stored.
    has_answers: bool = False
    #: The one to review and to train on; ``None`` where the sample is not loaded yet.
    dataset: Dataset | None = None
    #: Its newest open review.
    draft: Draft | None = None
    #: The newest that has a model.
    family: Family | None = None
    training: Family | None = None
    #: The newest.
    decision: NamedDecision | None = None
    #: Whether requests name a decision.
    is_used: bool = False

    @property
    def n_reviewed(self) -> int:
        """Rows of the review that were looked at."""
        if self.draft is None:
            return 0
        states = self.draft.states
        return self.draft.rows - states.get("untouched", 0) - states.get("skipped", 0)

    @property
    def has_corrections(self) -> bool:
        """Whether the review makes a next version: rows that are right as they are do not."""
        states = {} if self.draft is None else self.draft.states
        return bool(states.get("relabelled", 0) + states.get("excluded", 0))


def find_beginning(
    client: Client,
    datasets: Sequence[Dataset],
    families: Sequence[Family],
    drafts: Sequence[Draft],
    decisions: Sequence[NamedDecision],
) -> Beginning:
    """Return how far the first steps have come; two calls more at most."""
    trained = [family for family in families if family.latest is not None]
    continued = ((family, continue_of(family)) for family in families)
    in_training = (family for family, now in continued if now is not None and now.state in TRAINING)
    # The sample, as long as there is no other dataset.
    own = [dataset for dataset in datasets if dataset.name not in SAMPLES]
    samples = [dataset for dataset in datasets if dataset.name == SAMPLES[0]]
    dataset = next(iter(own or samples), None)
    is_of = (draft for draft in drafts if dataset is not None and draft.dataset_id == dataset.id)
    lately: dict[str, Any] = {"since": time.time() - _LATELY_S, "bucket_s": 86_400}
    month = client.decision_summary(**lately)
    server = month.server
    return Beginning(
        has_answers=bool(month.answers or (server is not None and server.requests)),
        dataset=dataset,
        draft=next(is_of, None),
        family=max(trained, key=lambda family: family.created_at, default=None),
        training=next(in_training, None),
        decision=next(iter(decisions), None),
        is_used=any(
            client.decision_summary(**lately, named=each.name).answers for each in decisions[:1]
        ),
    )


class Steps(Boxed):
    """The line of steps of a visit, with the press that the next one takes; nothing once all are done."""

    def __init__(self, session: Session, beginning: Beginning, scope: Scope) -> None:
        super().__init__()
        self._session, self._beginning = session, beginning
        self._problem = stack()
        self._scope = scope
        self._name = Write(self._open_form, "Not opened:", self._problem, scope=scope).start
        has_rows = beginning.dataset is not None or sample_file(SAMPLES[0]) is not None
        # Without rows, nor an installed sample, there is nothing to review.
        self._review, self._finish = (
            Write(
                partial(self._open_draft, view),
                "Not started:",
                self._problem,
                refused=_REVIEW,
                scope=scope,
            ).start
            if has_rows
            else None
            for view in ("", SEAL)
        )
        self.memory = TabMemory(key="steelyard-steps", is_lasting=True)
        self.memory.param.watch(lambda _: self._draw(), "text")
        self.line = Choices([], level=2, layout="steps")
        self.leaving = Choices([], layout="row")
        self._draw()
        self._box = stack(self.memory, self.line, self._problem, self.leaving)

    async def _open_form(self) -> None:
        """Open the form of a decision, with the newest family's decisions."""
        if self._beginning.family is None:
            open_new(self._session, {})
        else:
            await name_family(self._session, self._beginning.family)

    async def _open_draft(self, view: str) -> None:
        """Open a draft of the rows to review, which are those of the sample at first."""
        client = self._session.client

        def make_draft() -> Draft | DraftSummary:
            dataset = self._beginning.dataset or load_sample(client)
            return draft_of(client, dataset.id, dataset.version)

        draft = await asyncio.to_thread(make_draft)
        if not self._scope.say_if_ended("The review is started. It is on the Review page."):
            open_draft(self._session, draft, view=view)

    def _remember(self, word: str, *, is_there: bool = True) -> None:
        words = {*self.memory.text.split(), word} - (set() if is_there else {word})
        self.memory.text = " ".join(sorted(words))

    def _draw(self) -> None:
        steps = self._steps()
        is_away, is_over = _AWAY in self.memory.text, all(done for _, done in steps)
        at = next((place for place, (_, done) in enumerate(steps) if not done), len(steps))
        self.line.visible = not is_away and not is_over
        self._session.first_step = f"Step {at + 1} of {len(steps)}" if self.line.visible else ""
        self.line.offer(
            [
                _step(step, "done" if done else "now" if place == at else "later")
                for place, (step, done) in enumerate(steps)
            ]
        )
        label = "Show the first steps" if is_away else "Put the first steps away"
        self.leaving.visible = not is_over
        self.leaving.offer([Choice(label, lambda: self._remember(_AWAY, is_there=not is_away))])

    def _steps(self) -> list[tuple[Choice, bool]]:
        """Return each step with its button, and whether it is done; a later one does those before."""
        session, first, memory = self._session, self._beginning, self.memory.text
        dataset, family, decision = first.dataset, first.family, first.decision
        name = "the sample" if dataset is None else dataset.name

        def ask() -> None:
            session.open("playground", named="")

        def check() -> None:
            self._remember(_CHECK)
            session.open("families", family="" if family is None else family.id)

        def use() -> None:
            self._remember(_CODE)
            session.open("decisions", named="" if decision is None else decision.name, view=CODE)

        def train() -> None:
            dataset_id = "" if dataset is None else dataset.id
            session.open("families", view=START, dataset=dataset_id, family="", job="")

        is_finished = dataset is not None and dataset.version > 1
        is_reviewed = is_finished or first.n_reviewed >= N_REVIEWED
        train_step = Choice("Train on it", train, text=f"on {name}, takes some minutes")
        if first.training is not None:
            see = partial(session.open, "families", family=first.training.id, job="")
            train_step = Choice("See how far it is", see, text="it is being trained")
        elif first.has_corrections and not is_finished and is_reviewed:
            # What was corrected is learned from once the version is finished.
            text = "so that it learns what you corrected"
            train_step = Choice("Finish the review", self._finish, text=text)
        is_known = family is not None
        is_named = decision is not None
        is_read = is_known and (is_named or _CHECK in memory)
        is_used = is_named and (first.is_used or _CODE in memory)
        is_own = dataset is not None and dataset.name not in SAMPLES
        review = f"Review {name}" if is_own else _REVIEW
        n = f"{min(first.n_reviewed, N_REVIEWED)} of {N_REVIEWED}"
        steps = [
            (
                "Ask",
                Choice("Ask a question", ask, text="an example is filled in"),
                first.has_answers,
            ),
            (
                f"Correct {N_REVIEWED}",
                Choice(review, self._review, text=f"{n}: texts with labels, by keys"),
                is_reviewed,
            ),
            ("Train", train_step, is_known),
            ("Read the check", Choice("See the check", check, text="is it better?"), is_read),
            (
                "Name it",
                Choice("Name a decision", self._name, text="programs call it by its name"),
                is_named,
            ),
            ("Use it", Choice("Copy the code", use, text="a line in your program"), is_used),
        ]
        # A model is trained on what was corrected; a name may come of a template, before all others.
        last = 3 if is_read else 2 if is_known else -1
        return [
            (replace(choice, title=title), done or place < last)
            for place, (title, choice, done) in enumerate(steps)
        ]


def _step(step: Choice, state: Literal["done", "now", "later"]) -> Choice:
    """Return a step as it stands in the line: the next one alone has a button."""
    if state == "now":
        return replace(step, look="filled", state=state)
    return replace(step, label="", text=step.text if state == "later" else "done", state=state)


def load_sample(client: Client) -> Dataset:
    """Make a dataset of the sample; raise ``FileNotFoundError`` when this installation has none."""
    file = sample_file(SAMPLES[0])
    if file is None:
        raise FileNotFoundError("This installation has no samples. Import a file instead.")
    return client.datasets.create(SAMPLES[0], file)
