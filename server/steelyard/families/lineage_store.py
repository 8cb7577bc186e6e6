"""Lineage in the state: each change is one transaction, with its effects.

Engines and workers are notified after the commit. A process that dies between the two leaves a state
that ``LineageStore.tick`` of any server process brings into effect.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from msgspec import structs
from sqlalchemy import Connection

from steelyard.errors import SteelyardError
from steelyard.evaluations import partitions as evaluation_partitions
from steelyard.evaluations import store as evaluation_rows
from steelyard.families import fine_tune_store as job_rows
from steelyard.families import store as rows
from steelyard.families.charges import Purse
from steelyard.families.last_used import LastUsed
from steelyard.families.lineage import events
from steelyard.families.lineage.clock import next_due, pass_time
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.happenings import happenings
from steelyard.families.lineage.lineage import (
    Conditions,
    Lineage,
    LineageRules,
    answering,
    kept_warm,
)
from steelyard.families.lineage.moving import move_ready, waiting_move
from steelyard.families.lineage.references import record_use
from steelyard.families.store import StoredLineage
from steelyard.families.tuned import TunedModels
from steelyard.ledger.store import available
from steelyard.model_use import ModelUse
from steelyard.outbox.publishing import publish
from steelyard.recent import Recent
from steelyard.storage import State
from steelyard.wire.jobs import UNFINISHED

_log = logging.getLogger(__name__)

#: Makes a change of an account's lineage, or raises why there is none; see ``steelyard.families``.
Command = Callable[[Lineage, Conditions], LineageChange]
#: A part of a transaction: a command, and the API key that pays for its holds.
_Step = tuple[Command, str | None]

#: Accounts whose lineage a process keeps at hand.
_MAX_CACHED = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A command that was written in a transaction, which may not have been committed yet."""

    account_id: str
    stored: StoredLineage
    conditions: Conditions
    effects: tuple[events.Effect, ...]

    @property
    def lineage(self) -> Lineage:
        """The lineage as it is now."""
        return self.stored.lineage


@dataclass(frozen=True, slots=True)
class _Watch:
    """A process's copy of an account's lineage at a revision."""

    revision: int
    due_at: float | None
    is_moving: bool
    answering: frozenset[str]
    warm: frozenset[str]


