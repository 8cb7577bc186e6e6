"""The Compare page: changes with intervals, flips and their contexts, and refusals."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.errors import NotFoundError
from steelyard.evaluations.wire import Change, Unpaired
from steelyard.wire.measures import Measure
from support.browser.shown_parts import named, texts
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import settings_of

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.words import measure_text, share_text
from steelyard_workbench.pages.compare.page import (
    ComparePage,
    judged,
    old_and_new,
    rows_to_settle,
    show_unpaired,
    side_text,
)
from steelyard_workbench.pages.evaluations.page import EvaluationsPage
from steelyard_workbench.pages.review.page import ReviewPage
from steelyard_workbench.parts.evaluations.charts import ForestRow, sliced_changes
from steelyard_workbench.parts.evaluations.scored import context_text, filter_from
from steelyard_workbench.parts.review.sending import draft_at

GIVEN = {"base_models": "second=hashing", "dataset_min_rows": 1}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with steelyard.embed(home, engine="hashing", jobs="off", **GIVEN) as running:
        yield running


@pytest.fixture(scope="module")
def pair(server):
    """A dataset and two evaluations of it; and one that has a single evaluation."""
    client = server.client
    training = make_rows(6, start=100)
    both = client.datasets.create("tickets", training=training, evaluation=make_rows(40))
    single = client.datasets.create("single", evaluation=make_rows(5, start=60))
    with open_worker(settings_of(server.home, **GIVEN)):
        first, second = client.evaluations.create(both.id, ["hashing", "second"]).data
        [other] = client.evaluations.create(single.id, "hashing").data
        for one in (first, second, other):
            client.evaluations.wait(one, timeout_s=60, progress=False)
    return SimpleNamespace(
        dataset=both.id, before=first.id, after=second.id, single=single.id, other=other.id
    )


def opened(server, **chosen):
    page = ComparePage(Session(server.client, page="compare", **chosen))
    page.open()
    return page


def test_changes_have_intervals_and_n(server, pair):
    page = opened(server, dataset=pair.dataset, before=pair.before, after=pair.after)
    told = texts(page.__panel__())
    found = server.client.evaluations.compare(pair.before, pair.after)
    flips = found.overall.flips
    assert "80 answers to 40 texts, by both" in told
    assert f"{flips.fixed} fixed · {flips.broken} broken" in told
    assert "→" in told
    assert told.count("of 80)") >= 5
    assert "McNemar" in told
    for one in (pair.before, pair.after):
        overall = server.client.evaluations.detail(one).overall
        assert share_text(overall.accuracy) in told
        assert measure_text(overall.loss) in told


def test_a_side_that_scored_more_has_no_interval_of_the_pairs():
    alone = Measure(value=0.7, low=0.6, high=0.8, n=90)
    assert side_text("accuracy", 0.5, alone, 80) == "50 % (of 80)"
    assert side_text("loss", 0.7, alone, 90) == "0.700 (0.600 to 0.800, n = 90)"


def test_two_numbers_of_a_family_are_compared_first_the_older_at_the_left():
    def run(id_, family, rows="a"):
        return SimpleNamespace(id=id_, model_name=family, evaluation_sha256=rows)

    runs = [
        run("5", "other"),
        run("4", "desk"),
        run("3", None),
        run("2", "desk"),
        run("1", "desk", "b"),
    ]
    assert old_and_new(runs, "", "") == ("2", "4")
    assert old_and_new(runs[:1] + runs[2:3], "", "") == ("3", "5")
    assert old_and_new(runs, "", "3") == ("2", "3")
    assert old_and_new(runs, "1", "") == ("1", "5")
    assert old_and_new(runs, "5", "1") == ("5", "1")  # chosen by somebody
    assert old_and_new(runs, "", "1") == ("5", "1")


def test_the_newest_two_are_compared_when_none_is_named(server, pair):
    page = opened(server, dataset=pair.dataset)
    assert page.comparison.state == "shown"
    assert "Not the same rows" not in texts(page.__panel__())


def test_the_pair_that_is_shown_is_in_the_address(server, pair):
    page = opened(server, dataset=pair.dataset)
    newest = [one.id for one in server.client.evaluations.list(pair.dataset)]
    assert [page.session.after, page.session.before] == newest
    page.close()
    assert (page.session.before, page.session.after) == ("", "")


def test_a_pair_that_was_chosen_is_kept_until_another_dataset_is(server, pair):
    page = opened(server, dataset=pair.dataset, before=pair.after, after=pair.before)
    page.close()
    assert (page.session.before, page.session.after) == (pair.after, pair.before)
    page.session.dataset = pair.single
    page.open()
    assert "there is one." in texts(page.__panel__())


def test_a_dataset_that_is_not_there_is_said(server, pair):
    page = opened(server, dataset="ds_none")
    assert "There is no dataset “ds\\_none”" in texts(page.__panel__())
    [select] = named(page.__panel__(), "Dataset")
    select.value = pair.dataset
    assert page.comparison.state == "shown"


def test_another_dataset_is_chosen_at_its_newest_version(server, pair):
    page = opened(server, dataset=pair.dataset, version=1)
    [select] = named(page.__panel__(), "Dataset")
    select.value = pair.single
    assert (page.session.dataset, page.session.version) == (pair.single, 0)


def test_flips_of_each_kind_come_with_their_contexts(server, pair):
    page = opened(server, dataset=pair.dataset, before=pair.before, after=pair.after)
    found = server.client.evaluations.compare(pair.before, pair.after)
    assert page.flips.counts["changed"] == found.changed_total
    for kind, count in page.flips.counts.items():
        page.flips.kind.value = kind
        assert page.flips.table.total == count
        if count:
            assert all("Invoice" in text for text in page.flips.table.rows["context"])
            assert page.on_key("next", 1)
            assert "Invoice" in texts(page.flips._read)
        else:
            assert f"0 {kind}: " in texts(page.flips.__panel__())


def test_a_decision_in_the_forest_shows_its_flips_and_another_slice_its_rows(server, pair):
    page = opened(server, dataset=pair.dataset, before=pair.before, after=pair.after)
    row = ForestRow("decision = refund", 0.0, None, None, 1, by="decision", of="refund")
    page._open_slice(row, pair.after)
    assert {one.decision_id for one in page.flips.shown} <= {"refund"}
    assert "decision refund" in texts(page.flips.__panel__())
    page._open_slice(
        ForestRow("kind = single", 0.0, None, None, 1, by="kind", of="single"), pair.after
    )
    assert (page.session.page, page.session.evaluation) == ("evaluations", pair.after)
    assert filter_from(page.session.query).slice == "single"


def test_slices_are_sorted_by_the_worst_that_may_be(server, pair):
    found = server.client.evaluations.compare(pair.before, pair.after)
    rows = [row for row in sliced_changes("accuracy", found.groups) if not row.is_small]
    assert [row.low for row in rows] == sorted(row.low for row in rows)


def test_swapping_turns_the_changes_round(server, pair):
    page = opened(server, dataset=pair.dataset, before=pair.before, after=pair.after)
    change = page.comparison.data.overall.accuracy.change
    [swap] = named(page.__panel__(), "Swap")
    swap.clicks += 1
    assert (page.session.before, page.session.after) == (pair.after, pair.before)
    assert page.comparison.data.overall.accuracy.change == -change


def test_the_same_evaluation_twice_changes_nothing(server, pair):
    page = opened(server, dataset=pair.dataset, before=pair.after, after=pair.after)
    told = texts(page.__panel__())
    assert "Both sides are the same evaluation" in told
    assert "No change" in told
    assert page.flips.table.total == 0


def test_evaluations_without_a_row_in_common_are_a_failure_of_that_part(server, pair):
    page = opened(server, dataset=pair.dataset, before=pair.before, after=pair.other)
    assert page.parts[0].state == "shown"
    assert page.comparison.state == "failed"
    assert "not_measurable" in texts(page.__panel__())


def test_one_evaluation_is_too_few_and_leads_to_evaluating(server, pair):
    page = opened(server, dataset=pair.single, query="{}", view="slices")
    assert "there is one." in texts(page.__panel__())
    [go] = named(page.__panel__(), "Evaluate models")
    go.clicks += 1
    assert (page.session.page, page.session.query, page.session.view) == ("evaluations", "", "")


def test_no_dataset_leads_to_the_datasets_page():
    none = SimpleNamespace(list=lambda **_: SimpleNamespace(data=[]))
    page = ComparePage(Session(SimpleNamespace(datasets=none)))
    page.open()
    assert "No datasets yet" in texts(page.__panel__())


def test_rows_that_only_one_has_are_warned_of(server, pair):
    found = server.client.evaluations.compare(pair.before, pair.after)
    assert show_unpaired(found) == []
    uneven = msgspec.structs.replace(found, unpaired=Unpaired(before=3, after=0))
    [warning] = show_unpaired(uneven)
    assert "3 decisions are in the evaluation before alone and 0 in the one after" in (
        texts(warning)
    )


@pytest.mark.parametrize(
    ("measure", "low", "high", "word"),
    [
        ("accuracy", 0.01, 0.03, "better"),
        ("accuracy", -0.03, -0.01, "worse"),
        ("loss", -0.03, -0.01, "better"),
        ("loss", 0.01, 0.03, "worse"),
        ("accuracy", -0.01, 0.03, "not proven: it may be better or worse"),
        ("ece", 0.0, 0.0, "no change"),
        ("accuracy", None, None, "cannot be told: no interval: one context"),
    ],
)
def test_a_change_is_judged_by_its_interval(measure, low, high, word):
    change = Change(before=0.5, after=0.5, change=0.0, low=low, high=high, n=10)
    assert judged(measure, change)[1] == word


def test_an_inconclusive_change_says_how_many_decisions_would_settle_it():
    change = Change(before=0.5, after=0.51, change=0.01, low=-0.01, high=0.03, n=100)
    assert rows_to_settle(change) == 400
    assert rows_to_settle(msgspec.structs.replace(change, change=0.0)) is None
    assert rows_to_settle(msgspec.structs.replace(change, low=None)) is None
    assert rows_to_settle(msgspec.structs.replace(change, change=1e-6)) is None


def read_flip(page):
    page.flips.kind.value = next(kind for kind, n in page.flips.counts.items() if n)
    page.on_key("next", 1)
    return page.flips._context_of(page.flips._flips[int(page.flips.table.marked)])


def read_record(page):
    page.on_key("next", 1)
    return context_text(page.opened.browser.opened)


@pytest.mark.parametrize("find", [read_flip, read_record])
def test_a_wrong_answer_opens_its_own_row_in_review(server, pair, find):
    session = Session(
        server.client,
        page="compare",
        dataset=pair.dataset,
        evaluation=pair.after,
        before=pair.before,
        after=pair.after,
    )
    page = (ComparePage if find is read_flip else EvaluationsPage)(session)
    page.open()
    read = find(page)
    [send] = named(page.__panel__(), "Send to review")
    send.clicks += 1
    assert session.page == "review"
    review = ReviewPage(session)
    review.open()
    shown = review.desk.rows.current
    assert (shown.row, shown.context) == (session.row, read)
    assert shown.side == "evaluation"
    drafts = server.client.drafts.list(dataset_id=pair.dataset, status="open").data
    assert [one.id for one in drafts] == [session.draft]  # the second finds that of the first
    review.desk.step(1)
    assert session.row == -1


def test_a_row_that_was_relabelled_since_says_so(server, pair):
    client = server.client
    place, draft = draft_at(client, pair.other, 2)
    edit = {"row": place, "action": "exclude", "seen": 0}
    client.drafts.edit(draft.id, [edit])
    client.drafts.seal(draft.id, "version")
    with pytest.raises(NotFoundError, match="Version 2 of the dataset has row 2 no more"):
        draft_at(client, pair.other, 2)
    _, newer = draft_at(client, pair.other, 3)
    assert newer.dataset_version == 2
