"""Read answers stored since the last look, and raise and clear alarms.

A look reads a bounded batch, counts it in memory, and writes in one transaction the sums of the models,
the position in the log, the alarms, their events and their letters. That transaction is refused where
another process looked meanwhile: nothing is counted twice, whenever a process is killed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection, Row

from steelyard.alarms import store as rows
from steelyard.alarms.budget import WATCHES
from steelyard.alarms.contexts import gather_distances, text_of
from steelyard.alarms.distances import MIN_REFERENCE, Distances
from steelyard.alarms.raising import clear, raise_alarm
from steelyard.alarms.readings import read_results
from steelyard.alarms.references import read_context
from steelyard.alarms.telling import evidence_of, message_of
from steelyard.alarms.watched import (
    CONTEXT_EVERY,
    DEFAULT_RULE,
    LEARNED,
    Happening,
    Key,
    Sample,
    Watched,
    adopt,
    adopt_operations,
    count_answer,
    count_contexts,
    count_failed,
    count_feedback,
    is_to_grow,
    rule_at,
)
from steelyard.alarms.wire import AlarmReference, AlarmRule
from steelyard.errors import SteelyardError
from steelyard.ids import new_id
from steelyard.storage import State
from steelyard.wire.decoding import decoder_of

_log = logging.getLogger(__name__)

#: Seconds between two looks.
LOOK_S = 10.0
#: Seconds that an answer, or an operation, has to be committed before it is looked at.
LAG_S, OPERATION_LAG_S = 5.0, 120.0
#: Answers or feedback of one look, and looks of one turn.
MOST, _LOOKS = 1_000, 10
#: Where the first look begins.
_FIRST_S = 7 * 86_400.0
#: Seconds after which it is written how far was looked for failures, though there was none.
_MOVE_S = 3600.0
#: Seconds after which operations are held against newer days, and how many days that are.
_REFRESH_S, _DAYS_S = 86_400.0, 7 * 86_400.0
#: Models and numbers of an account that are watched.
MOST_WATCHED = 200

_encode = msgspec.json.Encoder().encode
_decode = decoder_of(Watched).decode
_decode_rule = decoder_of(AlarmRule).decode


class _References(Protocol):
    def of_evaluation(
        self, key: Key, evaluation_id: str | None
    ) -> tuple[Sample, AlarmReference] | None: ...

    def of_window(
        self, key: Key, since: float, until: float, *, limit: int = ...
    ) -> tuple[Sample, AlarmReference]: ...

    def texts_of(self, key: Key, of: AlarmReference) -> list[str]: ...


class Watcher:
    """Looks at the stored decisions of every account; without ``distances`` no distance is watched."""

    def __init__(
        self,
        state: State,
        references: _References,
        *,
        has_accounts: bool,
        distances: Distances | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._references = references
        self._has_accounts = has_accounts
        self._distances = distances
        self._now = now
        #: How many alarms of every account were in each state at the last look.
        self.counts: Mapping[str, int] = {}

    def tick(self) -> None:
        """Look at everything that is new, so many batches at a time."""
        if self._distances is not None:
            self._distances.tick()
        for look in (self.look_at_answers, self.look_at_feedback):
            for _ in range(_LOOKS):
                if look() < MOST:
                    break
        self.look_at_failures()
        self.counts = self._state.read_now(rows.count_by_state)

    def stop(self) -> None:
        """Embed nothing any more: a tick under way ends soon."""
        if self._distances is not None:
            self._distances.stop()

    def sweep(self) -> None:
        """Remove expired rows."""
        now = self._now()

        def work(connection: Connection) -> None:
            for alarm in rows.sweep(connection, now):
                clear(connection, alarm, "superseded", now)

        self._state.write_now(work)

    def look_at_answers(self) -> int:
        """Count the next stored answers; return how many there were."""
        now = self._now()

        def read(connection: Connection) -> tuple[Row[Any], Sequence[Row[Any]]]:
            look = rows.find_look(connection, "decisions")
            at = now - _FIRST_S if look.at < 0 else look.at
            after = (at, look.last_id)
            return look, rows.next_answers(connection, after, now - LAG_S, MOST)

        look, answers = self._state.read_now(read)
        if not answers:
            return 0
        on = self._open(_key_of(row) for row in answers)
        sampled: dict[Key, list[str]] = {}
        for row in answers:
            key, results = _key_of(row), read_results(row.results)
            watched = on.get(key, row.created_at)
            if watched is None:
                continue
            rule = on.rule(key)
            on.happened += count_answer(key, watched, rule, row.created_at, results, row.total_ms)
            if watched.answers == LEARNED or is_to_grow(watched, rule):
                self._learn(key, watched, rule, row.created_at)
            elif watched.refreshed_at and row.created_at - watched.refreshed_at >= _REFRESH_S:
                self._refresh(key, watched, rule, row.created_at)
            if watched.contexts is not None and watched.answers % CONTEXT_EVERY == 0:
                sampled.setdefault(key, []).append(row.id)
        ids = [id_ for part in sampled.values() for id_ in part]
        requests = self._state.read_now(lambda connection: rows.requests_of(connection, ids))
        for n_after, (key, part) in zip(
            reversed(range(len(sampled))), sampled.items(), strict=True
        ):
            texts = [
                text_of(read_context(requests[id_]).context) for id_ in part if id_ in requests
            ]
            watched = on.watched_models[key]
            self._measure(key, watched, texts, answers[-1].created_at, n_after)
            on.happened += count_contexts(key, watched, on.rule(key), answers[-1].created_at, texts)
        last = answers[-1]
        self._write(on, lambda c: rows.move_look(c, look, last.created_at, last.id))
        return len(answers)

    def look_at_feedback(self) -> int:
        """Count the next feedback; return how much there was."""
        until = self._now() - LAG_S

        def read(connection: Connection) -> tuple[Row[Any], Sequence[Row[Any]]]:
            look = rows.find_look(connection, "feedback")
            return look, rows.next_feedback(connection, look.at, until, MOST)

        look, feedback_rows = self._state.read_now(read)
        if not feedback_rows:
            return 0
        on = self._open(_key_of(row) for row in feedback_rows)
        for row in feedback_rows:
            key = _key_of(row)
            watched, result = on.watched_models.get(key), read_results(row.results).get(row.name)
            if watched is None or result is None:
                continue
            outcome = msgspec.json.decode(row.outcome)
            rule = on.rule(key)
            on.happened += count_feedback(
                key, watched, rule, row.recorded_at, row.name, result, outcome
            )

        def move(connection: Connection) -> bool:
            if not rows.move_look(connection, look, feedback_rows[-1].recorded_at, new_id("look")):
                return False
            rows.note_feedback(connection, feedback_rows)
            return True

        self._write(on, move)
        return len(feedback_rows)

    def look_at_failures(self) -> None:
        """Count the decisions that failed since the last look."""
        until = self._now() - OPERATION_LAG_S
        look = self._state.read_now(lambda connection: rows.find_look(connection, "operations"))
        since = look.at if look.at >= 0 else until

        def read(connection: Connection) -> list[tuple[Key, int]]:
            failures = []
            for account_id, model, n in rows.failed_operations(connection, since, until):
                version = rows.newest_version(connection, account_id, model)
                if version is not None:
                    failures.append(((account_id, model, version), n))
            return failures

        failed = self._state.read_now(read)
        if not failed and until - look.at < _MOVE_S:
            return
        on = self._open(key for key, _ in failed)
        for key, n in failed:
            watched = on.watched_models.get(key)
            if watched is not None:
                on.happened += count_failed(key, watched, on.rule(key), until, n)
        self._write(on, lambda connection: rows.move_look(connection, look, until))

    def _open(self, keys: Iterable[Key]) -> _Opened:
        distinct_keys = set(keys)

        def read(connection: Connection) -> _Opened:
            accounts = {key[0] for key in distinct_keys}
            rules = {
                (row.account_id, row.model): _decode_rule(row.body)
                for row in rows.all_rules(connection, accounts)
            }
            bodies = rows.find_watches(connection, distinct_keys) if distinct_keys else {}
            counts = {
                account: len(rows.watches_of_account(connection, account, MOST_WATCHED))
                for account in accounts
            }
            watched_models = {key: _decode(body) for key, body in bodies.items()}
            return _Opened(watched_models, rules, counts, self._begin)

        return self._state.read_now(read)

    def _begin(self, key: Key, rule: AlarmRule, at: float) -> Watched:
        """Return a model that is watched from now on, with its reference where there is one yet."""
        watched = Watched(rule_at=rule_at(rule), begun_at=at)
        chosen = rule.reference
        sampled = None
        if chosen is None or chosen.evaluation_id is not None:
            evaluation_id = None if chosen is None else chosen.evaluation_id
            sampled = self._references.of_evaluation(key, evaluation_id)
        elif chosen.since is not None and chosen.until is not None:
            sampled = self._references.of_window(key, chosen.since, chosen.until)
        if sampled is not None:
            adopt(watched, sampled[0], rule, sampled[1])
            if not watched.streams:
                watched.reference = None
        return watched

    def _measure(
        self, key: Key, watched: Watched, texts: Sequence[str], at: float, n_waiting: int
    ) -> None:
        """Measure how far contexts are from the reference's, whose vectors are made first."""
        distances, contexts, of = self._distances, watched.contexts, watched.reference
        if distances is None or contexts is None or of is None:
            return
        try:
            bank = contexts.bank
            if bank is None or bank.scorer != distances.scorer:
                bank = distances.bank_of((key, of), lambda: self._texts_of(key, watched, of))
                contexts.bank = bank or contexts.bank
            else:
                gather_distances(bank, at, distances.measure(bank, texts, n_waiting))
        except SteelyardError as error:
            _log.warning("Contexts of %s are not embedded: %s", key[2] or key[1], error.message)
        except Exception:  # noqa: BLE001  everything else is watched all the same
            _log.exception("Contexts of %s could not be embedded.", key[2] or key[1])

    def _texts_of(self, key: Key, watched: Watched, of: AlarmReference) -> list[str]:
        texts = self._references.texts_of(key, of)
        if len(texts) < MIN_REFERENCE and watched.learned is not None:
            return self._references.texts_of(key, watched.learned)
        return texts

    def _learn(self, key: Key, watched: Watched, rule: AlarmRule, at: float) -> None:
        """Make a reference of the first answers where a model has no other."""
        if watched.answers != LEARNED:
            watched.reference, watched.contexts, watched.streams = None, None, {}
        sample, of = self._references.of_window(
            key, watched.begun_at, at + 1e-6, limit=watched.answers
        )
        watched.feedback_since = self._now()
        adopt(watched, sample, rule, of)
        adopt_operations(watched, sample, rule, of)
        watched.refreshed_at = at

    def _refresh(self, key: Key, watched: Watched, rule: AlarmRule, at: float) -> None:
        """Hold operations against the last days, unless an alarm about them is raised."""
        watched.refreshed_at = at
        streams = [watched.streams.get(name) for name in ("operations", "errors")]
        if any(stream is not None and stream.raised for stream in streams):
            return
        sample, of = self._references.of_window(key, at - _DAYS_S, at)
        if len(sample.operations) >= LEARNED:
            if not any(stream.source == "feedback" for stream in watched.streams.values()):
                watched.feedback_since = self._now()
            adopt(watched, sample, rule, of)
            adopt_operations(watched, sample, rule, of)

    def _write(self, on: _Opened, move: Callable[[Connection], bool]) -> None:
        now = self._now()

        def work(connection: Connection) -> None:
            if not move(connection):
                return  # another process looked at the same
            before = {
                key[:2]: rows.newest_version(connection, *key[:2]) for key in on.watched_models
            }
            for key, watched in on.watched_models.items():
                body, at = _encode(watched), watched.answered_at
                rows.put_watch(connection, key, body, counted=watched.answers, at=at)
            for (account_id, model), version in before.items():
                newest = rows.newest_version(connection, account_id, model)
                for alarm in rows.active_alarms(connection, account_id, model):
                    if alarm.watch not in WATCHES:
                        continue
                    if (account_id, model, alarm.version) in on.begun:
                        clear(connection, alarm, "rules_changed", now)
                    elif newest not in {version, alarm.version}:
                        clear(connection, alarm, "superseded", now)
            for happening in on.happened:
                self._apply(connection, happening, now)

        self._state.write_now(work)

    def _apply(self, connection: Connection, happening: Happening, now: float) -> None:
        account_id, model, version = happening.key
        of = {"version": version, "decision": happening.decision, "watch": happening.watch}
        if not happening.move.is_raised:
            for alarm in rows.active_alarms(connection, account_id, model, **of):
                clear(connection, alarm, "recovered", now)
            return
        raise_alarm(
            connection,
            {"account_id": account_id, "model": model, **of},
            evidence_of(happening),
            message_of(happening),
            now,
            has_accounts=self._has_accounts,
        )


