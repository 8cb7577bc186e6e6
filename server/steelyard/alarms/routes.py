"""``/v1/alarms``: rules for an account's models, and changes that they detected."""

from __future__ import annotations

from functools import partial

from steelyard import errors
from steelyard.alarms.service import Alarms
from steelyard.alarms.wire import (
    Alarm,
    AlarmDetail,
    AlarmPage,
    AlarmRules,
    AlarmsQuery,
    PutAlarmRule,
    RemoveRuleQuery,
)
from steelyard.http.routing import Access, Route

_route = partial(Route, access=Access.KEYED, tags=("alarms",))
_KEY_ERRORS = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
_ALARM = "/v1/alarms/{alarm}"

ROUTES = (
    _route(
        method="GET",
        path="/v1/alarms/rules",
        use=lambda call: call.service(Alarms).rules(call.caller),
        summary="Return what is watched of which models, and against what.",
        response=AlarmRules,
    ),
    _route(
        method="PUT",
        path="/v1/alarms/rules",
        use=lambda call: call.service(Alarms).put_rule(call.write, call.body),
        summary="Set what is watched of a model, or of every other one; its alarms clear.",
        request=PutAlarmRule,
        response=AlarmRules,
        errors=_KEY_ERRORS,
    ),
    _route(
        method="DELETE",
        path="/v1/alarms/rules",
        use=lambda call: call.service(Alarms).remove_rule(call.write, call.query.model),
        summary="Remove a rule: the general one, or the default, holds again; its alarms clear.",
        query=RemoveRuleQuery,
        response=AlarmRules,
        errors=(errors.NotFoundError, *_KEY_ERRORS),
    ),
    _route(
        method="GET",
        path="/v1/alarms",
        use=lambda call: call.service(Alarms).page(call.caller, call.query),
        summary="Page the account's alarms, the newest first, with their evidence.",
        query=AlarmsQuery,
        response=AlarmPage,
    ),
    _route(
        method="GET",
        path=_ALARM,
        use=lambda call: call.service(Alarms).get(call.caller, call.path["alarm"]),
        summary="Return an alarm, how its figure is now, and whose decisions feedback came of.",
        response=AlarmDetail,
        errors=(errors.NotFoundError,),
    ),
    _route(
        method="POST",
        path=f"{_ALARM}/acknowledge",
        use=lambda call: call.service(Alarms).acknowledge(call.write, call.path["alarm"]),
        summary="Note that somebody knows of an alarm; it clears by itself.",
        response=Alarm,
        errors=(errors.NotFoundError, *_KEY_ERRORS),
    ),
)
