"""``/v1/named-decisions``: decisions under names, in versions that aliases point to."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.http.routing import Access, Route
from steelyard.job_frame.routes import KEYED_ERRORS, job_routes
from steelyard.ledger.max_price import priced
from steelyard.named.compare_service import NamedComparisons
from steelyard.named.comparison_wire import (
    CompareVersions,
    ComparisonPage,
    ComparisonsQuery,
    NamedComparison,
)
from steelyard.named.content import read_content
from steelyard.named.service import NamedDecisions
from steelyard.named.shares import Shares
from steelyard.named.wire import (
    AddNamedVersion,
    AliasMovePage,
    ArchiveNamedDecision,
    ChangeNamedDecision,
    CreateNamedDecision,
    MoveAlias,
    NamedDecision,
    NamedDecisionPage,
    NamedDecisionsQuery,
    NamedPageQuery,
    NamedVersion,
    NamedVersionPage,
    RollBackAlias,
    ShareAlias,
)
from steelyard.serving.routes import UNCALLABLE

_route = partial(Route, access=Access.KEYED, tags=("named decisions",))
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
_ERRORS = (errors.NotFoundError, *_KEY_ERRORS)
_NAMED = "/v1/named-decisions"
_OF_NAME = f"{_NAMED}/{{named_decision}}"
_COMPARISONS = "/v1/named-comparisons"
_JOBS = job_routes(
    NamedComparisons,
    _COMPARISONS,
    "comparison",
    tag="named decisions",
    job=NamedComparison,
    page=ComparisonPage,
    query=ComparisonsQuery,
    summaries=(
        "Page the account's comparisons of versions, the newest first.",
        "Return a comparison: how far it is, then its verdict and figures.",
        "Stop a comparison; nothing is charged.",
    ),
)

ROUTES = (
    _route(
        method="POST",
        path=_NAMED,
        use=lambda call: call.service(NamedDecisions).create(call.write, call.body),
        summary="Put questions, policies and a model under a name; `production` points to them.",
        request=CreateNamedDecision,
        read=partial(read_content, shape=CreateNamedDecision),
        response=NamedDecision,
        errors=(
            *_ERRORS,
            errors.NamedDecisionExistsError,
            errors.NamedDecisionLimitError,
            errors.InvalidReferenceError,
        ),
    ),
    _route(
        method="GET",
        path=_NAMED,
        use=lambda call: call.service(NamedDecisions).page(call.caller, call.query),
        summary="Page the account's named decisions, the newest first.",
        query=NamedDecisionsQuery,
        response=NamedDecisionPage,
        is_inference=True,
    ),
    _route(
        method="GET",
        path=_OF_NAME,
        use=lambda call: call.service(NamedDecisions).get(call.caller, call.path["named_decision"]),
        summary="Return a named decision, and where its aliases point.",
        response=NamedDecision,
        errors=(errors.NotFoundError,),
        is_inference=True,
    ),
    _route(
        method="PATCH",
        path=_OF_NAME,
        use=lambda call: call.service(NamedDecisions).change(
            call.write, call.path["named_decision"], call.body
        ),
        summary="Change its description, its owner or its dataset.",
        request=ChangeNamedDecision,
        response=NamedDecision,
        errors=(*_ERRORS, errors.InvalidReferenceError),
    ),
    _route(
        method="POST",
        path=f"{_OF_NAME}/archive",
        use=lambda call: call.service(NamedDecisions).archive(
            call.write, call.path["named_decision"], call.body
        ),
        summary="Archive a named decision, which then answers no requests, or bring it back.",
        request=ArchiveNamedDecision,
        may_be_empty=True,
        response=NamedDecision,
        errors=_ERRORS,
    ),
    _route(
        method="POST",
        path=f"{_OF_NAME}/versions",
        use=lambda call: call.service(NamedDecisions).add_version(
            call.write, call.path["named_decision"], call.body
        ),
        summary="Add a version; one with the same content is returned as it is.",
        request=AddNamedVersion,
        read=partial(read_content, shape=AddNamedVersion),
        response=NamedVersion,
        errors=(*_ERRORS, errors.NamedDecisionLimitError),
    ),
    _route(
        method="GET",
        path=f"{_OF_NAME}/versions",
        use=lambda call: call.service(NamedDecisions).versions(
            call.caller, call.path["named_decision"], call.query
        ),
        summary="Page its versions, the newest first.",
        query=NamedPageQuery,
        response=NamedVersionPage,
        errors=(errors.NotFoundError,),
        is_inference=True,
    ),
    _route(
        method="GET",
        path=f"{_OF_NAME}/versions/{{version}}",
        use=lambda call: call.service(NamedDecisions).version(
            call.caller, call.path["named_decision"], call.path["version"]
        ),
        summary="Return a version by its number, or the one that an alias points to.",
        response=NamedVersion,
        errors=(errors.NotFoundError,),
        is_inference=True,
    ),
    _route(
        method="PUT",
        path=f"{_OF_NAME}/aliases/{{alias}}",
        use=lambda call: call.service(NamedDecisions).move(
            call.write, call.path["named_decision"], call.path["alias"], call.body
        ),
        summary="Point an alias to a version; all processes follow within a second.",
        request=MoveAlias,
        response=NamedDecision,
        errors=(
            *_ERRORS,
            errors.AliasChangedError,
            errors.ComparisonNeededError,
            errors.MoveRefusedError,
            errors.InvalidReferenceError,
            errors.NamedDecisionLimitError,
        ),
    ),
    _route(
        method="POST",
        path=f"{_OF_NAME}/aliases/{{alias}}/rollback",
        use=lambda call: call.service(NamedDecisions).roll_back(
            call.write, call.path["named_decision"], call.path["alias"], call.body
        ),
        summary="Point an alias to where it pointed before its last move.",
        request=RollBackAlias,
        may_be_empty=True,
        response=NamedDecision,
        errors=(*_ERRORS, errors.NothingToRollBackError),
    ),
    _route(
        method="PUT",
        path=f"{_OF_NAME}/aliases/{{alias}}/share",
        use=lambda call: call.service(Shares).share(
            call.write, call.path["named_decision"], call.path["alias"], call.body
        ),
        summary="Let another alias answer a share of its requests; feedback that is worse ends it.",
        request=ShareAlias,
        response=NamedDecision,
        errors=(*_ERRORS, errors.InvalidReferenceError),
    ),
    _route(
        method="GET",
        path=f"{_OF_NAME}/history",
        use=lambda call: call.service(NamedDecisions).history(
            call.caller, call.path["named_decision"], call.query
        ),
        summary="Page the moves of its aliases, the newest first: by whom, when and why.",
        query=NamedPageQuery,
        response=AliasMovePage,
        errors=(errors.NotFoundError,),
    ),
    _route(
        method="POST",
        path=_COMPARISONS,
        use=lambda call: call.service(NamedComparisons).create(call.write, call.body),
        summary="Compare two versions on held-out rows and stored decisions; nothing is moved.",
        request=CompareVersions,
        read=priced(CompareVersions),
        response=NamedComparison,
        errors=(
            *KEYED_ERRORS,
            *UNCALLABLE,
            errors.InvalidReferenceError,
            errors.DatasetDeletedError,
            errors.DatasetArchivedError,
            errors.PriceChangedError,
            errors.InsufficientCreditError,
            errors.KeyCapReachedError,
            errors.TenantQueueFullError,
            errors.QueueFullError,
        ),
    ),
    *_JOBS,
)
