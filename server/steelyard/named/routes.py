"""``/v1/named-decisions``: decisions under names, in versions that aliases point to."""

from functools import partial

from steelyard import errors
from steelyard.http.routing import KEY_ERRORS, Access, row
from steelyard.job_frame.routes import job_routes
from steelyard.ledger.max_price import priced
from steelyard.named import comparison_wire
from steelyard.named.compare_service import NamedComparisons
from steelyard.named.content import read_content
from steelyard.named.service import NamedDecisions
from steelyard.named.shares import Shares
from steelyard.named.wire import AddNamedVersion, CreateNamedDecision
from steelyard.serving.routes import UNCALLABLE

_route = partial(row, access=Access.KEYED, tags=("named decisions",))
_COMPARED_ERRORS = (
    *UNCALLABLE,
    errors.InvalidReferenceError,
    errors.DatasetDeletedError,
    errors.DatasetArchivedError,
    errors.PriceChangedError,
)
_NAMED = "/v1/named-decisions"
_OF_NAME = f"{_NAMED}/{{named_decision}}"
_COMPARISONS = "/v1/named-comparisons"
_JOBS = job_routes(
    NamedComparisons,
    _COMPARISONS,
    "comparison",
    tag="named decisions",
    job=comparison_wire.NamedComparison,
    query=comparison_wire.ComparisonsQuery,
    summaries=(
        "Page the account's comparisons of versions, the newest first.",
        "Return a comparison: how far it is, then its verdict and figures.",
        "Stop a comparison; nothing is charged.",
    ),
)

ROUTES = (
    _route(
        f"POST {_NAMED}",
        NamedDecisions.create,
        "Put questions, policies and a model under a name; `production` points to them.",
        read=partial(read_content, shape=CreateNamedDecision),
        errors=(
            *KEY_ERRORS,
            errors.NamedDecisionExistsError,
            errors.NamedDecisionLimitError,
            errors.InvalidReferenceError,
        ),
    ),
    _route(
        f"GET {_NAMED}",
        NamedDecisions.page,
        "Page the account's named decisions, the newest first.",
        is_inference=True,
    ),
    _route(
        f"GET {_OF_NAME}",
        NamedDecisions.get,
        "Return a named decision, and where its aliases point.",
        is_inference=True,
    ),
    _route(
        f"PATCH {_OF_NAME}",
        NamedDecisions.change,
        "Change its description, owner, dataset or the most that is stored of its answers.",
        errors=(*KEY_ERRORS, errors.InvalidReferenceError),
    ),
    _route(
        f"POST {_OF_NAME}/archive",
        NamedDecisions.archive,
        "Archive a named decision, which then answers no requests, or bring it back.",
        may_be_empty=True,
        errors=KEY_ERRORS,
    ),
    _route(
        f"POST {_OF_NAME}/versions",
        NamedDecisions.add_version,
        "Add a version; one with the same content is returned as it is.",
        read=partial(read_content, shape=AddNamedVersion),
        errors=(*KEY_ERRORS, errors.NamedDecisionLimitError),
    ),
    _route(
        f"GET {_OF_NAME}/versions",
        NamedDecisions.versions,
        "Page its versions, the newest first.",
        is_inference=True,
    ),
    _route(
        f"GET {_OF_NAME}/versions/{{version}}",
        NamedDecisions.version,
        "Return a version by its number, or the one that an alias points to.",
        is_inference=True,
    ),
    _route(
        f"PUT {_OF_NAME}/aliases/{{alias}}",
        NamedDecisions.move,
        "Point an alias to a version; all processes follow within a second.",
        errors=(
            *KEY_ERRORS,
            errors.AliasChangedError,
            errors.ComparisonNeededError,
            errors.MoveRefusedError,
            errors.InvalidReferenceError,
            errors.NamedDecisionLimitError,
        ),
    ),
    _route(
        f"POST {_OF_NAME}/aliases/{{alias}}/rollback",
        NamedDecisions.roll_back,
        "Point an alias to where it pointed before its last move.",
        may_be_empty=True,
        errors=(*KEY_ERRORS, errors.NothingToRollBackError),
    ),
    _route(
        f"PUT {_OF_NAME}/aliases/{{alias}}/share",
        Shares.share,
        "Let another alias answer a share of its requests; feedback that is worse ends it.",
        errors=(*KEY_ERRORS, errors.InvalidReferenceError),
    ),
    _route(
        f"GET {_OF_NAME}/history",
        NamedDecisions.history,
        "Page the moves of its aliases, the newest first: by whom, when and why.",
    ),
    _route(
        f"POST {_COMPARISONS}",
        NamedComparisons.create,
        "Compare two versions on held-out rows and stored decisions; nothing is moved.",
        read=priced(comparison_wire.CompareVersions),
        errors=(
            *KEY_ERRORS,
            *_COMPARED_ERRORS,
            errors.InsufficientCreditError,
            errors.KeyCapReachedError,
            errors.TenantQueueFullError,
            errors.QueueFullError,
        ),
    ),
    _route(
        f"POST {_COMPARISONS}/estimate",
        NamedComparisons.estimate,
        "Return the texts, tokens and price of a comparison; nothing is asked or held.",
        read=priced(comparison_wire.CompareVersions),
        errors=_COMPARED_ERRORS,
    ),
    *_JOBS,
)
