"""Rows assigned to reviewers: split evenly, two labelling apart, agreement, and disputes."""

from __future__ import annotations

import asyncio
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from sqlalchemy import func, select

from steelyard import errors
from steelyard.review import assigning
from steelyard.review.duties import Answer, Apart, Duties, Duty, split_rows
from steelyard.review.duties_wire import PeopleQuery
from steelyard.review.people_agreement import PeopleAgreements
from steelyard.review.reviews import Reviews
from steelyard.review.store import erase_logs
from steelyard.review.tables import draft_duties
from support.datasets.dataset_rows import make_row_dict, make_rows
from support.review.opened_drafts import CALLER, N_ROWS, Opened, exclude, relabel

INDEX = {"type": "index", "at_least": 0}


@pytest.fixture
def opened(tmp_path):
    with closing(Opened(tmp_path)) as opened:
        yield opened


@pytest.fixture
def on_each(tmp_path, state_url):
    """The services of a server, once on each kind of database."""
    with closing(Opened(tmp_path, state_url=state_url)) as opened:
        yield opened


@pytest.fixture
def draft(opened):
    return opened.draft()


@pytest.fixture
def apart(opened, draft):
    """A draft whose first four rows Ann and Bob label apart."""
    opened.assign(draft, "ann", "bob", overlap=1, filter={**INDEX, "below": 4})
    return draft


def queue(opened, draft, name, reviewer=None):
    return [row.row for row in opened.page(draft, name, reviewer=reviewer, limit=50).data]


@given(st.integers(0, 60), st.integers(1, 6), st.floats(0, 1))
def test_rows_are_split_evenly_and_no_row_is_twice_anybodys(n_rows, n, overlap):
    names = [f"r{place}" for place in range(n)]
    n_blind = round(overlap * n_rows) if n > 1 else 0
    shares = split_rows(np.arange(n_rows), names, n_blind)
    held = sorted(itertools.chain.from_iterable(rows.tolist() for rows in shares.values()))
    assert held == sorted([*range(n_rows), *range(n_blind)])
    assert all(len(set(rows.tolist())) == len(rows) for rows in shares.values())
    sizes = [len(rows) for rows in shares.values()]
    assert max(sizes) - min(sizes) <= 2


@settings(max_examples=50)
@given(st.data())
def test_duties_of_some_rows_are_those_of_all(data):
    """Whatever was assigned, moved and answered; also of entries that came after."""
    names, n_rows = ["ann", "bob", "cy"], 5
    log, all_ = [], Duties.of_all(n_rows)
    for number in range(1, data.draw(st.integers(1, 12)) + 1):
        reviewer = data.draw(st.sampled_from(names))
        held = all_.assigned_to(reviewer) & all_.is_waiting & ~all_.answered_by(reviewer)
        action = data.draw(st.sampled_from(["assign", "drop", "answer"]))
        if action == "answer" and not held.any():
            action = "assign"
        chosen = np.flatnonzero(held)[:1] if action == "answer" else np.array([0, 2, 3])
        if action == "drop":
            chosen = np.flatnonzero(all_.assigned_to(reviewer) & ~all_.answered_by(reviewer))
        answer = Answer(outcomes={"a": data.draw(st.sampled_from("xy"))})
        duty = Duty(
            number=number,
            at=0.0,
            reviewer=reviewer,
            action=action,
            places=chosen,
            body=answer if action == "answer" else None,
        )
        if action == "assign" and data.draw(st.booleans()):
            duty = replace(duty, body=Apart.of(chosen[:2]))
        log.append(duty)
        all_.extend([duty])
    rows = data.draw(st.lists(st.integers(0, n_rows - 1), min_size=1))
    at = data.draw(st.integers(0, len(log)))
    early = Duties.of_all(n_rows)
    early.extend(log[:at])
    part = early.among(rows, log[at:])
    for name in ("is_assigned", "is_blind", "is_known", "is_waiting", "is_begun", "is_disputed"):
        assert getattr(part, name).tolist() == getattr(all_, name)[part.rows].tolist(), name
    for row in part.rows.tolist():
        assert part.reviewers_of(row) == all_.reviewers_of(row)
        assert part.answers_of(row) == all_.answers_of(row)


