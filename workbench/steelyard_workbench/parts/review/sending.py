"""Sending a row that an evaluation scored to review: one click opens a draft at it."""

from __future__ import annotations

import asyncio
from typing import Any

from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.errors import NotFoundError
from steelyard.review.wire import Draft, DraftSummary
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.parts.datasets.row_pages import at_places

SEND = "Send to review"
#: The view of a draft that begins with the question whether to seal it.
SEAL = "seal"


class RowReview:
    """Offers to review rows that evaluations scored."""

    def __init__(self, session: Session, scope: Scope | None = None) -> None:
        self._session, self._scope = session, scope or Scope()

    def offer(self, evaluation_id: str, row: int) -> Viewable:
        """Return the button that opens a row, by its place among the evaluation rows, in review."""
        problem = stack()
        send = Write(
            lambda: self._send(evaluation_id, row),
            "Not sent to review:",
            problem,
            refused=SEND,
            scope=self._scope,
        )
        return stack(action_button(SEND, send.on_event, size="small"), problem)

    async def _send(self, evaluation_id: str, row: int) -> None:
        place, draft = await asyncio.to_thread(draft_at, self._session.client, evaluation_id, row)
        if not self._scope.say_if_ended(f"Row {place:,} is in the review {draft.name}."):
            open_draft(self._session, draft, row=place)


def open_draft(session: Session, draft: Draft | DraftSummary, **more: Any) -> None:
    """Go to the review of a draft."""
    version = draft.dataset_version
    session.open("review", dataset=draft.dataset_id, version=version, draft=draft.id, **more)


def draft_at(client: Client, evaluation_id: str, row: int) -> tuple[int, Draft | DraftSummary]:
    """Return the place in the dataset of a row that was scored, and a draft that has it.

    It is the newest open draft of the dataset's newest version, or else a new one: a draft of an older
    version could not keep rows sealed since.

    Raise ``NotFoundError`` when a later version has the row no more.
    """
    scored = client.evaluations.get(evaluation_id)
    search, dataset_id = client.datasets.search, scored.dataset_id
    [place] = search(
        dataset_id, partition="evaluation", version=scored.dataset_version, offset=row, limit=1
    ).indexes
    newest = search(dataset_id, where=at_places([place]), limit=1)
    if not newest.indexes:
        raise NotFoundError(
            f"Version {newest.version} of the dataset has row {place:,} no more: it was relabelled "
            f"or left out since version {scored.dataset_version}, which was evaluated. Evaluate "
            "again to see how it is answered now."
        )
    return place, draft_of(client, dataset_id, newest.version)


def draft_of(client: Client, dataset_id: str, version: int) -> Draft | DraftSummary:
    """Return the newest open draft of a version, or else a new one."""
    opened = client.drafts.list(dataset_id=dataset_id, status="open").data
    newest = next((draft for draft in opened if draft.dataset_version == version), None)
    return newest or client.drafts.create(dataset_id, version)
