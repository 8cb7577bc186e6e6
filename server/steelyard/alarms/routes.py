"""``/v1/alarms``: rules for an account's models, and changes that they detected."""

from functools import partial

from steelyard import errors
from steelyard.alarms.golden_checks import GoldenRowChecks
from steelyard.alarms.service import Alarms
from steelyard.alarms.wire import AlarmRules, RemoveRuleQuery
from steelyard.http.routing import KEY_ERRORS, Access, row

_route = partial(row, access=Access.KEYED, tags=("alarms",))
_ALARM = "/v1/alarms/{alarm}"

ROUTES = (
    _route(
        "GET /v1/alarms/rules",
        Alarms.rules,
        "Return what is watched of which models, and against what.",
    ),
    _route(
        "PUT /v1/alarms/rules",
        Alarms.put_rule,
        "Set what is watched of a model, or of every other one; its alarms clear.",
        errors=(
            errors.InvalidReferenceError,
            errors.DatasetDeletedError,
            errors.ModelUnavailableError,
            *KEY_ERRORS,
        ),
    ),
    _route(
        "DELETE /v1/alarms/rules",
        lambda call: call.service(Alarms).remove_rule(call.write, call.query.model),
        "Remove a rule: the general one, or the default, holds again; its alarms clear.",
        query=RemoveRuleQuery,
        response=AlarmRules,
        errors=KEY_ERRORS,
    ),
    _route(
        "POST /v1/alarms/golden",
        GoldenRowChecks.check_now,
        "Ask a model's golden rows now, and return what their checks found.",
        errors=(
            errors.InvalidReferenceError,
            errors.DatasetDeletedError,
            errors.ModelUnavailableError,
            errors.QueueFullError,
            *KEY_ERRORS,
        ),
    ),
    _route(
        "GET /v1/alarms",
        Alarms.page,
        "Page the account's alarms, the newest first, with their evidence.",
    ),
    _route(
        f"GET {_ALARM}",
        Alarms.get,
        "Return an alarm, how its figure is now, and whose decisions feedback came of.",
    ),
    _route(
        f"POST {_ALARM}/acknowledge",
        Alarms.acknowledge,
        "Note that somebody knows of an alarm; it clears by itself.",
        errors=KEY_ERRORS,
    ),
)