def test_reviewers_get_their_rows_and_go_on_by_queue(opened, draft):
    opened.edit(draft, exclude(0), relabel(1))
    made = opened.assign(draft, "ann", "bob", "cy", queue="all")
    assert (made["rows"], made["blind"], made["left_out"]) == (38, 0, 2)
    assert sorted(made["reviewers"].values()) == [12, 13, 13]
    queues = {name: queue(opened, draft, "assigned", name) for name in ("ann", "bob", "cy")}
    assert sorted(itertools.chain(*queues.values())) == list(range(2, N_ROWS))
    # Whatever is decided is done, whoever decides; a skipped row comes last.
    first, second, *rest = queues["ann"]
    opened.edit(draft, {"row": first, "action": "accept"}, reviewer="bob")
    opened.edit(draft, {"row": second, "action": "skip"}, reviewer="ann")
    assert queue(opened, draft, "assigned", "ann") == [*rest, second]
    assert opened.progress(draft)["ann"] == (1, made["reviewers"]["ann"])
    assert opened.page(draft, reviewer="ann").counts["assigned"] == len(rest) + 1
    # What somebody has is not assigned again, and what is left over is nothing.
    with pytest.raises(errors.InvalidRequestError, match="nothing to assign"):
        opened.assign(draft, "dan")


def test_a_filter_a_limit_and_names_select_assigned_rows(opened, draft):
    made = opened.assign(draft, "ann", limit=5, filter={**INDEX, "below": 10})
    assert (made["rows"], made["left_out"]) == (5, 5)
    assert set(queue(opened, draft, "assigned", "ann")) < set(range(10))
    for fields, path in (
        ({"reviewers": ["ann", "ann"]}, ["reviewers", 1]),
        ({"reviewers": ["ann"], "overlap": 0.5}, ["overlap"]),
        ({"reviewers": []}, ["reviewers"]),
        ({"reviewers": ["ann"], "queue": "mine"}, ["reviewer"]),
    ):
        with pytest.raises(errors.InvalidRequestError) as refusal:
            opened.call("/{draft}/assignments", fields, draft=draft)
        assert [one["path"] for one in refusal.value.details] == [["body", *path]]


def test_neither_sees_the_other_before_both_answered(opened, apart):
    assert opened.answer(apart, 0, "ann")["status"] == "waiting"
    page = opened.page(apart, "all", reviewer="bob", limit=1)
    [row] = page.data
    assert (row.blind.status, row.blind.is_yours, row.blind.answers) == ("waiting", True, [])
    # Bob sees no label at all of it, and no edit tells of Ann's answer.
    assert (row.now.labels, row.now.edit, row.targets) == ({}, 0, row.images)
    assert opened.history(apart).data == []
    [row] = opened.page(apart, "all", reviewer="ann", limit=1).data
    assert [one.reviewer for one in row.blind.answers] == ["ann"]
    [row] = opened.page(apart, "all", limit=1).data
    assert (row.blind.is_yours, row.blind.answers) == (False, [])
    assert row.now.labels["route"] == {"billing": 1.0}
    assert queue(opened, apart, "assigned", "ann") == [1, 2, 3]
    assert queue(opened, apart, "assigned", "bob") == [0, 1, 2, 3]
    # Nor is there another way to label the row.
    with pytest.raises(errors.RowsLabelledApartError) as refusal:
        opened.edit(apart, relabel(0), exclude(5))
    assert refusal.value.details == [{"row": 0}]
    with pytest.raises(errors.RowsLabelledApartError):
        opened.bulk(apart, "accept", N_ROWS, queue="all")
    assert opened.bulk(apart, "accept", N_ROWS - 4, queue="to_review")["edits"] == N_ROWS - 4


