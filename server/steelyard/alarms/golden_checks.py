"""Golden rows on a clock: ask them again, compare with the frozen answers, and raise alarms.

A check is an evaluation of the rows: what one has answered is kept, so that nothing is asked twice by
a process that is killed. Which evaluation a check has is decided by its number, once: the number is
the idempotency key with which the evaluation is asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from steelyard import errors
from steelyard.alarms import store as rows
from steelyard.alarms.budget import GoldenWatch
from steelyard.alarms.golden import Answers, compare_answers
from steelyard.alarms.golden_wire import CheckGoldenRows, GoldenCheck, GoldenRows, GoldenState
from steelyard.alarms.raising import clear, raise_alarm
from steelyard.alarms.wire import AlarmEvidence, AlarmReference, AlarmRule, DecisionsBehind
from steelyard.caller import Caller
from steelyard.datasets.definitions import fingerprints_by_id
from steelyard.datasets.service import DatasetService
from steelyard.datasets.tasks import fingerprint
from steelyard.decisions.named import MODEL_PREFIX, PRODUCTION
from steelyard.decisions.validation import decisions_of
from steelyard.evaluations import predictions
from steelyard.evaluations.measuring import MAX_MEASURED, SUPERVISION
from steelyard.evaluations.models import EvaluatedModel, EvaluatedModels
from steelyard.evaluations.prediction_columns import records_of
from steelyard.evaluations.queries_wire import CreateEvaluation
from steelyard.evaluations.service import EvaluationService
from steelyard.evaluations.wire import EvaluationSubmission
from steelyard.house import House
from steelyard.named.service import NamedDecisions
from steelyard.operations.write import Replay, Write
from steelyard.serving.registry import ModelRegistry
from steelyard.version import __version__
from steelyard.wire.decoding import decode, decoder_of
from steelyard.wire.jobs import UNFINISHED
from steelyard.wire.measures import Measure
from steelyard.wire.violations import BODY, refusal

_log = logging.getLogger(__name__)

#: Seconds between two looks, of an hour, and until a check that could not begin is tried again.
LOOK_S, _HOUR_S, _AGAIN_S = 20.0, 3600.0, 3600.0
#: Seconds between two looks at which model answers now.
_RESOLVE_S = 300.0
#: Held-out rows that are asked again at most.
MOST_ROWS = 2_000
#: Checks that are kept of a model, and that a rule lists.
_MOST_CHECKS, _LISTED = 100, 10

_decode_check = decoder_of(GoldenCheck).decode
_encode = msgspec.json.Encoder().encode


class GoldenRowChecks:
    """The golden rows of every account."""

    def __init__(
        self,
        house: House,
        evaluations: EvaluationService,
        datasets: DatasetService,
        models: EvaluatedModels,
        named: NamedDecisions,
        registry: ModelRegistry,
    ) -> None:
        self._state, self._writes, self._now = house.state, house.writes, house.now
        self._files, self._has_accounts = house.frames("evaluations"), house.has_accounts
        self._evaluations, self._datasets, self._models = evaluations, datasets, models
        self._named, self._registry = named, registry
        #: When it was last looked which model answers, by account and model.
        self._resolved_at: dict[tuple[str, str], float] = {}
        #: When each model's golden rows were last checked.
        self.checked_at: Mapping[tuple[str, str], float] = {}

    async def check_now(self, write: Write, request: CheckGoldenRows) -> GoldenState:
        """Ask a model's golden rows now, unless a check is under way."""
        await self._writes.replay_known(write)
        account_id = write.caller.account_id
        rule = await self._state.read(lambda c: find_golden(c, account_id, request.model))
        if rule is None:
            raise errors.NotFoundError(
                f"{request.model[:60]!r} has no golden rows; set a rule that names a dataset."
            )
        await self._look(account_id, rule, because="somebody asked")
        return await self._writes.once(write, lambda c: state_of(c, account_id, rule, self._now()))

    async def check_rule(self, caller: Caller, model: str, golden: GoldenRows) -> None:
        """Refuse golden rows that cannot be asked of a model."""
        path = (*BODY, "golden", "dataset_id")
        at = await self._datasets.dataset_at(caller, golden.dataset_id)
        if not 1 <= at.split.evaluation <= MOST_ROWS:
            message = f"has {at.split.evaluation} held-out rows; golden rows are 1 to {MOST_ROWS:,} of them."
            raise refusal(path, message, "out_of_range")
        await self._find(caller, model, golden)

    def tick(self) -> None:
        """Look at every model that has golden rows."""
        checked: dict[tuple[str, str], float] = {}
        for account_id, rule in self._state.read_now(golden_rules):
            try:
                at = asyncio.run(self._look(account_id, rule))
            except Exception:  # noqa: BLE001  the next models' turn comes all the same
                _log.exception("The golden rows of %s were not looked at.", rule.model)
                continue
            if at is not None:
                checked[account_id, str(rule.model)] = at
        self.checked_at = checked

    async def _look(self, account_id: str, rule: AlarmRule, *, because: str = "") -> float | None:
        """Begin or end a check where that is due; return when the last one succeeded."""
        model, golden, now = str(rule.model), rule.golden, self._now()
        assert golden is not None  # noqa: S101  those rules alone are looked at
        caller = Caller(account_id, None, "full", "golden")
        checks = await self._state.read(lambda c: checks_of(c, account_id, model))
        last = checks[-1] if checks else None
        if last is not None and last.ended_at is None:
            ended = await asyncio.to_thread(self._end, account_id, model, checks)
            checks = [*checks[:-1], ended]
        else:
            try:
                await self._begin(caller, rule, checks, because)
            except errors.SteelyardError as error:
                message = error.message
                await self._state.write(lambda c: self._fail(c, account_id, model, last, message))
        at = checked_at(checks)
        since = _stale_since(checks, now)
        is_raised = await self._state.read(
            lambda c: bool(rows.active_alarms(c, account_id, model, watch="golden_stale"))
        )
        if is_raised != is_stale(since, golden, self._now()):
            await self._state.write(
                lambda c: self._note_stale(c, account_id, rule, since, is_new=at is None)
            )
        return at

    async def _begin(
        self,
        caller: Caller,
        rule: AlarmRule,
        checks: Sequence[GoldenCheck],
        because: str,
    ) -> None:
        """Ask for the next evaluation of the rows, if there is a reason."""
        model, golden, last = str(rule.model), rule.golden, checks[-1] if checks else None
        assert golden is not None  # noqa: S101  those rules alone are looked at
        now, place = self._now(), (caller.account_id, model)
        pause_s = (
            _AGAIN_S
            if last is not None and last.status == "failed"
            else golden.every_hours * _HOUR_S
        )
        is_due = last is None or now >= last.started_at + pause_s
        # Whether the model is another one is not asked at each look: it may have to be resolved.
        is_quiet = len(checks) > 1 and now < self._resolved_at.get(place, 0.0) + _RESOLVE_S
        if not (is_due or because) and (is_quiet or (last is not None and last.status == "failed")):
            return
        self._resolved_at[place] = now
        evaluated, subject = await self._find(caller, model, golden)
        hosted = self._registry.find(evaluated.id)
        provider_model = "" if hosted is None else hosted.provider_model()
        is_here = hosted is None or not hosted.is_connected
        because = because or reason_to_check(
            checks_with_answers(checks, subject),
            evaluated.evaluation_key,
            provider_model,
            since=now - golden.every_hours * _HOUR_S,
            is_here=is_here,
            is_due=is_due,
        )
        if not because:
            return
        number = 1 if last is None else last.number + 1
        parts = [model, golden.dataset_id, rule.updated_at, number, evaluated.evaluation_key]
        key = hashlib.sha256(_encode(parts)).hexdigest()
        evaluation_id = await self._ask(Write(caller, "golden", key, key), golden, evaluated)
        check = GoldenCheck(
            number=number,
            status="running",
            evaluation_id=evaluation_id,
            started_at=now,
            ended_at=None,
            subject=subject,
            because=because,
            model_key=evaluated.evaluation_key,
            software=__version__,
            provider_model=provider_model,
        )
        await self._state.write(
            lambda c: rows.add_golden_check(c, caller.account_id, model, number, _encode(check))
        )

    async def _ask(self, write: Write, golden: GoldenRows, evaluated: EvaluatedModel) -> str:
        """Return the evaluation of a check; asked for again, it is the same."""
        request = CreateEvaluation(
            dataset_id=golden.dataset_id, models=[evaluated.named or evaluated.id]
        )
        try:
            submission = await self._evaluations.create_anew(write, request)
        except Replay as replay:
            submission = decode(replay.body, EvaluationSubmission)
        return submission.data[0].id

    async def _find(
        self, caller: Caller, model: str, golden: GoldenRows
    ) -> tuple[EvaluatedModel, str]:
        """Return the model that answers now, and a name of it and of what it is asked with."""
        if not model.startswith(MODEL_PREFIX):
            evaluated = await self._models.find(caller, model)
            return evaluated, evaluated.label
        name = model.removeprefix(MODEL_PREFIX)
        version = await self._named.version(caller, name, PRODUCTION)
        at = await self._datasets.dataset_at(caller, golden.dataset_id)
        definitions = await asyncio.to_thread(self._datasets.definitions, at)
        wordings = fingerprints_by_id(definitions)
        other = [
            each.id
            for each in decisions_of(version.decisions)
            if fingerprint(each) not in wordings.get(each.id, ())
        ]
        if other:
            raise errors.InvalidReferenceError(
                f"Version {version.version} of {name!r} asks {', '.join(other)} in other words than the rows; "
                "add rows in its words.",
                path=(*BODY, "golden", "dataset_id"),
            )
        evaluated = await self._models.find(caller, version.model or self._registry.default.name)
        return evaluated, f"{name}@{version.version}, {evaluated.label}"

    def _end(self, account_id: str, model: str, checks: Sequence[GoldenCheck]) -> GoldenCheck:
        """Write what a check found, once its evaluation has ended; it blocks."""
        check = checks[-1]
        row = self._state.read_now(
            lambda c: self._evaluations.jobs.find(c, check.evaluation_id or "")
        )
        if row is not None and row.status in UNFINISHED:
            return check
        ended = replace(check, ended_at=self._now())
        if row is None or row.status != "succeeded":
            why = "is gone" if row is None else f"ended as {row.status}"
            message = f"The evaluation {check.evaluation_id} {why}."
            ended = replace(ended, status="failed", message=message)
        else:
            try:
                ended = self._measure(ended, checks[:-1])
            except errors.SteelyardError as error:
                ended = replace(ended, status="failed", message=error.message)
        self._state.write_now(lambda c: self._write(c, account_id, model, ended, checks))
        return ended

    def _measure(self, check: GoldenCheck, before: Sequence[GoldenCheck]) -> GoldenCheck:
        same = checks_with_answers(before, check.subject)
        now = self._answers(check)
        if not same:
            message = f"{len(now.records):,} answers of {check.subject} were frozen."
            return replace(check, status="frozen", message=message)
        again = self._answers(same[1]) if len(same) > 1 else None
        n_checks = max(1, len(same) - 1)
        result = compare_answers(self._answers(same[0]), again, now, n_checks=n_checks)
        is_first = again is None
        has_moved = result.has_moved and not is_first
        message = (
            f"{result.moved:.1%} of {result.n:,} answers of {check.subject} moved since they were frozen; "
            f"{result.moved if is_first else result.moved_by_chance:.1%} move by chance."
        )
        if result.right is not None and not is_first:
            message += f" Right are {result.right.after:.1%}, and were {result.right.before:.1%}."
        return replace(
            check, status="moved" if has_moved else "unchanged", result=result, message=message
        )

    def _answers(self, check: GoldenCheck) -> Answers:
        row = self._state.read_now(
            lambda c: self._evaluations.jobs.find(c, check.evaluation_id or "")
        )
        if row is None or row.predictions_sha256 is None:
            raise errors.NotFoundError(
                f"The answers of the evaluation {check.evaluation_id} are gone; set the rule anew."
            )
        sample = predictions.read_sample(self._files, row.predictions_sha256, MAX_MEASURED)
        metrics: dict[str, Any] = msgspec.json.decode(row.metrics)
        records = records_of(sample.table, SUPERVISION[row.method])
        return Answers(records, metrics.get("latency_ms"))

    def _write(
        self,
        connection: Connection,
        account_id: str,
        model: str,
        check: GoldenCheck,
        checks: Sequence[GoldenCheck],
    ) -> None:
        body = _encode(check)
        before = _encode(checks[-1])
        if not rows.change_golden_check(connection, account_id, model, check.number, before, body):
            return  # another process has written it
        frozen = checks_with_answers(checks, check.subject)[:2]
        rows.forget_golden_checks(
            connection,
            account_id,
            model,
            before=check.number - _MOST_CHECKS,
            but=[each.number for each in frozen],
        )
        if check.status == "moved":
            self._raise(connection, account_id, model, "golden", check.message, check, frozen[0])
        elif check.status in {"unchanged", "frozen"}:
            self._clear(connection, account_id, model, "golden")

    def _note_stale(
        self,
        connection: Connection,
        account_id: str,
        rule: AlarmRule,
        since: float,
        *,
        is_new: bool,
    ) -> None:
        model, golden, now = str(rule.model), rule.golden, self._now()
        assert golden is not None  # noqa: S101  those rules alone are looked at
        if not is_stale(since, golden, now):
            self._clear(connection, account_id, model, "golden_stale")
            return
        ago = (now - since) / _HOUR_S
        what = "were never checked" if is_new else "were last checked"
        message = (
            f"The golden rows of {model} {what}{' in' if is_new else ''} {ago:,.0f} h"
            f"{'' if is_new else ' ago'}; every {golden.every_hours:g} h was set."
        )
        newest = checks_of(connection, account_id, model)[-1:]
        if newest and newest[0].status == "failed":
            message += f" {newest[0].message}"
        check = GoldenCheck(
            number=0, status="failed", evaluation_id=None, started_at=since, ended_at=now
        )
        self._raise(connection, account_id, model, "golden_stale", message, check, None)

    def _raise(
        self,
        connection: Connection,
        account_id: str,
        model: str,
        watch: GoldenWatch,
        message: str,
        check: GoldenCheck,
        frozen: GoldenCheck | None,
    ) -> None:
        until = check.ended_at or self._now()
        result = check.result
        beyond = None if result is None else result.beyond_chance
        hours = (until - check.started_at) / _HOUR_S
        evidence = AlarmEvidence(
            figure="stale" if result is None else "moved",
            estimate=Measure(
                value=hours if beyond is None else beyond.after,
                low=None if beyond is None or beyond.low is None else beyond.before + beyond.low,
                high=None if beyond is None or beyond.high is None else beyond.before + beyond.high,
                n=1 if beyond is None else beyond.n,
            ),
            reference=AlarmReference(
                kind="evaluation", evaluation_id=None if frozen is None else frozen.evaluation_id
            ),
            reference_value=0.0 if beyond is None else beyond.before,
            reference_n=1 if beyond is None else beyond.n,
            since=check.started_at,
            until=until,
            decisions=DecisionsBehind(since=check.started_at, until=until, model=model),
        )
        raise_alarm(
            connection,
            {
                "account_id": account_id,
                "model": model,
                "version": "",
                "decision": "",
                "watch": watch,
            },
            evidence,
            message,
            self._now(),
            has_accounts=self._has_accounts,
        )

    def _clear(
        self, connection: Connection, account_id: str, model: str, watch: GoldenWatch
    ) -> None:
        for alarm in rows.active_alarms(connection, account_id, model, watch=watch):
            clear(connection, alarm, "recovered", self._now())

    def _fail(
        self,
        connection: Connection,
        account_id: str,
        model: str,
        last: GoldenCheck | None,
        message: str,
    ) -> None:
        now, number = self._now(), 1 if last is None else last.number + 1
        check = GoldenCheck(
            number=number,
            status="failed",
            evaluation_id=None,
            started_at=now,
            ended_at=now,
            message=message,
        )
        rows.add_golden_check(connection, account_id, model, number, _encode(check))


