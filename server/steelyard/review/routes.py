"""``/v1/drafts``: reviews of versions, which become datasets or versions when they are sealed."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from steelyard import errors
from steelyard.http.routing import REVIEWERS, Access, Call, row
from steelyard.review import requests
from steelyard.review.answering import BlindAnswers
from steelyard.review.assigning import DraftAssignments
from steelyard.review.duties_wire import AgreementQuery, AnswerReceipt, Assignment
from steelyard.review.importing import AnswerImports
from steelyard.review.outcome_service import DraftOutcomeService
from steelyard.review.outcomes_wire import EditOutcomes
from steelyard.review.rows import DraftRows
from steelyard.review.seal import DraftSeals
from steelyard.review.service import DraftService
from steelyard.review.wire import Draft, DraftRowPage, EditReceipt, EditRows, UndoEdit

_route = partial(row, access=Access.KEYED, tags=("drafts",))
_reviewed = partial(_route, roles=REVIEWERS)
_READ_ERRORS = (errors.NotFoundError, errors.DatasetDeletedError)
_KEYED = (*_READ_ERRORS, errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
_EDITED = (*_KEYED, errors.DraftSealedError)


def _signed(call: Call) -> Any:
    """Return the request in the signed-in user's name, which replaces a typed one."""
    session = call.caller.session
    if session is None:
        return call.body
    return msgspec.structs.replace(call.body, reviewer=session.email)


ROUTES = (
    _route(
        "POST /v1/drafts",
        DraftService.create,
        "Begin a review of a version; the version itself never changes.",
        read=requests.read_create,
        errors=(*_KEYED, errors.DatasetArchivedError),
    ),
    _reviewed("GET /v1/drafts", DraftService.page, "Page the account's drafts, the newest first."),
    _reviewed(
        "GET /v1/drafts/{draft}",
        DraftService.get,
        "Return a draft, the states of its rows counted.",
        errors=_READ_ERRORS,
    ),
    _route(
        "DELETE /v1/drafts/{draft}",
        DraftService.delete,
        "Delete a draft and its log; what it became stays.",
        errors=_KEYED,
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/edits",
        lambda call: call.service(DraftService).edit(call.write, call.path["draft"], _signed(call)),
        "Edit rows, all of the edits or none; another's newer edit is not overwritten.",
        request=EditRows,
        read=requests.read_edits,
        response=EditReceipt,
        errors=(*_EDITED, errors.DraftConflictError, errors.RowsLabelledApartError),
    ),
    _reviewed(
        "GET /v1/drafts/{draft}/edits",
        DraftService.history,
        "Page a draft's log, the newest entry first; that of one row if asked.",
        errors=(errors.NotFoundError,),
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/bulk",
        lambda call: call.service(DraftRows).bulk(call.write, call.path["draft"], _signed(call)),
        "Edit every row of a queue that a filter holds for: one entry, one undo.",
        request=requests.BulkEdit,
        read=requests.read_bulk,
        response=EditReceipt,
        errors=(
            *_EDITED,
            errors.DraftChangedError,
            errors.RowsLabelledApartError,
            errors.SupervisionMismatchError,
        ),
    ),
    _reviewed(
        "GET /v1/drafts/{draft}/outcomes",
        DraftOutcomeService.list_outcomes,
        "Return the outcomes of a draft's decisions: rows, names, and which are merged.",
        errors=_READ_ERRORS,
    ),
    _route(
        "POST /v1/drafts/{draft}/outcomes",
        lambda call: call.service(DraftOutcomeService).edit(
            call.write, call.path["draft"], _signed(call)
        ),
        "Name, describe and merge the outcomes of a decision: one entry, one undo.",
        request=EditOutcomes,
        response=EditReceipt,
        errors=_EDITED,
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/undo",
        lambda call: call.service(DraftService).undo(call.write, call.path["draft"], _signed(call)),
        "Undo the reviewer's own last entry, or those named; what others did stays.",
        request=UndoEdit,
        read=requests.read_undo,
        may_be_empty=True,
        response=EditReceipt,
        errors=(*_EDITED, errors.NothingToUndoError, errors.DraftChangedError),
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/redo",
        lambda call: call.service(DraftService).redo(call.write, call.path["draft"], _signed(call)),
        "Redo what the reviewer undid last, or the entries named.",
        request=UndoEdit,
        read=requests.read_undo,
        may_be_empty=True,
        response=EditReceipt,
        errors=(
            *_EDITED,
            errors.NothingToUndoError,
            errors.DraftChangedError,
            errors.RowsLabelledApartError,
        ),
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/rows",
        lambda call: call.service(DraftRows).page(call.caller, call.path["draft"], _signed(call)),
        "Page a queue of a draft's rows as they stand now, with every queue counted.",
        request=requests.DraftRowsSearch,
        read=requests.read_rows_search,
        response=DraftRowPage,
        errors=_READ_ERRORS,
    ),
    _route(
        "POST /v1/drafts/{draft}/assignments",
        lambda call: call.service(DraftAssignments).assign(
            call.write, call.path["draft"], _signed(call)
        ),
        "Split undecided rows evenly among reviewers; a share of them to two, apart.",
        request=requests.AssignRows,
        read=requests.read_assign,
        response=Assignment,
        errors=(*_EDITED, errors.DraftChangedError, errors.SupervisionMismatchError),
    ),
    _reviewed(
        "GET /v1/drafts/{draft}/assignments",
        DraftAssignments.progress,
        "Return who is to label which share of a draft's rows, and how far each is.",
        errors=_READ_ERRORS,
    ),
    _route(
        "POST /v1/drafts/{draft}/assignments/move",
        DraftAssignments.move,
        "Hand what a reviewer has not done to another, or to nobody.",
        errors=(*_EDITED, errors.DraftChangedError),
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/answers",
        lambda call: call.service(BlindAnswers).answer(
            call.write, call.path["draft"], _signed(call)
        ),
        "Answer what a row is that another labels too; what both say becomes its label.",
        request=requests.AnswerRow,
        read=requests.read_answer,
        response=AnswerReceipt,
        errors=(*_EDITED, errors.DraftChangedError),
    ),
    _route(
        "POST /v1/drafts/{draft}/answers/import",
        AnswerImports.record,
        "Record who said what of rows elsewhere; rows on which they differ are disputed.",
        read=requests.read_import,
        errors=(*_EDITED, errors.DraftChangedError, errors.SupervisionMismatchError),
    ),
    _reviewed(
        "GET /v1/drafts/{draft}/agreement",
        BlindAnswers.agreement,
        "Return how far reviewers agree, by decision, with intervals.",
        query=AgreementQuery,
        errors=_READ_ERRORS,
    ),
    _route(
        "POST /v1/drafts/{draft}/seal",
        DraftSeals.seal,
        "Make a draft a new dataset, or the next version of its own.",
        read=requests.read_seal,
        response=Draft,
        errors=(
            *_EDITED,
            errors.DraftChangedError,
            errors.DatasetChangedError,
            errors.DatasetArchivedError,
            errors.NoNewRowsError,
            errors.NoRowsError,
            errors.TooFewRowsError,
            errors.SupervisionMismatchError,
        ),
    ),
)