class LineageStore:
    """Changes and reads the lineage of every account; thread-safe, and beside others on the same state."""

    def __init__(
        self,
        state: State,
        rules: Callable[[], LineageRules],
        *,
        engines: TunedModels | None = None,
        wake: Callable[[], None] = lambda: None,
        uses: Callable[[Connection, str], Iterable[ModelUse]] = lambda *_: (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._rules = rules
        #: The loader of models in this process.
        self.engines = engines
        self._wake = wake
        self._uses_of = uses
        self._now = now
        self._lock = threading.Lock()
        self._cache: Recent[str, StoredLineage] = Recent(_MAX_CACHED)
        self._watching = threading.Lock()
        self._watches: dict[str, _Watch] = {}
        self._asked: set[str] = set()
        self._uses = LastUsed()

    @property
    def rules(self) -> LineageRules:
        """The present rules of every account."""
        return self._rules()

    def apply_now(self, account_id: str, command: Command) -> Lineage:
        """Change an account's lineage, blocking the calling thread."""
        applied = self._state.write_now(
            functools.partial(self.apply_in, account_id=account_id, command=command)
        )
        self.follow(applied)
        return applied.lineage

    def apply_in(
        self,
        connection: Connection,
        account_id: str,
        command: Command,
        *,
        key_id: str | None = None,
    ) -> Applied:
        """Change an account's lineage in a transaction of the caller's.

        Due work is done first, and moves that the command allows are made after it.
        """
        steps = [(pass_time, None), (command, key_id), (move_ready, None)]
        return self._apply(connection, account_id, steps)

    def follow(self, applied: Applied) -> None:
        """Publish a durable change to the engines and the job worker; ``tick`` applies what fails later."""
        self._remember(applied.account_id, applied.stored)
        try:
            self._watch(applied.account_id, applied.stored)
            self._notify_engines(applied.stored, applied.effects)
            if any(isinstance(effect, _FOR_WORKER) for effect in applied.effects):
                self._wake()
        except Exception:  # noqa: BLE001  the change is durable all the same
            _log.exception("A change of %s could not be brought into effect.", applied.account_id)

    def read_now(self, account_id: str) -> StoredLineage:
        """Return an account's lineage, blocking; it is read from the state only when it changed."""
        return self._state.read_now(functools.partial(self._read, account_id=account_id))

    async def read(self, account_id: str) -> StoredLineage:
        """Do as ``read_now`` does, without blocking."""
        return await self._state.read(functools.partial(self._read, account_id=account_id))

    def view(self) -> Conditions:
        """Return the conditions under which lineage is shown: without money, work and queues."""
        engines = self.engines
        return Conditions(
            **vars(self._rules()),
            now=self._now(),
            states={} if engines is None else engines.states(),
            warm_room={} if engines is None else engines.warm_room(),
        )

    def note_use(self, account_id: str, name: str) -> None:
        """Move the idle clock of a family or a number that was called; returns at once.

        At most one write a second for each name; ``tick`` writes the marks since.
        """
        now = self._now()
        if self._uses.note(account_id, name, now):
            self._write_use(account_id, name, now)

    def use_in(self, connection: Connection, account_id: str, name: str) -> Applied:
        """Move the idle clock in a transaction of the caller's; a name that means nothing any more moves none."""
        now = self._now()

        def use(lineage: Lineage, _: Conditions) -> LineageChange:
            with contextlib.suppress(SteelyardError):
                lineage = record_use(lineage, name, now)
            return LineageChange(lineage, ())

        return self._apply(connection, account_id, [(use, None), (pass_time, None)])

    def tick(self) -> None:
        """Do due work on every account, and load models that should be loaded here; blocking.

        To be called about once a second by a process whose engines answer.
        """
        for account_id, name, at in self._uses.due(self._now()):
            self._write_use(account_id, name, at)
        for account_id, revision in self._state.read_now(rows.all_revisions).items():
            try:
                self._look_after(account_id, revision)
            except SteelyardError as error:
                _log.warning("Could not update the lineage of %s: %s", account_id, error.message)
            except Exception:  # noqa: BLE001  the next look may work
                _log.exception("Could not update the lineage of %s.", account_id)

    def _look_after(self, account_id: str, revision: int) -> None:
        watch = self._watches.get(account_id)
        if watch is None or watch.revision != revision:
            stored = self.read_now(account_id)
            self._look_for_change(account_id, stored)
        elif watch.is_moving or (watch.due_at is not None and watch.due_at <= self._now()):
            self._look_for_change(account_id, self.read_now(account_id))
        self._load_missing(account_id)

    def _look_for_change(self, account_id: str, stored: StoredLineage) -> None:
        change = pass_time(stored.lineage, self.view())
        if change.lineage == stored.lineage:
            self._watch(account_id, stored)
            self._notify_engines(stored, change.effects)
        else:
            self.apply_now(account_id, lambda lineage, _: LineageChange(lineage, ()))

    def _load_missing(self, account_id: str) -> None:
        """Load the warm models, and once in this process the answering ones: calls load them otherwise."""
        watch, engines = self._watches.get(account_id), self.engines
        if watch is None or engines is None:
            return
        states = engines.states()
        missing = {
            adapter for adapter in watch.warm if states.get(adapter, "unloaded") == "unloaded"
        }
        new = watch.answering - self._asked
        missing |= {adapter for adapter in new if states.get(adapter, "unloaded") == "unloaded"}
        self._asked |= new
        if missing:
            self._load(self.read_now(account_id), missing)

    def _watch(self, account_id: str, stored: StoredLineage) -> None:
        lineage, conditions = stored.lineage, self.view()
        watch = _Watch(
            revision=stored.revision,
            due_at=next_due(lineage, conditions),
            is_moving=any(
                waiting_move(lineage, family, conditions) for family in lineage.families.values()
            ),
            answering=frozenset(answering(lineage)),
            warm=frozenset(kept_warm(lineage)),
        )
        with self._watching:
            known = self._watches.get(account_id)
            if known is not None and known.revision > watch.revision:
                return
            self._watches[account_id] = watch
            if self.engines is not None and (known is None or known.warm != watch.warm):
                warm = (watched.warm for watched in self._watches.values())
                self.engines.pin(frozenset().union(*warm))

    def _notify_engines(self, stored: StoredLineage, effects: Iterable[events.Effect]) -> None:
        if self.engines is None:
            return
        for effect in effects:
            if isinstance(effect, events.LoadModel):
                self._load(stored, {effect.adapter})
            elif isinstance(effect, events.UnloadModel | events.DropModel):
                self._asked.discard(effect.adapter)
                self.engines.forget(effect.adapter)

    def _load(self, stored: StoredLineage, adapters: Collection[str]) -> None:
        for adapter in sorted(adapters):
            model, sha256 = stored.lineage.models.get(adapter), stored.artifacts.get(adapter)
            if model is not None and sha256 is not None and self.engines is not None:
                self.engines.load(model, sha256)

    def _write_use(self, account_id: str, name: str, at: float) -> None:
        def use(lineage: Lineage, _: Conditions) -> LineageChange:
            return LineageChange(record_use(lineage, name, at), ())

        def work(connection: Connection) -> Applied:
            # The use comes first: it was before the moves that are due now.
            return self._apply(connection, account_id, [(use, None), (pass_time, None)])

        try:
            written = self._state.submit(work)
        except SteelyardError as error:
            _log.warning("A use of a model could not be noted: %s", error.message)
            return
        written.add_done_callback(self._follow_use)

    def _follow_use(self, written: Future[Applied]) -> None:
        error = None if written.cancelled() else written.exception()
        if error is not None:
            # What was called may be gone by now.
            _log.debug("A use of a model was not noted.", exc_info=error)
        elif not written.cancelled():
            self.follow(written.result())

    def _apply(self, connection: Connection, account_id: str, steps: Sequence[_Step]) -> Applied:
        before = self._load_locked(connection, account_id)
        conditions = self._conditions(connection, account_id, before.lineage)
        purse = Purse(connection, account_id, conditions.now)
        lineage, effects = before.lineage, list[events.Effect]()
        for command, key_id in steps:
            change = command(lineage, purse.judge(conditions))
            purse.take(change, key_id)
            lineage = change.lineage
            effects += change.effects
        stored = rows.save_lineage(connection, account_id, before, lineage)
        purse.post()
        for happening in happenings(before.lineage, lineage):
            publish(connection, account_id, happening.event, happening.subject, happening.data)
        for effect in effects:
            if isinstance(effect, events.AddEvent):
                rows.insert_event(connection, effect.job_id, effect.event)
            elif isinstance(effect, events.CancelEvaluation):
                self._cancel_evaluation(connection, effect.evaluation_id, conditions.now)
        return Applied(
            account_id=account_id,
            stored=_with_artifacts(connection, stored),
            conditions=conditions,
            effects=tuple(effects),
        )

    def _conditions(self, connection: Connection, account_id: str, lineage: Lineage) -> Conditions:
        rules = self._rules()
        by_name = {
            name: adapter
            for adapter, model in lineage.models.items()
            for name in (adapter, model.ref)
        }
        return dataclasses.replace(
            self.view(),
            available_nano=(available(connection, account_id) if rules.accounts_enabled else None),
            work=tuple(
                structs.replace(use, adapter=by_name[use.adapter])
                for use in self._uses_of(connection, account_id)
                if use.adapter in by_name
            ),
            queue_room=rules.queue - job_rows.count_queued(connection),
        )

    def _load_locked(self, connection: Connection, account_id: str) -> StoredLineage:
        revision = rows.lock_revision(connection, account_id)
        known = self._cache.find(account_id)
        if known is not None and known.revision == revision:
            return known
        # What is loaded here may have been written in the same transaction: it is not kept.
        return rows.load_lineage(connection, account_id)

    def _read(self, connection: Connection, account_id: str) -> StoredLineage:
        while True:
            revision = rows.revision_of(connection, account_id)
            known = self._cache.find(account_id)
            if known is not None and known.revision == revision:
                return known
            loaded = rows.load_lineage(connection, account_id)
            if rows.revision_of(connection, account_id) == loaded.revision:
                self._remember(account_id, loaded)
                return loaded

    def _remember(self, account_id: str, stored: StoredLineage) -> None:
        with self._lock:
            known = self._cache.find(account_id)
            if known is None or known.revision < stored.revision:
                self._cache.note(account_id, stored)

    def _cancel_evaluation(self, connection: Connection, evaluation_id: str, at: float) -> None:
        row = evaluation_rows.EVALUATIONS.find(connection, evaluation_id)
        if row is None:
            return
        status = evaluation_partitions.status_once_stopped(connection, self._state, row)
        evaluation_rows.EVALUATIONS.move(
            connection, evaluation_id, status, at=at, only_if=UNFINISHED
        )


_FOR_WORKER = (events.QueueJob, events.CancelFineTune, events.CancelEvaluation)


def _with_artifacts(connection: Connection, stored: StoredLineage) -> StoredLineage:
    """Return lineage with the artifacts of models that joined in this transaction."""
    missing = stored.lineage.models.keys() - stored.artifacts.keys()
    sha256_by_adapter = {
        adapter: rows.artifact_of(connection, stored.lineage.models[adapter].job_id)
        for adapter in missing
    }
    known = {adapter: sha256 for adapter, sha256 in sha256_by_adapter.items() if sha256 is not None}
    if not known:
        return stored
    return dataclasses.replace(stored, artifacts={**stored.artifacts, **known})