def checks_with_answers(checks: Sequence[GoldenCheck], subject: str) -> list[GoldenCheck]:
    """Return the checks of a subject that did not fail; the first two are what later ones are held to."""
    return [each for each in checks if each.subject == subject and each.status != "failed"]


def reason_to_check(
    before: Sequence[GoldenCheck],
    model_key: str,
    provider_model: str,
    *,
    since: float,
    is_here: bool,
    is_due: bool,
) -> str:
    """Return why golden rows are to be asked now; empty where they are not.

    What a check has had ``since`` is no change: hosts may differ, and a provider's names may alternate.
    """
    if not before:
        return "its answers are to be frozen"
    if len(before) == 1:
        return "it is seen what moves by chance"
    recent = [each for each in before if each.started_at >= since] or before[-1:]
    if all(each.model_key != model_key for each in recent):
        return "the model, or its settings, changed"
    names = [each.provider_model for each in recent if each.provider_model]
    if provider_model and names and provider_model not in names:
        return f"the provider's model is {provider_model}, and was {names[-1]}"
    if is_here and all(each.software != __version__ for each in recent):
        return f"this is version {__version__}, and was {recent[-1].software}"
    return "it was time" if is_due else ""


def golden_rules(connection: Connection) -> list[tuple[str, AlarmRule]]:
    """Return the accounts' rules that have golden rows and are on."""
    return [
        (account_id, rule)
        for account_id, rule in rows.rules_of_models(connection)
        if _is_on_clock(rule)
    ]