def test_equal_answers_become_the_label(opened, apart):
    opened.answer(apart, 0, "ann", route="support")
    opened.answer(apart, 0, "ann", route="other")  # the later one holds
    first = opened.answer(apart, 0, "bob", route="other", key="once")
    assert (first["status"], first["revision"]) == ("agreed", 2)
    assert first["rows"][0]["labels"]["route"] == {"other": 1.0}
    assert opened.answer(apart, 0, "bob", route="other", key="once") == first
    assert [(one.reviewer, one.outcome) for one in opened.history(apart).data] == [
        ("bob", "yes"),
        ("bob", "other"),
    ]
    opened.answer(apart, 1, "bob", exclude=True)
    assert opened.answer(apart, 1, "ann", exclude=True)["rows"][0]["state"] == "excluded"
    with pytest.raises(errors.DraftChangedError, match="All reviewers have answered"):
        opened.answer(apart, 0, "ann")
    for row, reviewer in ((9, "ann"), (2, "cy"), (99, "ann")):
        with pytest.raises(errors.InvalidRequestError) as refusal:
            opened.answer(apart, row, reviewer)
        assert refusal.value.details[0]["path"] == ["body", "row"]
    with pytest.raises(errors.InvalidRequestError) as refusal:
        opened.answer(apart, 2, "ann", outcomes={"route": "nowhere", "colour": "red"})
    assert {tuple(one["path"][2:]) for one in refusal.value.details} == {
        ("colour",),
        ("route",),
        ("refund",),
    }
    # The row is one as any other from now on.
    opened.edit(apart, relabel(0, "support"))
    sealed = opened.seal(apart, "version")
    assert sealed["states"]["excluded"] == 1


def test_disputed_rows_are_adjudicated_by_an_edit(opened, apart):
    for row, other in ((0, "other"), (1, "billing"), (2, "other")):
        opened.answer(apart, row, "ann", route="other")
        opened.answer(apart, row, "bob", route=other)
    assert queue(opened, apart, "disagreement") == [1]
    [row] = opened.page(apart, "disagreement").data
    assert row.blind.status == "disagreed"
    assert [(one.reviewer, one.outcomes["route"]) for one in row.blind.answers] == [
        ("ann", "other"),
        ("bob", "billing"),
    ]
    before = opened.agreement(apart)
    assert (before.blind, before.answered, before.agreed) == (4, 3, 2)
    assert (before.disputed, before.to_adjudicate) == (1, 1)
    chosen = {"row": 1, "action": "relabel", "seen": row.now.edit}
    receipt = opened.edit(
        apart,
        {**chosen, "decision": "route", "outcome": "other"},
        {**chosen, "decision": "refund", "outcome": "yes"},
        reviewer="ada",
    )
    assert receipt["rows"][0]["reviewer"] == "ada"
    assert queue(opened, apart, "disagreement") == []
    after = opened.agreement(apart)
    assert (after.disputed, after.to_adjudicate) == (1, 0)
    assert after.decisions == before.decisions  # a decision is not an answer
    last = receipt["revision"]
    opened.undo(apart, "ada", first=last - 1, last=last)
    assert queue(opened, apart, "disagreement") == [1]


def test_agreement_is_measured_decision_by_decision(opened):
    rows = make_rows(12)
    rows[0] = make_row_dict("Only one thing is asked.", targets={"route": "other"})
    rows[0]["decisions"] = rows[0]["decisions"][:1]
    dataset = opened.dataset(rows)
    draft = opened.draft(dataset)
    opened.assign(draft, "ann", "bob", overlap=1)
    for row in range(10):
        asked = ["route", "refund"][: 1 if row == 0 else 2]
        for name in ("ann", "bob"):
            # They never differ on refunds, and on the route of one row in five.
            differs = name == "bob" and row % 5 == 0
            said = {
                "route": "billing" if row % 2 or differs else "other",
                "refund": ["yes", "no"][row % 2],
            }
            opened.answer(draft, row, name, outcomes={id_: said[id_] for id_ in asked})
    opened.answer(draft, 10, "ann", exclude=True)
    opened.answer(draft, 10, "bob")
    found = opened.agreement(draft)
    assert (found.answered, found.disputed, found.exclusions) == (11, 2, 1)
    by_id = {one.decision_id: one for one in found.decisions}
    assert (by_id["refund"].alpha.value, by_id["refund"].alpha.n) == (1.0, 9)
    route = by_id["route"]
    # Of twenty labels 11 are billing: 1 - 19 * 2 / (2 * 11 * 9), after Krippendorff.
    assert route.alpha.value == pytest.approx(1 - 19 * 2 / (2 * 11 * 9))
    assert route.alpha.low < route.alpha.value < route.alpha.high
    assert (route.agreement.value, route.agreement.n) == (0.9, 10)
    assert opened.agreement(draft, who="ann").answered == found.answered
    assert opened.agreement(draft, who="cy").answered == 0
    assert opened.agreement(draft, by="unknown").disputed == found.disputed
    assert opened.agreement(draft, by="expert").decisions == []
    people = PeopleAgreements(opened.state, opened.datasets, opened.drafts, Reviews(opened.state))
    query = PeopleQuery(dataset_id=dataset)
    both = asyncio.run(people.find(CALLER, query))
    assert (both.rows, both.agreement.value, both.agreement.n) == (10, 18 / 19, 19)
    assert both.decisions == {"route": route.agreement, "refund": by_id["refund"].agreement}


