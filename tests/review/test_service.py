"""The drafts services: reviewers at once in several processes, and a server that dies."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import numpy as np
import pytest

from faults.processes import serve_process
from steelyard import errors
from steelyard.operations.write import Write
from support.datasets.dataset_rows import make_rows
from support.review.opened_drafts import CALLER, N_ROWS, Opened, exclude, relabel


@pytest.fixture
def opened(tmp_path):
    with closing(Opened(tmp_path)) as opened:
        yield opened


@pytest.fixture
def draft(opened):
    return opened.draft()


def test_an_edit_over_a_newer_one_is_refused_whole(opened, draft):
    opened.edit(draft, relabel(3, seen=0), reviewer="ann")
    with pytest.raises(errors.DraftConflictError) as refusal:
        opened.edit(draft, exclude(4, seen=0), exclude(3, seen=0), reviewer="bob")
    (detail,) = refusal.value.details
    assert detail["row"] == 3
    assert detail["now"]["state"] == "relabelled"
    assert detail["now"]["labels"]["route"] == {"other": 1.0}
    assert opened.states(draft) == {"relabelled": 1}
    opened.edit(draft, exclude(3, seen=detail["now"]["edit"]), reviewer="bob")
    # One's own edits are no surprise, and who names nobody is surprised by all.
    opened.edit(draft, exclude(5, seen=0), {"row": 5, "action": "include", "seen": 0})
    opened.edit(draft, exclude(6, seen=0), reviewer=None)
    with pytest.raises(errors.DraftConflictError):
        opened.edit(draft, exclude(6, seen=0), reviewer=None)


def test_a_page_is_of_the_revision_that_its_total_is_of(opened, draft, monkeypatch):
    """A row that is decided while a page is read must not be taken off the total twice."""
    originals = opened.drafts.originals

    def edit_meanwhile(*given):
        monkeypatch.setattr(opened.drafts, "originals", originals)
        opened.edit(draft, relabel(0))
        return originals(*given)

    monkeypatch.setattr(opened.drafts, "originals", edit_meanwhile)
    page = opened.page(draft, "to_review")
    assert (page.total, page.revision, page.data[0].now.edit) == (N_ROWS, 0, 1)
    page = opened.page(draft, "to_review")
    assert (page.total, page.revision) == (N_ROWS - 1, 1)


def test_reviewers_in_two_processes_lose_no_edit(tmp_path):
    with closing(Opened(tmp_path)) as one, closing(Opened(tmp_path)) as two:
        draft = one.draft()
        start = threading.Barrier(4)

        def review(server, reviewer, rows):
            start.wait()
            kept, refused = [], 0
            for row in rows:
                try:
                    server.edit(draft, exclude(row, seen=0), reviewer=reviewer)
                    kept.append(row)
                except errors.DraftConflictError:
                    refused += 1
            return kept, refused

        with ThreadPoolExecutor(4) as pool:
            running = [
                pool.submit(review, server, reviewer, range(start_at, start_at + 15))
                for server, reviewer, start_at in (
                    (one, "ann", 0),
                    (two, "bob", 5),
                    (one, "cy", 10),
                    (two, "di", 15),
                )
            ]
            answers = [future.result() for future in running]
        kept = [row for rows, _ in answers for row in rows]
        # Each row was got by exactly one of those who wanted it, and the others were told.
        assert sorted(kept) == list(range(30))
        assert sum(refused for _, refused in answers) == 60 - 30
        for server in (one, two):
            assert server.states(draft) == {"excluded": 30}
            entries = server.history(draft).data
            assert sorted(entry.row for entry in entries) == list(range(30))
            assert [entry.number for entry in entries] == list(range(30, 0, -1))


def test_undo_and_redo_are_the_reviewers_own(opened, draft):
    opened.edit(draft, relabel(1), reviewer="ann")
    opened.edit(draft, {"row": 1, "action": "note", "note": "why?"}, reviewer="bob")
    opened.edit(draft, exclude(2), reviewer="ann")
    assert opened.undo(draft)["undone"] == 3
    receipt = opened.undo(draft)
    assert (receipt["undone"], receipt["revision"]) == (1, 5)
    assert receipt["rows"][0]["state"] == "untouched"
    assert receipt["rows"][0]["note"] == "why?"
    with pytest.raises(errors.NothingToUndoError):
        opened.undo(draft)
    assert opened.redo(draft)["undone"] == 1
    assert opened.redo(draft)["undone"] == 3
    assert opened.states(draft) == {"relabelled": 1, "excluded": 1}
    opened.undo(draft)
    opened.edit(draft, {"row": 7, "action": "accept"})
    with pytest.raises(errors.NothingToUndoError):  # they went on otherwise
        opened.redo(draft)
    assert opened.states(draft) == {"relabelled": 1, "accepted": 1}
    assert [entry.number for entry in opened.history(draft, row=1).data] == [6, 5, 2, 1]
    assert [entry.is_undone for entry in opened.history(draft, limit=2).data] == [False, False]
    page = opened.history(draft, after=4, limit=2)
    assert ([entry.number for entry in page.data], page.has_more) == ([3, 2], True)


def test_redo_takes_the_last_undone_entry(opened, draft):
    for row in range(3):
        opened.edit(draft, exclude(row))
    assert opened.undo(draft, last=1)["undone"] == 1
    assert opened.undo(draft)["undone"] == 3
    assert opened.redo(draft)["undone"] == 3
    assert opened.redo(draft)["undone"] == 1
    assert opened.states(draft) == {"excluded": 3}
    opened.undo(draft, first=1, last=3)
    assert [opened.redo(draft)["undone"] for _ in range(3)] == [1, 2, 3]


def test_one_call_undoes_one_call(opened, draft):
    opened.edit(draft, exclude(0))
    receipt = opened.edit(draft, *({"row": row, "action": "accept"} for row in range(1, 5)))
    named = {"first": receipt["revision"] - 3, "last": receipt["revision"]}
    opened.edit(draft, exclude(6))
    undone = opened.undo(draft, **named)
    assert [row["row"] for row in undone["rows"]] == [1, 2, 3, 4]
    assert {row["state"] for row in undone["rows"]} == {"untouched"}
    assert (undone["edits"], undone["undone"]) == (4, named["last"])
    assert opened.states(draft) == {"excluded": 2}  # what came before and after them holds
    with pytest.raises(errors.NothingToUndoError, match="named"):
        opened.undo(draft, **named)
    assert opened.redo(draft, **named)["edits"] == 4
    assert opened.states(draft) == {"excluded": 2, "accepted": 4}
    opened.undo(draft, last=named["first"])
    assert opened.states(draft) == {"excluded": 2, "accepted": 3}
    assert opened.undo(draft, **named)["edits"] == 3


def test_entries_are_undone_by_number_without_a_reviewer(opened, draft):
    mine = opened.edit(draft, exclude(1), reviewer=None)["revision"]
    opened.edit(draft, exclude(2), reviewer=None)
    assert opened.undo(draft, None, last=mine)["rows"][0]["row"] == 1
    assert opened.page(draft, "changed").data[0].row == 2
    with pytest.raises(errors.NothingToUndoError):  # an entry is its reviewer's own
        opened.undo(draft, "ann", last=mine + 1)


@pytest.mark.parametrize(
    "named", [{"first": 2}, {"first": 3, "last": 2}, {"first": 1, "last": 501}]
)
def test_a_range_of_entries_has_two_ends_in_order_and_is_no_longer_than_a_call(
    opened, draft, named
):
    opened.edit(draft, relabel(1), relabel(2), relabel(3))
    with pytest.raises(errors.InvalidRequestError) as refused:
        opened.undo(draft, **named)
    assert [detail["path"] for detail in refused.value.details] == [["body", "first"]]
    assert sum(opened.states(draft).values()) == 3


def test_no_log_begins_anew_once_its_dataset_is_gone(opened, monkeypatch):
    dataset = opened.dataset()
    draft = opened.draft(dataset)
    looked_at = asyncio.run(opened.drafts.find(CALLER, draft))
    asyncio.run(opened.datasets.delete(Write(CALLER), dataset))

    async def find(*_):
        return looked_at  # the dataset went right after

    monkeypatch.setattr(opened.drafts, "find", find)  # its files stay for a while
    with pytest.raises(errors.DatasetDeletedError):
        opened.edit(draft, exclude(1))
    assert opened.history(draft).data == []


def test_a_bulk_edit_is_one_entry_and_one_undo(opened, draft):
    opened.edit(draft, exclude(0))
    where = {"type": "expected", "decision": "route", "outcome": "billing"}
    page = opened.page(draft, "to_review", filter=where)
    fields = {"queue": "to_review", "filter": where, "decision": "route", "outcome": "other"}
    with pytest.raises(errors.DraftChangedError):
        opened.bulk(draft, "relabel", page.total + 1, **fields)
    receipt = opened.bulk(draft, "relabel", page.total, reviewer="bob", **fields)
    assert (receipt["edits"], receipt["revision"]) == (page.total, 2)
    assert opened.states(draft) == {"excluded": 1, "relabelled": page.total}
    (entry,) = opened.history(draft, row=3).data
    assert (entry.row, entry.rows, entry.outcome) == (None, page.total, "other")
    assert opened.undo(draft, "bob")["edits"] == page.total
    assert opened.states(draft) == {"excluded": 1}


@pytest.mark.parametrize("is_read", [False, True])
def test_a_bulk_edit_of_rows_that_are_edited_once_they_are_chosen_is_refused(
    opened, draft, monkeypatch, is_read
):
    prepare = opened.rows._prepare_bulk

    def prepare_slowly(*given):
        prepared = prepare(*given)
        opened.edit(draft, relabel(1), reviewer="bob")
        if is_read:
            opened.page(draft)
        return prepared

    monkeypatch.setattr(opened.rows, "_prepare_bulk", prepare_slowly)
    with pytest.raises(errors.DraftChangedError):
        opened.bulk(draft, "exclude", N_ROWS, reviewer="ann")
    assert opened.states(draft) == {"relabelled": 1}


def test_a_bulk_edit_leaves_labels_that_are_so_already(opened, draft):
    opened.bulk(draft, "relabel", N_ROWS, decision="refund", outcome="yes")
    assert opened.states(draft) == {"accepted": N_ROWS // 2, "relabelled": N_ROWS // 2}
    rows = opened.page(draft).data
    assert all(row.now.labels["refund"] == {"yes": 1.0} for row in rows)
    assert [row.row for row in rows if row.now.relabelled] == list(range(1, N_ROWS, 2))


def test_a_bulk_edit_of_rows_that_others_edited_since_is_refused(opened, draft):
    seen = opened.page(draft).revision
    opened.edit(draft, relabel(5), reviewer="bob")
    with pytest.raises(errors.DraftChangedError):
        opened.bulk(draft, "exclude", N_ROWS, revision=seen, reviewer="ann")
    opened.bulk(draft, "exclude", N_ROWS, revision=seen, reviewer="bob")
    assert opened.states(draft) == {"excluded": N_ROWS}


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (exclude(N_ROWS), "row"),
        (relabel(0, "nonsense"), "outcome"),
        ({**relabel(0), "decision": "nobody asks"}, "decision"),
        ({"row": 0, "action": "relabel", "decision": "route"}, "outcome"),
        (relabel(0, targets={"other": 1}), "targets"),
        ({**relabel(0), "outcome": None, "targets": {"other": 0.7}}, "targets"),
        ({**relabel(0), "outcome": None, "rewards": {"other": 1}}, "rewards"),
        ({"row": 0, "action": "accept", "outcome": "other"}, "outcome"),
        ({"row": 0, "action": "note"}, "note"),
    ],
)
def test_an_edit_that_cannot_be_is_refused_with_its_path(opened, draft, edit, path):
    with pytest.raises(errors.InvalidRequestError) as refusal:
        opened.edit(draft, exclude(1), edit)
    assert refusal.value.violations[0].path[:4] == ("body", "edits", 1, path)
    assert opened.states(draft) == {}


def test_targets_of_any_shape_are_kept(opened, draft):
    edit = {**relabel(0), "outcome": None, "targets": {"other": 0.25, "support": 0.75}}
    receipt = opened.edit(draft, edit)
    assert receipt["rows"][0]["labels"]["route"] == {"other": 0.25, "support": 0.75}
    assert opened.history(draft).data[0].outcome == "support"
    # The version's own label is a decision, and no change.
    receipt = opened.edit(draft, relabel(0, "billing"))
    assert (receipt["rows"][0]["state"], receipt["rows"][0]["relabelled"]) == ("accepted", [])


def test_queues_and_their_counts(opened, draft):
    opened.edit(draft, relabel(1), exclude(2), {"row": 3, "action": "skip"})
    opened.edit(draft, {"row": 4, "action": "accept", "note": "sure"}, reviewer="bob")
    page = opened.page(draft, "to_review", reviewer="ann", limit=500)
    assert page.counts == {
        "all": N_ROWS,
        "to_review": N_ROWS - 3,
        "audit": N_ROWS,
        "excluded": 1,
        "noted": 1,
        "changed": 2,
        "mine": 3,
    }
    assert [row.row for row in page.data] == [0, *range(5, N_ROWS), 3]
    assert page.suspects.status == "unavailable"
    queues = {
        queue: [row.row for row in opened.page(draft, queue, reviewer="bob").data]
        for queue in ("excluded", "noted", "changed", "mine", "suspect")
    }
    assert queues == {"excluded": [2], "noted": [4], "changed": [1, 2], "mine": [4], "suspect": []}
    audit = [row.row for row in opened.page(draft, "audit").data]
    assert sorted(audit) == list(range(N_ROWS))
    assert audit != sorted(audit)
    assert audit == [row.row for row in opened.page(draft, "audit").data]
    found = opened.page(draft, text="Invoice 7", sort={"by": "index", "descending": True})
    assert [row.row for row in found.data] == [7]
    assert found.data[0].targets["route"] == {"support": 1.0}


def test_suspect_labels_are_found_once_and_come_worst_first(tmp_path):
    rows = make_rows(40)
    for number, row in enumerate(rows):
        row["targets"] = {"route": ("billing", "support")[number % 2]}
    rows[11]["targets"] = {"route": "billing"}

    def embed(texts):
        numbers = [int(text.split()[1].strip(".:,")) for text in texts]
        vectors = [[number % 2, 1 - number % 2, number / 1e4] for number in numbers]
        return np.array(vectors, dtype=np.float32)

    with closing(Opened(tmp_path, embed)) as opened:
        draft = opened.draft(opened.dataset(rows))
        assert opened.page(draft).suspects.status is None
        page = _page_of_suspects(opened, draft)
        assert (page.suspects.status, page.suspects.done) == ("ready", 40)
        [row] = page.data
        assert (row.row, set(row.expected)) == (11, {"route"})
        told = row.expected["route"]
        assert told.outcome == "support"
        assert row.suspect == pytest.approx(told.probability - told.label_probability, abs=1e-3)
        opened.edit(draft, {"row": 11, "action": "accept"})
        assert opened.page(draft, "suspect").counts["suspect"] == 0


def test_a_search_for_suspects_that_fails_says_so_and_can_begin_again(tmp_path):
    failures = [RuntimeError("no more memory")]

    def embed(texts):
        if failures:
            raise failures.pop()
        return np.ones((len(texts), 1), dtype=np.float32)

    with closing(Opened(tmp_path, embed)) as opened:
        draft = opened.draft()
        failed = _page_of_suspects(opened, draft).suspects
        assert (failed.status, failed.message) == ("unavailable", "The search failed. Ask again.")
        assert _page_of_suspects(opened, draft).suspects.status == "ready"


def _page_of_suspects(opened, draft):
    # A page waits for the search a little, and on a busy machine that is too little.
    while (page := opened.page(draft, "suspect")).suspects.status == "computing":
        pass
    return page


def test_a_version_of_a_draft_has_its_decisions_and_the_parent_stays(opened):
    dataset = opened.dataset()
    before = opened.download(dataset, 1)
    draft = opened.draft(dataset)
    opened.edit(draft, relabel(1), exclude(2), {"row": 3, "action": "accept"})
    sealed = opened.seal(draft, "version")
    assert sealed["status"] == "sealed"
    assert (sealed["sealed"]["dataset_id"], sealed["sealed"]["version"]) == (dataset, 2)
    assert opened.download(dataset, 1) == before
    after = {row.context: row for row in opened.download(dataset, 2)}
    assert len(after) == N_ROWS - 1
    for row in before:
        now = after.get(row.context)
        if row.index == 2:
            assert now is None
        elif row.index == 1:
            assert (now.index, now.targets["route"]) == (N_ROWS, {"other": 1.0})
            assert now.targets["refund"] == row.targets["refund"]
        else:
            assert now == row
    for call in (lambda: opened.edit(draft, exclude(5)), lambda: opened.seal(draft, "dataset")):
        with pytest.raises(errors.DraftSealedError):
            call()
    assert opened.states(draft) == {"relabelled": 1, "excluded": 1, "accepted": 1}


def test_a_dataset_of_a_draft_keeps_sides(opened):
    dataset = opened.dataset()
    draft = opened.draft(dataset)
    opened.edit(draft, relabel(1), exclude(2))
    sealed = opened.seal(draft, "dataset", name="corrected")["sealed"]
    assert (sealed["version"], sealed["sealed_as"]) == (1, "dataset")

    async def sides(dataset_id):
        at = await opened.datasets.dataset_at(CALLER, dataset_id)
        return {row.context for row in opened.datasets.evaluation_rows(at)}

    gone = {"Invoice 2 was paid twice."}
    assert asyncio.run(sides(sealed["dataset_id"])) == asyncio.run(sides(dataset)) - gone
    rows = {row.context: row for row in opened.download(sealed["dataset_id"])}
    assert len(rows) == N_ROWS - 1
    assert rows["Invoice 1 was paid twice."].targets["route"] == {"other": 1.0}


def test_a_draft_that_cannot_be_a_version_names_the_reason_and_a_dataset(opened):
    dataset = opened.dataset()
    first, second, third = (opened.draft(dataset) for _ in range(3))
    with pytest.raises(errors.NoNewRowsError, match="dataset"):
        opened.seal(first, "version")
    opened.edit(first, exclude(1))
    with pytest.raises(errors.DraftChangedError):
        opened.seal(first, "version", revision=0)
    opened.seal(first, "version", revision=1)
    opened.edit(second, exclude(3))
    with pytest.raises(errors.DatasetChangedError, match="dataset"):
        opened.seal(second, "version")
    opened.seal(second, "dataset")
    opened.bulk(third, "exclude", N_ROWS)
    with pytest.raises(errors.DatasetChangedError):
        opened.seal(third, "version")


def test_a_draft_sealed_twice_at_once_is_sealed_once(tmp_path):
    with closing(Opened(tmp_path)) as one, closing(Opened(tmp_path)) as two:
        dataset = one.dataset()
        draft = one.draft(dataset)
        one.edit(draft, exclude(1))
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(server.seal, draft, "version") for server in (one, two)]
            failures = [future.exception() for future in running]
        assert sorted(failure is None for failure in failures) == [False, True]
        refused = next(failure for failure in failures if failure is not None)
        assert isinstance(refused, errors.DraftSealedError | errors.DatasetChangedError)
        versions = asyncio.run(one.datasets.versions(CALLER, dataset)).data
        assert len(versions) == 2


def test_edits_with_one_key_are_made_once(opened, draft):
    first = opened.edit(draft, exclude(1), key="k")
    assert opened.edit(draft, exclude(1), key="k") == first
    assert opened.history(draft).revision == 1


def test_a_dataset_with_an_open_draft_stays_until_the_draft_goes(opened):
    dataset = opened.dataset()
    draft = opened.draft(dataset)
    opened.edit(draft, exclude(1))
    with pytest.raises(errors.VersionInUseError, match="draft"):
        asyncio.run(opened.datasets.delete(Write(CALLER), dataset))
    asyncio.run(opened.drafts.delete(Write(CALLER), draft))
    with pytest.raises(errors.NotFoundError):
        opened.history(draft)
    asyncio.run(opened.datasets.delete(Write(CALLER), dataset))


@pytest.mark.slow
@pytest.mark.parametrize("route", ["edits", "answers"])
def test_kill_9_during_edits_loses_none_that_was_acknowledged(tmp_path, route):
    """Edits, or answers to rows that are labelled apart, some of them known."""
    home = tmp_path / "home"
    rows = make_rows(N_ROWS)
    for row in rows[:4]:
        row["metadata"] = {"by": "expert"}
    with serve_process(home, STEELYARD_JOBS="off") as server:
        server.start()
        with httpx.Client(base_url=server.url, timeout=30) as http:
            made = http.post("/v1/datasets", json={"name": "n", "examples": rows})
            begun = http.post("/v1/drafts", json={"dataset_id": made.json()["id"]})
            path = f"/v1/drafts/{begun.json()['id']}"
            if route == "answers":
                request = {"reviewers": ["ann"], "known_share": 0.1}
                assert http.post(f"{path}/assignments", json=request).json()["known"] == 4
        acknowledged = []
        is_enough = threading.Event()

        bodies = {
            "edits": lambda row: {"edits": [exclude(row)]},
            "answers": lambda row: {"row": row, "exclude": True, "reviewer": "ann"},
        }

        def review():
            with httpx.Client(base_url=server.url, timeout=30) as http:
                for row in range(N_ROWS):
                    try:
                        answer = http.post(f"{path}/{route}", json=bodies[route](row))
                    except httpx.TransportError:
                        return
                    if answer.is_success:
                        acknowledged.append(row)
                    if len(acknowledged) == 12:
                        is_enough.set()

        reviewing = threading.Thread(target=review)
        reviewing.start()
        assert is_enough.wait(60)
        server.kill()
        reviewing.join()
        server.start()
        with httpx.Client(base_url=server.url, timeout=30) as http:
            page = http.post(f"{path}/rows", json={"queue": "excluded"}).json()
            history = http.get(f"{path}/edits").json()
        found = {row["row"] for row in page["data"]}
        assert found >= set(acknowledged)
        assert found == {entry["row"] for entry in history["data"]}
        assert [entry["number"] for entry in history["data"]] == list(range(len(found), 0, -1))