def find_golden(connection: Connection, account_id: str, model: str) -> AlarmRule | None:
    """Return the rule of a model that has golden rows; ``None`` where it has none, or is off."""
    rule = rows.rule_of_model(connection, account_id, model)
    return rule if rule is not None and _is_on_clock(rule) else None


def _is_on_clock(rule: AlarmRule) -> bool:
    return rule.golden is not None and rule.enabled


def checks_of(connection: Connection, account_id: str, model: str) -> list[GoldenCheck]:
    """Return the checks of a model that are kept, the oldest first."""
    return [_decode_check(body) for body in rows.golden_checks_of(connection, account_id, model)]


def checked_at(checks: Sequence[GoldenCheck]) -> float | None:
    """Return when the last check succeeded."""
    times = [each.ended_at for each in checks if each.status in {"frozen", "unchanged", "moved"}]
    return times[-1] if times else None


def _stale_since(checks: Sequence[GoldenCheck], now: float) -> float:
    """Return the time from which on rows are unchecked: the last success, or the first try."""
    return checked_at(checks) or (checks[0].started_at if checks else now)


def is_stale(since: float, golden: GoldenRows, now: float) -> bool:
    """Whether no check succeeded for twice the hours that were set."""
    return now - since > 2 * golden.every_hours * _HOUR_S


def state_of(connection: Connection, account_id: str, rule: AlarmRule, now: float) -> GoldenState:
    """Return the golden rows of a rule, with their newest checks."""
    assert rule.golden is not None  # noqa: S101  those rules alone are listed
    model = str(rule.model)
    checks = checks_of(connection, account_id, model)
    at, since = checked_at(checks), _stale_since(checks, now)
    return GoldenState(
        model=model,
        golden=rule.golden,
        checked_at=at,
        is_stale=is_stale(since, rule.golden, now),
        checks=checks[::-1][:_LISTED],
    )