def test_undone_rows_are_handed_over(opened, apart):
    opened.answer(apart, 0, "ann")
    opened.answer(apart, 1, "bob")
    # Nobody's: Bob's row of which Ann said nothing would lose his answer, and stays hers.
    assert opened.move(apart, "ann") == {"draft_id": apart, "moved": 2, "kept": 1}
    assert queue(opened, apart, "assigned", "ann") == [1]
    # Rows 2 and 3 are of Bob alone now: labelled in the draft.
    opened.edit(apart, relabel(2), reviewer="bob")
    assert opened.move(apart, "bob", "cy") == {"draft_id": apart, "moved": 2, "kept": 0}
    assert queue(opened, apart, "assigned", "cy") == [0, 3]
    assert opened.answer(apart, 0, "cy")["status"] == "agreed"
    assert opened.move(apart, "ann", "bob") == {"draft_id": apart, "moved": 0, "kept": 1}
    with pytest.raises(errors.InvalidRequestError, match="has them already"):
        opened.move(apart, "ann", "ann")


def mix_known(opened, *reviewers, n_known=8, **fields):
    """Begin a review of 20 rows, some by an expert, and assign them; return it and the known rows."""
    rows = make_rows(20)
    for row in rows[20 - n_known :]:
        row["metadata"] = {"by": "expert", "ticket": "7"}
    draft = opened.draft(opened.dataset(rows))
    made = opened.assign(draft, *reviewers, known_share=0.25, **fields)
    known = [row.row for row in opened.page(draft, limit=50).data if row.known is True]
    assert len(known) == made["known"]
    return draft, made, known


def answer_as_labelled(opened, draft, row, reviewer, *, is_right=True):
    labels = {row.row: row.targets for row in opened.page(draft, limit=50).data}[row]
    outcomes = {name: max(values, key=values.get) for name, values in labels.items()}
    if not is_right:
        outcomes["refund"] = {"yes": "no", "no": "yes"}[outcomes["refund"]]
    return opened.answer(draft, row, reviewer, outcomes=outcomes)


def test_known_rows_score_their_reviewers_and_keep_their_labels(on_each):
    draft, made, known = mix_known(on_each, "ann")
    # Four for twelve others; the rest of the expert's are left out.
    assert (made["rows"], made["known"], made["blind"], made["left_out"]) == (16, 4, 0, 4)
    page = on_each.page(draft, "assigned", reviewer="ann", limit=50)
    assert {row.row for row in page.data} == {*range(12), *known}
    assert [row.row for row in page.data] != sorted(row.row for row in page.data)
    for row in page.data:
        assert (row.now.labels, row.targets, row.known) == ({}, UNSET, UNSET)
        assert (row.blind.status, "by" in (row.metadata or {})) == ("waiting", False)
    with pytest.raises(errors.RowsLabelledApartError):
        on_each.edit(draft, relabel(0))

    wrong = known[0]
    for row in page.data:
        assert (
            answer_as_labelled(on_each, draft, row.row, "ann", is_right=row.row not in {0, wrong})[
                "status"
            ]
            == "agreed"
        )
    assert queue(on_each, draft, "assigned", "ann") == []
    [ann] = asyncio.run(on_each.assignments.progress(CALLER, draft)).data
    assert (ann.known.value, ann.known.n, ann.done) == (0.75, 4, 16)
    assert ann.known.low < 0.75 < ann.known.high
    on_each.edit(draft, exclude(known[1]), reviewer="olga")
    assert on_each.states(draft) == {"accepted": 11, "relabelled": 1}
    dataset = on_each.seal(draft, "version")["sealed"]["dataset_id"]
    before, after = (
        {row.index: row.labels for row in on_each.download(dataset, version)} for version in (1, 2)
    )
    assert set(after) == {*range(1, 21)}  # row 0 alone is another now
    assert {row: after[row] for row in known} == {row: before[row] for row in known}