class _Opened:
    """The watched models of a look, with their rules; those of no rule or too many are none."""

    def __init__(
        self,
        watched_models: dict[Key, Watched],
        rules: Mapping[tuple[str, str], AlarmRule],
        counts: dict[str, int],
        begin: Callable[[Key, AlarmRule, float], Watched],
    ) -> None:
        self._rules = rules
        self._counts = counts
        self._begin = begin
        self._stored = set(watched_models)
        self.watched_models = {
            key: watched
            for key, watched in watched_models.items()
            if self.rule(key).enabled and watched.rule_at == rule_at(self.rule(key))
        }
        self.begun: set[Key] = set()
        self.happened: list[Happening] = []

    def rule(self, key: Key) -> AlarmRule:
        """Return the rule that holds for a model."""
        account_id, model, _ = key
        own = self._rules.get((account_id, model))
        return own or self._rules.get((account_id, "")) or DEFAULT_RULE

    def get(self, key: Key, at: float) -> Watched | None:
        """Return a model's state, a new one when its rule changed; ``None`` when its rule is off."""
        watched = self.watched_models.get(key)
        if watched is not None:
            return watched
        rule = self.rule(key)
        if not rule.enabled:
            return None
        if key not in self._stored:
            if self._counts.get(key[0], 0) >= MOST_WATCHED:
                return None
            self._counts[key[0]] = self._counts.get(key[0], 0) + 1
            self._stored.add(key)
        self.watched_models[key] = self._begin(key, rule, at)
        self.begun.add(key)
        return self.watched_models[key]


def _key_of(row: Row[Any]) -> Key:
    return row.account_id, row.model, row.version or ""
