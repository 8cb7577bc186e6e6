"""``/v1/drafts``: reviews of versions, which become datasets or versions when they are sealed."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from steelyard import errors
from steelyard.http.routing import REVIEWERS, Access, Call, Route
from steelyard.review.answering import BlindAnswers
from steelyard.review.assigning import DraftAssignments
from steelyard.review.duties_wire import (
    AgreementQuery,
    AnswerReceipt,
    Assignment,
    Assignments,
    DraftAgreement,
    ImportedAnswers,
    MovedAssignment,
)
from steelyard.review.importing import AnswerImports
from steelyard.review.outcome_service import DraftOutcomeService
from steelyard.review.outcomes_wire import DraftOutcomes, EditOutcomes
from steelyard.review.requests import (
    AnswerRow,
    AssignRows,
    BulkEdit,
    DraftRowsSearch,
    ImportAnswers,
    MoveAssigned,
    read_answer,
    read_assign,
    read_bulk,
    read_create,
    read_edits,
    read_import,
    read_rows_search,
    read_seal,
    read_undo,
)
from steelyard.review.rows import DraftRows
from steelyard.review.seal import DraftSeals
from steelyard.review.service import DraftService
from steelyard.review.wire import (
    CreateDraft,
    DeletedDraft,
    Draft,
    DraftPage,
    DraftRowPage,
    DraftsQuery,
    EditReceipt,
    EditRows,
    History,
    HistoryQuery,
    SealDraft,
    UndoEdit,
)

_route = partial(Route, access=Access.KEYED, tags=("drafts",))
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
        method="POST",
        path="/v1/drafts",
        use=lambda call: call.service(DraftService).create(call.write, call.body),
        summary="Begin a review of a version; the version itself never changes.",
        request=CreateDraft,
        read=read_create,
        response=Draft,
        errors=(*_KEYED, errors.DatasetArchivedError),
    ),
    _reviewed(
        method="GET",
        path="/v1/drafts",
        use=lambda call: call.service(DraftService).page(call.caller, call.query),
        summary="Page the account's drafts, the newest first.",
        query=DraftsQuery,
        response=DraftPage,
    ),
    _reviewed(
        method="GET",
        path="/v1/drafts/{draft}",
        use=lambda call: call.service(DraftService).get(call.caller, call.path["draft"]),
        summary="Return a draft, the states of its rows counted.",
        response=Draft,
        errors=_READ_ERRORS,
    ),
    _route(
        method="DELETE",
        path="/v1/drafts/{draft}",
        use=lambda call: call.service(DraftService).delete(call.write, call.path["draft"]),
        summary="Delete a draft and its log; what it became stays.",
        response=DeletedDraft,
        errors=_KEYED,
    ),
    _reviewed(
        method="POST",
        path="/v1/drafts/{draft}/edits",
        use=lambda call: call.service(DraftService).edit(
            call.write, call.path["draft"], _signed(call)
        ),
        summary="Edit rows, all of the edits or none; another's newer edit is not overwritten.",
        request=EditRows,
        read=read_edits,
        response=EditReceipt,
        errors=(*_EDITED, errors.DraftConflictError, errors.RowsLabelledApartError),
    ),
    _reviewed(
        method="GET",
        path="/v1/drafts/{draft}/edits",
        use=lambda call: call.service(DraftService).history(
            call.caller, call.path["draft"], call.query
        ),
        summary="Page a draft's log, the newest entry first; that of one row if asked.",
        query=HistoryQuery,
        response=History,
        errors=(errors.NotFoundError,),
    ),
    _reviewed(
        method="POST",
        path="/v1/drafts/{draft}/bulk",
        use=lambda call: call.service(DraftRows).bulk(
            call.write, call.path["draft"], _signed(call)
        ),
        summary="Edit every row of a queue that a filter holds for: one entry, one undo.",
        request=BulkEdit,
        read=read_bulk,
        response=EditReceipt,
        errors=(
            *_EDITED,
            errors.DraftChangedError,
            errors.RowsLabelledApartError,
            errors.SupervisionMismatchError,
        ),
    ),
    _reviewed(
        method="GET",
        path="/v1/drafts/{draft}/outcomes",
        use=lambda call: call.service(DraftOutcomeService).list_outcomes(
            call.caller, call.path["draft"]
        ),
        summary="Return the outcomes of a draft's decisions: rows, names, and which are merged.",
        response=DraftOutcomes,
        errors=_READ_ERRORS,
    ),
    _route(
        method="POST",
        path="/v1/drafts/{draft}/outcomes",
        use=lambda call: call.service(DraftOutcomeService).edit(
            call.write, call.path["draft"], _signed(call)
        ),
        summary="Name, describe and merge the outcomes of a decision: one entry, one undo.",
        request=EditOutcomes,
        response=EditReceipt,
        errors=_EDITED,
    ),
    _reviewed(
        method="POST",
        path="/v1/drafts/{draft}/undo",
        use=lambda call: call.service(DraftService).undo(
            call.write, call.path["draft"], _signed(call)
        ),
        summary="Undo the reviewer's own last entry, or those named; what others did stays.",
        request=UndoEdit,
        read=read_undo,
        may_be_empty=True,
        response=EditReceipt,
        errors=(*_EDITED, errors.NothingToUndoError, errors.DraftChangedError),
    ),
    _reviewed(
        method="POST",
        path="/v1/drafts/{draft}/redo",
        use=lambda call: call.service(DraftService).redo(
            call.write, call.path["draft"], _signed(call)
        ),
        summary="Redo what the reviewer undid last, or the entries named.",
        request=UndoEdit,
        read=read_undo,
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
        method="POST",
        path="/v1/drafts/{draft}/rows",
        use=lambda call: call.service(DraftRows).page(
            call.caller, call.path["draft"], _signed(call)
        ),
        summary="Page a queue of a draft's rows as they stand now, with every queue counted.",
        request=DraftRowsSearch,
        read=read_rows_search,
        response=DraftRowPage,
        errors=_READ_ERRORS,
    ),
    _route(
        method="POST",
        path="/v1/drafts/{draft}/assignments",
        use=lambda call: call.service(DraftAssignments).assign(
            call.write, call.path["draft"], _signed(call)
        ),
        summary="Split undecided rows evenly among reviewers; a share of them to two, apart.",
        request=AssignRows,
        read=read_assign,
        response=Assignment,
        errors=(*_EDITED, errors.DraftChangedError, errors.SupervisionMismatchError),
    ),
    _reviewed(
        method="GET",
        path="/v1/drafts/{draft}/assignments",
        use=lambda call: call.service(DraftAssignments).progress(call.caller, call.path["draft"]),
        summary="Return who is to label which share of a draft's rows, and how far each is.",
        response=Assignments,
        errors=_READ_ERRORS,
    ),
    _route(
        method="POST",
        path="/v1/drafts/{draft}/assignments/move",
        use=lambda call: call.service(DraftAssignments).move(
            call.write, call.path["draft"], call.body
        ),
        summary="Hand what a reviewer has not done to another, or to nobody.",
        request=MoveAssigned,
        response=MovedAssignment,
        errors=(*_EDITED, errors.DraftChangedError),
    ),
    _reviewed(
        method="POST",
        path="/v1/drafts/{draft}/answers",
        use=lambda call: call.service(BlindAnswers).answer(
            call.write, call.path["draft"], _signed(call)
        ),
        summary="Answer what a row is that another labels too; what both say becomes its label.",
        request=AnswerRow,
        read=read_answer,
        response=AnswerReceipt,
        errors=(*_EDITED, errors.DraftChangedError),
    ),
    _route(
        method="POST",
        path="/v1/drafts/{draft}/answers/import",
        use=lambda call: call.service(AnswerImports).record(
            call.write, call.path["draft"], call.body
        ),
        summary="Record who said what of rows elsewhere; rows on which they differ are disputed.",
        request=ImportAnswers,
        read=read_import,
        response=ImportedAnswers,
        errors=(*_EDITED, errors.DraftChangedError, errors.SupervisionMismatchError),
    ),
    _reviewed(
        method="GET",
        path="/v1/drafts/{draft}/agreement",
        use=lambda call: call.service(BlindAnswers).agreement(
            call.caller, call.path["draft"], call.query
        ),
        summary="Return how far reviewers agree, by decision, with intervals.",
        query=AgreementQuery,
        response=DraftAgreement,
        errors=_READ_ERRORS,
    ),
    _route(
        method="POST",
        path="/v1/drafts/{draft}/seal",
        use=lambda call: call.service(DraftSeals).seal(call.write, call.path["draft"], call.body),
        summary="Make a draft a new dataset, or the next version of its own.",
        request=SealDraft,
        read=read_seal,
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
