"""A review's corrections reach a family's next model: its rows, and its gate."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.errors import NoNewDataError, NoNewRowsError
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.lineage.continuing import continue_state, continue_to_wire
from steelyard.families.lineage.lineage import Lineage
from steelyard.families.lineage.plan import TuningBasis, TuningBounds
from steelyard.scoring.hashing import WordCounter
from support.datasets.dataset_rows import OUTCOMES, make_rows
from support.families.lineage_cases import at, grow
from support.review.opened_drafts import CALLER, Opened, exclude, relabel

N_ROWS = 60


class Corrected(Opened):
    """A family's dataset, and drafts of it."""

    def __init__(self, folder):
        super().__init__(folder)
        bounds = TuningBounds(min_rows=4)
        self.tuning = TuningRows(
            self.state, self.store, lambda _: (WordCounter(), 200), bounds=bounds
        )
        self.dataset_id = self.create(make_rows(N_ROWS), evaluation_fraction="0.4")["id"]
        self.basis = TuningBasis(
            base="hashing",
            family="ant",
            dataset_id=self.dataset_id,
            method="sft",
            trained_version=1,
        )
        at_first = asyncio.run(self.datasets.dataset_at(CALLER, self.dataset_id))
        self.places = {
            "training": [row.index for row in self.datasets.side_rows(at_first, "training")],
            "evaluation": [row.index for row in self.datasets.evaluation_rows(at_first)],
        }
        self.labels = {row.index: row.labels for row in self.download(self.dataset_id)}

    def correct(self, *places, left_out=()):
        """Return a draft that gives rows the next route, and leaves others out."""
        draft_id = self.draft(self.dataset_id)
        edits = [relabel(place, self._next(place)) for place in places]
        edits += [exclude(place) for place in left_out]
        self.edit(draft_id, *edits)
        return draft_id

    def _next(self, place):
        routes = OUTCOMES["route"]
        right = max(self.labels[place]["route"], key=self.labels[place]["route"].get)
        return routes[(routes.index(right) + 1) % 3]

    def growth(self, **given):
        return asyncio.run(self.tuning.growth(CALLER, self.basis, **given))

    def foresee(self, draft_id):
        return self.growth(ahead=asyncio.run(self.seals.preview(CALLER, draft_id)))

    def select(self):
        versions = [
            asyncio.run(self.datasets.dataset_at(CALLER, self.dataset_id, version))
            for version in (None, 1)
        ]
        return list(self.tuning.select(*versions, seed=3))


@pytest.fixture
def opened(tmp_path):
    opened = Corrected(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("n_training", "n_evaluation", "n_added", "judged_on", "state"),
    [
        (4, 3, 0, "all", "new_data"),
        (4, 20, 0, "new", "new_data"),
        (0, 3, 0, "all", "no_new_data"),
        (4, 3, 2, "all", "new_data"),
        (4, 3, 7, "new", "not_enough_evaluation_data"),
    ],
)
def test_corrections_count_by_their_changes(
    opened, n_training, n_evaluation, n_added, judged_on, state
):
    sides = opened.places
    places = [*sides["training"][:n_training], *sides["evaluation"][:n_evaluation]]
    draft_id = opened.correct(*places)
    foreseen = opened.foresee(draft_id)
    opened.seal(draft_id, "version")
    assert foreseen.version == 2
    assert foreseen.changes == opened.growth().changes
    assert foreseen.evaluation_decisions == opened.growth().evaluation_decisions == n_evaluation
    if n_added:
        opened.add(opened.dataset_id, make_rows(n_added, 5000))
    growth = opened.growth()
    assert growth.changes.added == n_added
    assert growth.judged_on == judged_on
    lineage = grow(Lineage(), "ant", 1)
    family = lineage.families["ant"]
    assert continue_state(lineage, family, growth, at()) == state
    told = continue_to_wire(lineage, family, growth, at())
    assert told.judged_on == judged_on
    reasons = " ".join(told.reasons)
    assert ("present labels" in reasons) == (judged_on == "all" and state == "new_data")
    assert ("more evaluation decisions" in reasons) == (state == "not_enough_evaluation_data")
    rows = opened.select()
    corrected = [row for row in rows if row.earlier_decisions]
    assert [row.earlier_decisions for row in corrected] == [["refund"]] * n_evaluation
    assert {(row.side, row.group) for row in corrected} <= {("evaluation", "new")}
    assert sum(row.side == "training" and row.group == "new" for row in rows) == growth.rows.new


def test_a_label_that_is_set_back_is_no_news(opened):
    place = opened.places["evaluation"][0]
    opened.seal(opened.correct(place), "version")
    changed = max(row.index for row in opened.download(opened.dataset_id))
    assert opened.growth().evaluation_decisions == 1
    draft_id = opened.draft(opened.dataset_id)
    right = max(opened.labels[place]["route"], key=opened.labels[place]["route"].get)
    opened.edit(draft_id, relabel(changed, right))
    opened.seal(draft_id, "version")
    assert opened.growth().evaluation_decisions == 0
    assert {row.group for row in opened.select() if row.side == "evaluation"} == {"earlier"}


def test_rows_left_out_are_a_change_and_others_are_trained_on(opened):
    draft_id = opened.correct(left_out=opened.places["training"][:3])
    growth = opened.foresee(draft_id)
    assert (growth.rows.new, growth.rows.earlier, growth.judged_on) == (0, 3, "all")
    opened.seal(draft_id, "version")
    plan = asyncio.run(opened.tuning.plan(CALLER, opened.basis))
    assert (plan.split.train_rows, plan.lineage.judged_on) == (3, "all")
    assert sum(row.side == "training" for row in opened.select()) == 3


def test_a_draft_that_changes_nothing_makes_no_version(opened):
    draft_id = opened.draft(opened.dataset_id)
    with pytest.raises(NoNewRowsError):
        opened.foresee(draft_id)
    with pytest.raises(NoNewDataError):
        asyncio.run(opened.tuning.plan(CALLER, opened.basis))