def test_known_rows_of_two_are_no_agreement_and_no_dispute_to_settle(on_each):
    draft, made, known = mix_known(on_each, "ann", "bob", overlap=1)
    assert (made["blind"], made["known"]) == (16, 4)
    for place, row in enumerate(queue(on_each, draft, "assigned", "ann")):
        for name, is_right in (("ann", True), ("bob", place % 2 == 0)):
            answer_as_labelled(on_each, draft, row, name, is_right=is_right)
    found = asyncio.run(on_each.assignments.progress(CALLER, draft)).data
    assert [(one.reviewer, one.known.value, one.known.n) for one in found[:1]] == [("ann", 1.0, 4)]
    others = set(queue(on_each, draft, "all")[:12])
    assert set(queue(on_each, draft, "disagreement")) <= others
    agreement = on_each.agreement(draft)
    assert (agreement.answered, agreement.disputed) == (16, 8)
    assert agreement.to_adjudicate == len(queue(on_each, draft, "disagreement"))
    people = PeopleAgreements(
        on_each.state, on_each.datasets, on_each.drafts, Reviews(on_each.state)
    )
    dataset_id = asyncio.run(on_each.drafts.find(CALLER, draft)).at.dataset_id
    assert asyncio.run(people.find(CALLER, PeopleQuery(dataset_id=dataset_id))).rows == 12
    # Handed over they stay known; freed they are as any other.
    other, _, known = mix_known(on_each, "ann")
    on_each.move(other, "ann", "cy")
    assert {row.row for row in on_each.page(other, limit=50).data if row.known is True} == {*known}
    on_each.move(other, "cy")
    assert {row.blind for row in on_each.page(other, limit=50).data} == {UNSET}


def test_known_rows_that_cannot_be_mixed_in_are_refused(opened):
    with pytest.raises(errors.InvalidRequestError, match="no known ones beside others"):
        mix_known(opened, "ann", known_by="person")
    with pytest.raises(errors.InvalidRequestError, match="no known ones beside others"):
        mix_known(opened, "ann", n_known=20)
    _, made, known = mix_known(opened, "ann", known_by="unknown")
    assert (made["rows"], made["known"]) == (11, 3)  # three for the expert's eight
    assert set(known) < {*range(12)}
    draft, made, _ = mix_known(opened, "ann", limit=8)
    assert (made["rows"], made["known"], made["left_out"]) == (8, 2, 12)
    assert made["reviewers"] == {"ann": 8}
    again = opened.assign(draft, "bob", known_share=0.5, limit=2)
    assert (again["rows"], again["known"]) == (2, 1)
    with pytest.raises(errors.InvalidRequestError, match="known_share"):
        opened.assign(draft, "bob", known_share=0.6)


def test_bounds(opened, draft, monkeypatch):
    monkeypatch.setattr(assigning, "MAX_BLIND", 6)
    opened.assign(draft, "ann", "bob", overlap=1, limit=4)
    with pytest.raises(errors.InvalidRequestError, match="at most 6 such rows"):
        opened.assign(draft, "ann", "bob", overlap=1, limit=4)
    monkeypatch.setattr(assigning, "MAX_ENTRIES", 3)
    with pytest.raises(errors.InvalidRequestError, match="3 times"):
        opened.assign(draft, "ann", "bob")


def test_rows_with_rewards_are_not_labelled_apart(opened):
    rows = make_rows(4)
    for row in rows:
        del row["targets"]
        row["rewards"] = {"refund": {"yes": 1, "no": -1}}
    draft = opened.draft(opened.dataset(rows))
    with pytest.raises(errors.SupervisionMismatchError):
        opened.assign(draft, "ann", "bob", overlap=0.5)
    assert opened.assign(draft, "ann", "bob")["rows"] == 4


