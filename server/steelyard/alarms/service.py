"""Rules of an account, and its alarms: listed, looked into, acknowledged."""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard.alarms import store as rows
from steelyard.alarms import wire
from steelyard.alarms.budget import WATCHES
from steelyard.alarms.golden_checks import GoldenRowChecks, find_golden, state_of
from steelyard.alarms.raising import clear
from steelyard.alarms.telling import OF_FEEDBACK, measure_of
from steelyard.alarms.tracking import CLEAR_AFTER, estimate
from steelyard.alarms.watched import DEFAULT_RULE, Watched
from steelyard.alarms.watching import MOST_WATCHED
from steelyard.calibration.sequences import BUCKET
from steelyard.caller import Caller
from steelyard.decision_log.store import AnswerCriteria, feedback_of_answers, newest_answers
from steelyard.decision_log.traffic import share
from steelyard.errors import NotFoundError, SteelyardError
from steelyard.evaluations.models import EvaluatedModels
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.storage import State
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.measures import Measure
from steelyard.wire.violations import BODY, refusal

MAX_RULES = 200
#: Answers that the selection of feedback is made of, and those that are read at once.
_LOOKED, _AT_ONCE = 5_000, 500

_encode = msgspec.json.Encoder().encode
_decode_rule = decoder_of(wire.AlarmRule).decode
_decode_evidence = decoder_of(wire.AlarmEvidence).decode
_decode_watched = decoder_of(Watched).decode


class _Top(msgspec.Struct):
    p_top: float


_tops = decoder_of(dict[str, _Top]).decode


class Alarms:
    """The alarms of every account."""

    def __init__(
        self, state: State, writes: KeyedWrites, golden: GoldenRowChecks, models: EvaluatedModels
    ) -> None:
        self._state = state
        self._golden = golden
        self._models = models
        self._writes = writes

    async def rules(self, caller: Caller) -> wire.AlarmRules:
        """Return an account's rules, and the models that they watch."""
        now = time.time()
        return await self._state.read(lambda connection: _rules(connection, caller.account_id, now))

    async def put_rule(self, write: Write, request: wire.PutAlarmRule) -> wire.AlarmRules:
        """Replace the rule of a model or the general rule, and clear the alarms of its models."""
        account_id, now = write.caller.account_id, time.time()
        model = request.model or ""
        _check_reference(request)
        if request.golden is not None:
            if request.model is None:
                raise refusal((*BODY, "golden"), "goes with a model; name one.", "refused")
            await self._golden.check_rule(write.caller, request.model, request.golden)
        elif request.model is not None:
            await self._check_model(write.caller, request.model)
        watches = [
            watch for watch in WATCHES if request.watches is None or watch in request.watches
        ]
        rule = filled(wire.AlarmRule, request, watches=watches, updated_at=now)

        def work(connection: Connection) -> wire.AlarmRules:
            chosen = request.reference
            if chosen is not None and chosen.evaluation_id is not None:
                _require_evaluation(connection, account_id, chosen.evaluation_id)
            own = {row.model for row in rows.all_rules(connection, [account_id])}
            if model not in own and len(own) >= MAX_RULES:
                message = f"is one rule more than the {MAX_RULES} that an account may have."
                raise refusal((*BODY, "model"), message, "too_many")
            before = find_golden(connection, account_id, model)
            rows.put_rule(connection, account_id, model, _encode(rule), now)
            if before is None or _rows_of(before) != _rows_of(rule):
                rows.forget_golden_checks(connection, account_id, model)
            _clear_alarms(connection, account_id, request.model, own, now)
            return _rules(connection, account_id, now)

        return await self._writes.once(write, work)

    async def _check_model(self, caller: Caller, model: str) -> None:
        """Refuse a model that neither is here nor has answered; one that is off may have a rule."""
        try:
            await self._models.find(caller, model)
        except NotFoundError:
            if await self._state.read(lambda c: rows.is_known(c, caller.account_id, model)):
                return
            message = (
                f"is {model[:60]!r}, which is neither a model that is here nor one that has answered; see "
                "GET /v1/models. decision:NAME goes with golden rows."
            )
            raise refusal((*BODY, "model"), message, "unknown_model") from None
        except SteelyardError:
            return

    async def remove_rule(self, write: Write, model: str | None) -> wire.AlarmRules:
        """Remove the rule of a model or the general rule, and clear the alarms of its models."""
        account_id, now = write.caller.account_id, time.time()

        def work(connection: Connection) -> wire.AlarmRules:
            own = {row.model for row in rows.all_rules(connection, [account_id])}
            if (model or "") not in own:
                of = "No general rule" if model is None else f"No rule of {model[:60]!r}"
                raise NotFoundError(f"{of} is set; see GET /v1/alarms/rules.")
            rows.delete_rule(connection, account_id, model or "")
            rows.forget_golden_checks(connection, account_id, model or "")
            _clear_alarms(connection, account_id, model, own, now)
            return _rules(connection, account_id, now)

        return await self._writes.once(write, work)

    async def page(self, caller: Caller, query: wire.AlarmsQuery) -> wire.AlarmPage:
        """Return a page of an account's alarms."""
        page = await self._state.read(
            lambda connection: rows.page_of_alarms(connection, caller.account_id, query)
        )
        return page.to_wire(wire.AlarmPage, [_to_wire(row) for row in page.rows])

    async def get(self, caller: Caller, alarm_id: str) -> wire.AlarmDetail:
        """Return an alarm, and how its figure is now."""

        def read(connection: Connection) -> wire.AlarmDetail:
            row = _find(connection, caller.account_id, alarm_id)
            alarm = _to_wire(row)
            selection = None
            if alarm.watch in OF_FEEDBACK:
                selection = _selection(connection, caller.account_id, alarm)
            return wire.AlarmDetail(
                alarm=alarm, now=_now(connection, row, alarm), selection=selection
            )

        return await self._state.read(read)

    async def acknowledge(self, write: Write, alarm_id: str) -> wire.Alarm:
        """Acknowledge an alarm; it still clears by itself."""
        caller, now = write.caller, time.time()

        def work(connection: Connection) -> wire.Alarm:
            row = _find(connection, caller.account_id, alarm_id)
            if row.state == "raised":
                rows.change_alarm(
                    connection,
                    alarm_id,
                    state="acknowledged",
                    acknowledged_at=now,
                    acknowledged_by=caller.key_id,
                )
            return _to_wire(_find(connection, caller.account_id, alarm_id))

        return await self._writes.once(write, work)


