"""A dataset's new rows, the rows and price of a fine-tune, and the rows themselves."""

from __future__ import annotations

import asyncio
import base64
import json

import msgspec
import pytest
from msgspec import UNSET

from steelyard import errors
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.datasets.ingesting import RowBounds
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import set_dataset_archived
from steelyard.datasets.uploads import Upload
from steelyard.decisions.tokens import count_input_tokens
from steelyard.decisions.validation import read_request
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.fine_tuning.tokens import RowTokens
from steelyard.families.lineage.fees import count_trained_tokens
from steelyard.families.lineage.plan import TuningBasis, TuningBounds
from steelyard.families.wire import Hyperparameters
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.scoring.hashing import WordCounter
from steelyard.storage import open_state
from steelyard.storage.frame_store import open_store
from steelyard.trainer.lora import TUNING_BATCH
from support.datasets.dataset_rows import make_row_dict, make_rows, to_ndjson
from support.servers.calling import upload_rows
from support.waiting import next_turn

ME = Caller(LOCAL_ACCOUNT, None, "full", "test")
ROUTE = "POST /v1/datasets"
PIXEL = {"id": 1, "media_type": "image/png", "data": base64.b64encode(b"image").decode()}


def basis_of(dataset_id, given):
    """Take a family's base and dataset out of a test's arguments."""
    names = TuningBasis.__struct_fields__
    chosen = {name: given.pop(name) for name in list(given) if name in names}
    plain = {"base": "hashing", "family": "router", "method": "sft"}
    return TuningBasis(dataset_id=dataset_id, **plain | chosen)


class Opened:
    """Datasets in a folder, and the rows of fine-tunes on them."""

    def __init__(self, folder, **given):
        self.state = open_state(f"sqlite:///{folder / 'state.sqlite'}")
        self.store = open_store(folder / "frames")
        self.datasets = DatasetService(
            self.state, self.store, KeyedWrites(self.state), bounds=RowBounds(1, 100_000)
        )
        bounds = TuningBounds(min_rows=4, max_rows=400)
        given = {"bounds": bounds, "lacking_for_lora": lambda: None, **given}
        self.rows = TuningRows(self.state, self.store, lambda _: (WordCounter(), 200), **given)

    def create(self, rows, evaluation=None):
        body = {"name": "n", "training": list(rows)}
        if evaluation is not None:
            body["evaluation"] = list(evaluation)
        return self._send(body)

    def create_evaluation(self, rows):
        return self._send({"name": "n", "evaluation": list(rows)})

    def _send(self, body):
        async def send():
            with Upload("json", {}, body=json.dumps(body).encode()) as upload:
                reply = await upload_rows(self.datasets, upload, caller=ME)
            return json.loads(reply.body)["id"]

        return asyncio.run(send())

    def add(self, dataset_id, rows):
        async def send():
            upload = Upload("jsonl", {})
            upload.add_file("examples").write(to_ndjson(rows))
            with upload:
                reply = await upload_rows(self.datasets, upload, dataset_id, caller=ME)
            return json.loads(reply.body)

        return asyncio.run(send())

    def plan(self, dataset_id, **given):
        basis = basis_of(dataset_id, given)
        return asyncio.run(self.rows.plan(ME, basis, **given))

    def growth(self, dataset_id, **given):
        basis = basis_of(dataset_id, given)
        return asyncio.run(self.rows.growth(ME, basis, **given))

    def select(self, dataset_id, version, trained, seed=3, learned=(), *, is_move=False):
        at = asyncio.run(self.datasets.dataset_at(ME, dataset_id, version))
        before = (
            None
            if trained is None
            else asyncio.run(self.datasets.dataset_at(ME, dataset_id, trained))
        )
        versions = [asyncio.run(self.datasets.dataset_at(ME, *one)) for one in learned]
        return list(self.rows.select(at, before, seed=seed, learned=versions, is_move=is_move))


@pytest.fixture
def opened(tmp_path):
    opened = Opened(tmp_path)
    yield opened
    opened.state.close()


def grow(opened):
    """A dataset of two versions: 24 + 6 rows, then 10 + 4 and a new row of an old context."""
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    opened.add(dataset_id, [*make_rows(16, 100), make_row_dict(**relabelled(1000))])
    at = asyncio.run(opened.datasets.dataset_at(ME, dataset_id))
    return dataset_id, at.split