def test_two_answers_at_once_in_two_processes_are_both_kept_and_settled_once(tmp_path):
    with closing(Opened(tmp_path)) as one, closing(Opened(tmp_path)) as two:
        draft = one.draft()
        one.assign(draft, "ann", "bob", overlap=1)
        start = threading.Barrier(2)

        def label(server, reviewer):
            start.wait()
            return [server.answer(draft, row, reviewer)["status"] for row in range(10)]

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(label, (one, two), ("ann", "bob"))
        assert [sorted(pair) for pair in zip(first, second, strict=True)] == [
            ["agreed", "waiting"]
        ] * 10
        for server in (one, two):
            assert server.agreement(draft).agreed == 10
        assert len(one.history(draft).data) == 20  # two decisions a row, each settled once


def test_a_deleted_dataset_takes_the_answers_along(opened):
    dataset = opened.dataset()
    draft = opened.draft(dataset)
    opened.assign(draft, "ann", "bob", overlap=1)
    opened.answer(draft, 0, "ann")
    count = select(func.count()).select_from(draft_duties)
    assert opened.state.read_now(lambda connection: connection.scalar(count)) == 3
    opened.state.write_now(lambda connection: erase_logs(connection, dataset))
    assert opened.state.read_now(lambda connection: connection.scalar(count)) == 0


def test_answers_from_elsewhere_are_recorded_with_their_authors(opened, draft):
    known = {row.row: row.targets for row in opened.page(draft, limit=4).data}
    stored = {id_: max(one, key=one.get) for id_, one in known[0].items()}
    other = "billing" if stored["route"] != "billing" else "other"

    def said(row, reviewer, route=None, **fields):
        outcomes = {"outcomes": {"route": route}} if route else {}
        return {"row": row, "reviewer": reviewer, **outcomes, **fields}

    answers = [
        {"row": 0, "reviewer": "ann", "outcomes": stored, "note": "sure"},
        said(1, "a", "other"),
        said(1, "b", "other"),
        said(1, "c", "billing"),
        *(said(2, name, other) for name in "ab"),
        said(2, "c", note="unclear"),
        said(3, "a", exclude=True),
        said(3, "b", "billing", note="keep it"),
    ]
    path = "/{draft}/answers/import"
    made = opened.call(path, {"answers": answers}, draft=draft)
    assert {**made, "revision": 0, "draft_id": ""} == {
        "draft_id": "",
        "rows": 4,
        "several": 3,
        "disputed": 2,
        "revision": 0,
    }
    assert queue(opened, draft, "disagreement") == [1, 3]
    assert queue(opened, draft, "mine", "ann") == [0]
    rows = opened.page(draft, "all", limit=4).data
    assert [row.now.state for row in rows[:2]] == ["accepted", "untouched"]
    assert [(one.reviewer, one.outcomes["route"]) for one in rows[1].blind.answers] == [
        ("a", "other"),
        ("b", "other"),
        ("c", "billing"),
    ]
    assert rows[2].now.labels["route"][other] == 1
    assert [row.now.note for row in rows] == ["sure", None, "unclear", "keep it"]
    assert opened.progress(draft)["a"] == (3, 3)
    found = opened.agreement(draft)
    assert (found.answered, found.agreed, found.disputed, found.exclusions) == (3, 1, 2, 1)
    [route] = [one for one in found.decisions if one.decision_id == "route"]
    assert (route.agreement.value, route.agreement.n) == (0.5, 2)
    # What was recorded is not recorded again, nor over what somebody decided here.
    with pytest.raises(errors.DraftChangedError, match="4 of the rows, row 0 first"):
        opened.call(path, {"answers": answers}, draft=draft)
    opened.edit(draft, relabel(1), reviewer="ann")
    assert queue(opened, draft, "disagreement") == [3]


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ({"row": 99, "outcomes": {"route": "other"}}, ["row"]),
        ({"row": 0, "outcomes": {"colour": "red"}}, ["outcomes", "colour"]),
        ({"row": 0, "outcomes": {"route": "red"}}, ["outcomes", "route"]),
        ({"row": 0}, ["outcomes"]),
        ({"row": 0, "outcomes": {"route": "other"}, "exclude": True}, ["outcomes"]),
    ],
)
def test_an_answer_that_cannot_be_recorded_is_reported(opened, draft, answer, place):
    with pytest.raises(errors.InvalidRequestError) as refusal:
        opened.call("/{draft}/answers/import", {"answers": [answer]}, draft=draft)
    assert [one["path"] for one in refusal.value.details] == [["body", "answers", 0, *place]]
