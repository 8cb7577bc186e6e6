"""The drafts services of one server on a folder, driven by tests without a loop of their own."""

from __future__ import annotations

import asyncio

from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.review.answering import BlindAnswers
from steelyard.review.assigning import DraftAssignments
from steelyard.review.duties_wire import AgreementQuery
from steelyard.review.importing import AnswerImports
from steelyard.review.requests import read_rows_search
from steelyard.review.reviews import Reviews
from steelyard.review.rows import DraftRows
from steelyard.review.seal import DraftSeals
from steelyard.review.service import DraftService
from steelyard.review.store import erase_logs
from steelyard.review.suspects import SuspectSearch
from steelyard.review.wire import HistoryQuery
from support.datasets.dataset_rows import make_rows
from support.datasets.opened_datasets import OpenedDatasets
from support.servers.calling import answer_of

CALLER = Caller(LOCAL_ACCOUNT, None, "full", "127.0.0.1")
N_ROWS = 40


class Opened(OpenedDatasets):
    """The services of one server process on a folder, driven without a loop of their own."""

    def __init__(self, folder, embed=None, state_url=None):
        super().__init__(folder, state_url=state_url)
        store, writes, reviews = given = self.store, self.writes, Reviews(self.state)
        self.drafts = DraftService(self.state, self.datasets, *given)
        self.datasets.register_reader(self.drafts.reader_of, erase_logs)
        self.suspects = SuspectSearch(store, embed=embed, scorer="test")
        self.rows = DraftRows(self.drafts, store, reviews, self.suspects, writes)
        self.seals = DraftSeals(self.drafts, self.datasets, *given, bounds=self.bounds)
        self.assignments = DraftAssignments(
            self.state, self.drafts, self.rows, writes, reviews, candidates=lambda *_: ()
        )
        self.answers = BlindAnswers(self.drafts, *given)
        self.imports = AnswerImports(self.drafts, writes, reviews)

    def close(self):
        self.suspects.close()
        super().close()

    def dataset(self, rows=None):
        return self.create(rows or make_rows(N_ROWS))["id"]

    def call(self, route, body, **how):
        opened = (self.drafts, self.rows, self.seals, self.assignments, self.answers, self.imports)
        services = {type(service): service for service in opened}
        return answer_of(f"POST /v1/drafts{route}", services, body, caller=CALLER, **how)

    def draft(self, dataset_id=None, version=None):
        return self.call("", {"dataset_id": dataset_id or self.dataset(), "version": version})["id"]

    def edit(self, draft_id, *edits, reviewer="ann", key=None):
        body = {"edits": list(edits), "reviewer": reviewer}
        return self.call("/{draft}/edits", body, key=key, draft=draft_id)

    def bulk(self, draft_id, action, expected, **fields):
        body = {"action": action, "expected": expected, **fields}
        return self.call("/{draft}/bulk", body, draft=draft_id)

    def undo(self, draft_id, reviewer="ann", **named):
        return self.call("/{draft}/undo", {"reviewer": reviewer, **named}, draft=draft_id)

    def redo(self, draft_id, reviewer="ann", **named):
        return self.call("/{draft}/redo", {"reviewer": reviewer, **named}, draft=draft_id)

    def page(self, draft_id, queue="all", **fields):
        search = read_rows_search({"queue": queue, **fields})
        return asyncio.run(self.rows.page(CALLER, draft_id, search))

    def assign(self, draft_id, *reviewers, **fields):
        body = {"reviewers": list(reviewers), **fields}
        return self.call("/{draft}/assignments", body, draft=draft_id)

    def move(self, draft_id, from_, to=None):
        body = {"from": from_, "to": to}
        return self.call("/{draft}/assignments/move", body, draft=draft_id)

    def answer(self, draft_id, row, reviewer, route="other", *, key=None, **fields):
        body = {"row": row, "reviewer": reviewer, **fields}
        if not fields.get("exclude"):
            body.setdefault("outcomes", {"route": route, "refund": "yes"})
        return self.call("/{draft}/answers", body, key=key, draft=draft_id)

    def agreement(self, draft_id, **query):
        return asyncio.run(self.answers.agreement(CALLER, draft_id, AgreementQuery(**query)))

    def progress(self, draft_id):
        found = asyncio.run(self.assignments.progress(CALLER, draft_id))
        return {one.reviewer: (one.done, one.rows) for one in found.data}

    def seal(self, draft_id, as_, **fields):
        return self.call("/{draft}/seal", {"as": as_, **fields}, draft=draft_id)

    def states(self, draft_id):
        told = asyncio.run(self.drafts.get(CALLER, draft_id)).states
        return {state: count for state, count in told.items() if count and state != "untouched"}

    def history(self, draft_id, **query):
        return asyncio.run(self.drafts.history(CALLER, draft_id, HistoryQuery(**query)))

    def download(self, dataset_id, version=None):
        async def rows():
            at = await self.datasets.dataset_at(CALLER, dataset_id, version)
            found = [*self.datasets.side_rows(at, "training")]
            return sorted([*found, *self.datasets.evaluation_rows(at)], key=lambda row: row.index)

        return asyncio.run(rows())


def relabel(row, outcome="other", **fields):
    return {"row": row, "action": "relabel", "decision": "route", "outcome": outcome, **fields}


def exclude(row, **fields):
    return {"row": row, "action": "exclude", **fields}