def relabelled(number):
    (row,) = make_rows(1, number)
    return {"context": row["context"], "targets": {"route": "other", "refund": "no"}}


def test_a_first_fine_tune_takes_every_row(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    plan = opened.plan(dataset_id)
    assert plan.dataset_version == 1
    assert msgspec.to_builtins(plan.lineage) == {
        "new_training": 24,
        "earlier_training": 0,
        "new_evaluation": 6,
        "earlier_evaluation": 0,
        "judged_on": "new",
    }
    assert (plan.split.train_rows, plan.split.validation_rows) == (24, 6)
    assert plan.growth.evaluation_decisions == 12
    assert plan.hyperparameters.lora_rank == 0
    assert plan.hyperparameters.steps == 20
    assert plan.passes == pytest.approx(20 * 16 / 24)


def test_requested_settings_are_taken_and_the_rest_is_the_same_again(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    asked = Hyperparameters(steps=40, learning_rate=0.5, lora_rank=3, seed=2**62)
    plan = opened.plan(dataset_id, hyperparameters=asked)
    given = msgspec.to_builtins(asked)
    del given["judged_by"], given["heads"], given["first"]  # left out where nothing is named
    assert msgspec.to_builtins(plan.hyperparameters) == given
    assert opened.plan(dataset_id) == opened.plan(dataset_id)
    other = opened.plan(dataset_id, family="other")
    assert other.hyperparameters.seed != opened.plan(dataset_id).hyperparameters.seed
    assert other.hyperparameters.seed < 2**31


def test_features_of_heads_are_stored_unless_default(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    for heads, kept in ((None, UNSET), ("auto", UNSET), ("words", "words")):
        plan = opened.plan(dataset_id, hyperparameters=Hyperparameters(heads=heads))
        assert plan.hyperparameters.heads == kept
    with pytest.raises(errors.InvalidRequestError) as caught:
        opened.plan(dataset_id, hyperparameters=Hyperparameters(heads="words", lora_rank=8))
    assert [violation.path for violation in caught.value.violations] == [
        ("body", "hyperparameters", "lora_rank")
    ]


def test_words_answer_first_only_before_what_is_more_and_where_no_model_answers(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    first = Hyperparameters(first="words")
    plan = opened.plan(dataset_id, hyperparameters=first)
    assert plan.hyperparameters.first == "words"
    for asked, basis, why in (
        (Hyperparameters(first="words", heads="words"), {}, "words alone already"),
        (first, {"learned": ((dataset_id, 1),)}, "starts from a model"),
    ):
        with pytest.raises(errors.InvalidRequestError, match=why) as caught:
            opened.plan(dataset_id, hyperparameters=asked, **basis)
        assert [violation.path for violation in caught.value.violations] == [
            ("body", "hyperparameters", "first")
        ]


def test_tokens_are_those_of_the_rows_stepped_over(opened):
    rows = [make_row_dict(f"Invoice {'very ' * number}late.") for number in range(1, 31)]
    rows.append(make_row_dict({"subject": "Late", "lines": [1, 2]}))
    dataset_id = opened.create(rows, make_rows(5, 1000))
    plan = opened.plan(dataset_id, hyperparameters=Hyperparameters(steps=21))
    counter = WordCounter()
    tokens = [
        count_input_tokens(
            counter,
            row["context"],
            read_request({"context": "", "decisions": row["decisions"]}).decisions,
        )
        for row in rows
    ]
    assert plan.trained_tokens == count_trained_tokens(tokens, 21, TUNING_BATCH)


def test_a_continuation_takes_new_rows_and_as_many_earlier_ones(opened):
    dataset_id, split = grow(opened)
    n_new = split.training - 24
    plan = opened.plan(dataset_id, trained_version=1)
    assert plan.rows.new == n_new
    assert plan.rows.earlier == n_new
    assert plan.rows.evaluation == split.evaluation
    assert plan.split.train_rows == 2 * n_new
    # A row of a context that was judged on before, with other labels, is a new one.
    assert plan.lineage.earlier_evaluation == 6
    assert plan.lineage.new_evaluation == split.evaluation - 6
    assert plan.growth.evaluation_decisions == 2 * (split.evaluation - 6)
    again = opened.growth(dataset_id, trained_version=1)
    assert again == plan.growth


def test_a_move_to_another_base_takes_every_row_and_is_judged_on_the_same(opened):
    dataset_id, split = grow(opened)
    stays, moves = (
        opened.plan(dataset_id, trained_version=1, base=base, is_move=base != "hashing")
        for base in ("hashing", "double")
    )
    assert (moves.base, moves.is_move) == ("double", True)
    assert moves.rows.new == stays.rows.new == split.training - 24
    assert (stays.rows.earlier, moves.rows.earlier) == (stays.rows.new, 24)
    assert moves.split.train_rows == split.training > stays.split.train_rows
    assert moves.growth.evaluation_decisions == stays.growth.evaluation_decisions
    asked = Hyperparameters(steps=40)
    tokens = [
        opened.plan(dataset_id, hyperparameters=asked, **given).trained_tokens
        for given in ({}, {"trained_version": 1, "is_move": True})
    ]
    assert tokens[0] == tokens[1]
    again = opened.growth(dataset_id, trained_version=1, base="double", is_move=True)
    assert again == moves.growth
    with pytest.raises(errors.NoNewDataError):
        opened.plan(dataset_id, trained_version=2, is_move=True)


def test_a_move_has_the_bounds_of_a_first_fine_tune(opened):
    dataset_id = opened.create(make_rows(395), make_rows(6, 1000))
    opened.add(dataset_id, make_rows(12, 500))
    assert opened.plan(dataset_id, trained_version=1).split.train_rows < 30
    with pytest.raises(errors.TooManyRowsError, match=r"train on 40\d rows"):
        opened.plan(dataset_id, trained_version=1, is_move=True)


@pytest.mark.parametrize("is_move", [False, True])
def test_the_rows_given_are_those_that_were_planned(opened, is_move):
    dataset_id, split = grow(opened)
    plan = opened.plan(dataset_id, trained_version=1, is_move=is_move)
    rows = opened.select(dataset_id, 2, 1, plan.hyperparameters.seed, is_move=is_move)
    counted = {
        name: sum(row.group == group and row.side == side for row in rows)
        for name, group, side in (
            ("new_training", "new", "training"),
            ("earlier_training", "earlier", "training"),
            ("new_evaluation", "new", "evaluation"),
            ("earlier_evaluation", "earlier", "evaluation"),
        )
    }
    assert {**counted, "judged_on": "new"} == msgspec.to_builtins(plan.lineage)
    places = [row.row for row in rows if row.side == "training"]
    assert places == sorted(places)
    assert rows == opened.select(dataset_id, 2, 1, plan.hyperparameters.seed, is_move=is_move)
    others = opened.select(dataset_id, 2, 1, plan.hyperparameters.seed + 1, is_move=is_move)
    assert ([row.row for row in others] == [row.row for row in rows]) == is_move
    assert (places == list(range(split.training))) == is_move
    first = rows[0]
    assert first.targets is not None
    assert first.rewards is None
    assert {one["id"] for one in first.decisions} == {"route", "refund"}


def test_every_row_of_the_newest_version_can_be_asked_for_by_number(opened):
    dataset_id, split = grow(opened)
    assert opened.plan(dataset_id, version=1).split.train_rows == 24
    assert opened.plan(dataset_id, version=2).split.train_rows == split.training
    assert opened.plan(dataset_id, version=1).growth.version == 2


def test_rewards_that_are_equal_decide_nothing(opened):
    rewards = {"route": {"billing": 1, "support": 0, "other": 0}, "refund": {"yes": 2, "no": 2}}
    rows = [make_row_dict(f"Row {n}.", targets=..., rewards=rewards) for n in range(12)]
    dataset_id = opened.create(rows[:6], rows[6:])
    plan = opened.plan(dataset_id, method="reward")
    assert plan.growth.evaluation_decisions == 6
    assert opened.select(dataset_id, 1, None)[0].rewards is not None


def test_growth_of_a_dataset_that_cannot_be_worked_on_says_so(opened):
    dataset_id, _ = grow(opened)
    uncounted = opened.growth(dataset_id, counted=False)
    assert (uncounted.version, uncounted.rows, uncounted.evaluation_decisions) == (2, None, None)
    assert uncounted.added_at is not None
    assert opened.growth(dataset_id, trained_version=2).rows.new == 0
    assert opened.growth(dataset_id, trained_version=2, version=1).rows.new == 0
    assert opened.growth(dataset_id, version=9) == opened.growth(dataset_id)
    opened.state.write_now(lambda c: set_dataset_archived(c, dataset_id, 5.0))
    assert opened.growth(dataset_id).is_archived
    with pytest.raises(errors.DatasetArchivedError):
        opened.plan(dataset_id)
    asyncio.run(opened.datasets.delete(Write(ME), dataset_id))
    gone = opened.growth(dataset_id)
    assert (gone.is_deleted, gone.version, gone.added_at, gone.rows) == (True, 2, None, None)
    with pytest.raises(errors.DatasetDeletedError):
        opened.plan(dataset_id)
    with pytest.raises(errors.NotFoundError):
        opened.growth("ds_nothing")


def test_every_refusal_of_a_plan(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    with pytest.raises(errors.SupervisionMismatchError, match="targets"):
        opened.plan(dataset_id, method="reward")
    for version in (2, 2**63, 2**80):
        with pytest.raises(errors.NotFoundError):
            opened.plan(dataset_id, version=version)
    with pytest.raises(errors.NotFoundError):
        opened.plan("ds_nothing")
    with pytest.raises(errors.NoNewDataError):
        opened.plan(dataset_id, trained_version=1)
    with pytest.raises(errors.EvaluationOnlyError):
        opened.plan(opened.create_evaluation(make_rows(6)))
    with pytest.raises(errors.TooFewRowsError, match="3 training rows"):
        opened.plan(opened.create(make_rows(3), make_rows(3, 50)))
    with pytest.raises(errors.TooManyRowsError, match="401"):
        opened.plan(opened.create(make_rows(401), make_rows(3, 5000)))
    with pytest.raises(errors.ContextTooLongError, match="reads 200"):
        opened.plan(opened.create(make_rows(8), [make_row_dict("long " * 300)]))
    pictured = [make_row_dict("See <image:1>.", images=[PIXEL])]
    with pytest.raises(errors.ImagesNotSupportedError):
        opened.plan(opened.create([*make_rows(8), *pictured], make_rows(3, 50)))


def test_a_model_trained_to_ask_other_decisions_is_no_start(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    asked = {"id": "spam", "kind": "binary", "question": "Is it spam?"}
    rows = [
        make_row_dict(f"Row {n}.", decisions=[asked], targets={"spam": "yes"}) for n in range(12)
    ]
    other = opened.create(rows[:8], rows[8:])
    with pytest.raises(errors.DatasetMismatchError):
        opened.plan(dataset_id, learned=[(other, 1)])
    same = opened.create(make_rows(9, 300), make_rows(6, 2000))
    assert opened.plan(dataset_id, learned=[(same, 1)]) == opened.plan(dataset_id)
    assert opened.plan(dataset_id, learned=[("ds_gone", 1)]) == opened.plan(dataset_id)


def test_rows_of_the_parents_training_are_seen(opened):
    # The same rows sent again have other sides: of what the first trained on, some judge here.
    first = opened.create(make_rows(24), make_rows(6, 1000))
    second = opened.create(make_rows(30, 12), [*make_rows(5), *make_rows(7, 1000)])
    learned = [(first, 1)]
    plan = opened.plan(second, learned=learned)
    assert plan.lineage.new_evaluation == plan.split.validation_rows == 7
    assert opened.plan(second).lineage.new_evaluation == 12
    growth = opened.growth(second, learned=learned)
    assert (growth.rows.evaluation, growth.evaluation_decisions) == (7, 14)
    rows = opened.select(second, 1, None, learned=learned)
    assert [row.is_seen for row in rows if row.side == "training"] == [True] * 12 + [False] * 18
    judged = {row.context for row in rows if row.side == "evaluation"}
    assert judged == {row["context"] for row in make_rows(7, 1000)}
    assert not any(row.is_seen for row in opened.select(second, 1, None))
    # A continued family judges on what it has judged on, and on no more of what it learned from.
    opened.add(second, make_rows(9, 500))
    split = asyncio.run(opened.datasets.dataset_at(ME, second)).split
    lineage = opened.plan(second, trained_version=1, learned=[(second, 1), *learned]).lineage
    assert lineage.earlier_evaluation == 7
    assert lineage.new_evaluation == split.evaluation - 12


def test_a_relabelled_context_is_none_that_the_parent_has_not_seen(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    opened.add(dataset_id, [make_row_dict(**relabelled(3)), *make_rows(8, 100)])
    rows = opened.select(dataset_id, 2, 1, learned=[(dataset_id, 1)])
    told = {row.row: (row.group, row.is_seen) for row in rows if row.side == "training"}
    again = next(row for row in rows if row.context == relabelled(3)["context"] and row.row >= 24)
    assert told[again.row] == ("new", True)
    others = {told[place] for place in told if place >= 24 and place != again.row}
    assert others == {("new", False)}
    assert {told[place] for place in told if place < 24} == {("earlier", True)}


def test_lora_without_its_packages_names_them(tmp_path):
    opened = Opened(tmp_path, lacking_for_lora=lambda: "Install steelyard[train].")
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    assert opened.plan(dataset_id).hyperparameters.lora_rank == 0
    with pytest.raises(errors.TrainingUnavailableError, match="Install"):
        opened.plan(dataset_id, hyperparameters=Hyperparameters(lora_rank=4))
    opened.state.close()


def test_evidence_without_a_reader_names_the_package(tmp_path):
    opened = Opened(tmp_path, has_reader=lambda: False)
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    with pytest.raises(errors.TrainingUnavailableError, match="steelyard-reader-1"):
        opened.plan(dataset_id, hyperparameters=Hyperparameters(heads="evidence"))
    opened.state.close()


class SlowCounter(WordCounter):
    def __init__(self):
        super().__init__()
        self.n_counted = 0

    def count(self, text):
        self.n_counted += 1
        return super().count(text)


def test_tokens_are_counted_once_and_a_long_count_is_not_waited_for(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    at = asyncio.run(opened.datasets.dataset_at(ME, dataset_id))
    parts = at.manifest.parts_of("training")
    counter = SlowCounter()

    async def refused_then_counted():
        tokens = RowTokens(opened.store, wait_s=0.0)
        with pytest.raises(errors.TokensCountingError) as refused:
            await tokens.of(parts, counter)
        assert refused.value.retryable
        while True:
            try:
                return await tokens.of(parts, counter)
            except errors.TokensCountingError:
                await next_turn()

    counts = asyncio.run(refused_then_counted())
    n_counted = counter.n_counted
    assert len(counts) == 24
    again = asyncio.run(RowTokens(opened.store).of(parts, counter))
    assert again.tolist() == counts.tolist()
    assert counter.n_counted == n_counted
    # A file that is not what it should be is made again.
    (name,) = (name for name in opened.store.names() if ".tokens-" in name)
    opened.store.put_beside(name, msgspec.json.encode([]))
    again = asyncio.run(RowTokens(opened.store).of(parts, counter))
    assert again.tolist() == counts.tolist()
    assert counter.n_counted > n_counted
    # It goes with its rows.
    asyncio.run(opened.datasets.delete(Write(ME), dataset_id))
    opened.store.sweep(set(), older_than_s=0)
    assert opened.store.names() == []


def test_a_failed_count_reaches_the_next_caller(opened):
    dataset_id = opened.create(make_rows(24), make_rows(6, 1000))
    at = asyncio.run(opened.datasets.dataset_at(ME, dataset_id))
    parts = at.manifest.parts_of("training")

    class Broken(WordCounter):
        def count(self, text):
            raise errors.StorageUnavailableError("No.")

    async def ask():
        tokens = RowTokens(opened.store, wait_s=0.0)
        told = []
        while len(told) < 2:
            try:
                await tokens.of(parts, Broken())
            except (errors.TokensCountingError, errors.StorageUnavailableError) as error:
                if type(error) not in told:
                    told.append(type(error))
                await next_turn()
        with pytest.raises(errors.StorageUnavailableError):
            await RowTokens(opened.store).of(parts, Broken())
        return told

    assert asyncio.run(ask()) == [errors.TokensCountingError, errors.StorageUnavailableError]
