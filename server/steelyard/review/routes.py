"""``/v1/drafts``: reviews of versions, which become datasets or versions when they are sealed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import msgspec

from steelyard import errors
from steelyard.caller import Caller
from steelyard.http.routing import KEY_ERRORS, REVIEWERS, Access, row
from steelyard.operations.write import Write
from steelyard.review import requests
from steelyard.review.answering import BlindAnswers
from steelyard.review.assigning import DraftAssignments
from steelyard.review.duties_wire import AgreementQuery
from steelyard.review.importing import AnswerImports
from steelyard.review.outcome_service import DraftOutcomeService
from steelyard.review.people_agreement import PeopleAgreements
from steelyard.review.rows import DraftRows
from steelyard.review.seal import DraftSeals
from steelyard.review.service import DraftService
from steelyard.review.wire import Draft

_route = partial(row, access=Access.KEYED, tags=("drafts",))
_reviewed = partial(_route, roles=REVIEWERS)
_READ_ERRORS = (errors.DatasetDeletedError,)
_KEYED = (*_READ_ERRORS, *KEY_ERRORS)
_EDITED = (*_KEYED, errors.DraftSealedError)


def _signed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a use case whose requests are in the signed-in user's name, in place of a typed one."""

    @wraps(method)
    def use(service: Any, who: Caller | Write, draft_id: str, request: Any) -> Any:
        session = (who if isinstance(who, Caller) else who.caller).session
        if session is not None:
            request = msgspec.structs.replace(request, reviewer=session.email)
        return method(service, who, draft_id, request)

    return use


ROUTES = (
    _route(
        "POST /v1/drafts",
        DraftService.create,
        "Begin a review of a version; the version itself never changes.",
        read=requests.read_create,
        errors=(*_KEYED, errors.DatasetArchivedError),
    ),
    _reviewed("GET /v1/drafts", DraftService.page, "Page the account's drafts, the newest first."),
    _route(
        "GET /v1/drafts/agreement",
        PeopleAgreements.find,
        "Return how far people agree on a version, by the rows that two or more labelled apart.",
        errors=_READ_ERRORS,
    ),
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
        _signed(DraftService.edit),
        "Edit rows, all of the edits or none; another's newer edit is not overwritten.",
        read=requests.read_edits,
        errors=(*_EDITED, errors.DraftConflictError, errors.RowsLabelledApartError),
    ),
    _reviewed(
        "GET /v1/drafts/{draft}/edits",
        DraftService.history,
        "Page a draft's log, the newest entry first; that of one row if asked.",
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/bulk",
        _signed(DraftRows.bulk),
        "Edit every row of a queue that a filter holds for: one entry, one undo.",
        read=requests.read_bulk,
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
        _signed(DraftOutcomeService.edit),
        "Name, describe and merge the outcomes of a decision, or set its guideline: one entry.",
        errors=_EDITED,
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/undo",
        _signed(DraftService.undo),
        "Undo the reviewer's own last entry, or those named; what others did stays.",
        read=requests.read_undo,
        may_be_empty=True,
        errors=(*_EDITED, errors.NothingToUndoError, errors.DraftChangedError),
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/redo",
        _signed(DraftService.redo),
        "Redo what the reviewer undid last, or the entries named.",
        read=requests.read_undo,
        may_be_empty=True,
        errors=(
            *_EDITED,
            errors.NothingToUndoError,
            errors.DraftChangedError,
            errors.RowsLabelledApartError,
        ),
    ),
    _reviewed(
        "POST /v1/drafts/{draft}/rows",
        _signed(DraftRows.page),
        "Page a queue of a draft's rows as they stand now, with every queue counted.",
        read=requests.read_rows_search,
        errors=(*_READ_ERRORS, errors.RowsLabelledApartError),
    ),
    _route(
        "POST /v1/drafts/{draft}/assignments",
        _signed(DraftAssignments.assign),
        "Split undecided rows evenly among reviewers; a share of them to two, apart.",
        read=requests.read_assign,
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
        _signed(BlindAnswers.answer),
        "Answer what a row is that another labels too; what both say becomes its label.",
        read=requests.read_answer,
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