def _clear_alarms(
    connection: Connection, account_id: str, model: str | None, own: AbstractSet[str], now: float
) -> None:
    """Clear the alarms of the models of a changed rule; ``own`` are the models with their own."""
    for alarm in rows.active_alarms(connection, account_id, model):
        if model is not None or alarm.model not in own:
            clear(connection, alarm, "rules_changed", now)


def _rows_of(rule: wire.AlarmRule) -> str | None:
    return None if rule.golden is None else rule.golden.dataset_id


def _rules(connection: Connection, account_id: str, now: float) -> wire.AlarmRules:
    rules = {row.model: _decode_rule(row.body) for row in rows.all_rules(connection, [account_id])}
    general = rules.pop("", DEFAULT_RULE)
    watched = []
    for row in rows.watches_of_account(connection, account_id, MOST_WATCHED):
        watch = _decode_watched(row.body)
        watched.append(
            wire.WatchedModel(
                model=row.model,
                version=row.version or None,
                answers=row.counted,
                reference=watch.reference or watch.learned,
                looked_at=row.updated_at,
            )
        )
    golden = [
        state_of(connection, account_id, rule, now)
        for rule in rules.values()
        if rule.golden is not None
    ]
    return wire.AlarmRules(data=[general, *rules.values()], watched=watched, golden=golden)


def _now(connection: Connection, row: Row[Any], alarm: wire.Alarm) -> Measure | None:
    key = (row.account_id, row.model, row.version)
    body = rows.find_watches(connection, [key]).get(key)
    if body is None:
        return None
    for stream in _decode_watched(body).streams.values():
        if (
            stream.decision == row.decision
            and row.watch in stream.watches()
            and alarm.evidence.figure in stream.figures
            and stream.latest
        ):
            since = max(len(stream.latest) - CLEAR_AFTER // BUCKET, 0)
            return measure_of(estimate(stream, alarm.evidence.figure, "errors", since))
    return None


def _selection(
    connection: Connection, account_id: str, alarm: wire.Alarm
) -> wire.FeedbackSelection:
    behind = alarm.evidence.decisions
    criteria = AnswerCriteria(
        account_id=account_id, since=behind.since, until=behind.until, model=behind.model
    )
    answers = newest_answers(connection, criteria, _LOOKED)
    tops: dict[bool, list[float]] = {False: [], True: []}
    for start in range(0, len(answers), _AT_ONCE):
        part = answers[start : start + _AT_ONCE]
        observed = feedback_of_answers(connection, [row.id for row in part])
        for row in part:
            result = _tops(row.results).get(alarm.decision or "")
            if result is not None:
                has_feedback = alarm.decision in observed.get(row.id, {})
                tops[has_feedback].append(result.p_top)
    every = tops[False] + tops[True]
    return wire.FeedbackSelection(
        decisions=len(every),
        with_feedback=share(len(tops[True]), len(every)),
        mean_p_top=sum(every) / len(every) if every else None,
        mean_p_top_with_feedback=sum(tops[True]) / len(tops[True]) if tops[True] else None,
    )


def _find(connection: Connection, account_id: str, alarm_id: str) -> Row[Any]:
    row = rows.find_alarm(connection, account_id, alarm_id)
    if row is None:
        raise NotFoundError(f"There is no alarm {alarm_id[:60]!r}; see GET /v1/alarms.")
    return row


def _require_evaluation(connection: Connection, account_id: str, evaluation_id: str) -> None:
    reference = rows.find_reference(connection, account_id, label="", evaluation_id=evaluation_id)
    if reference is None:
        message = "is no evaluation of this account that succeeded and whose rows are still there."
        raise refusal((*BODY, "reference"), message, "unknown_evaluation")


def _check_reference(request: wire.PutAlarmRule) -> None:
    chosen = request.reference
    if chosen is None:
        return
    given = [field is not None for field in (chosen.evaluation_id, chosen.since, chosen.until)]
    if given not in ([True, False, False], [False, True, True]):
        message = "is neither an evaluation_id nor since and until; give one of the two."
        raise refusal((*BODY, "reference"), message, "invalid")
    if chosen.since is not None and chosen.until is not None and chosen.until <= chosen.since:
        raise refusal(
            (*BODY, "reference"), "ends before it begins; give a later until.", "empty_range"
        )


def _to_wire(row: Row[Any]) -> wire.Alarm:
    return filled(
        wire.Alarm,
        row,
        version=row.version or None,
        decision=row.decision or None,
        raised_at=row.created_at,
        evidence=_decode_evidence(row.evidence),
    )
