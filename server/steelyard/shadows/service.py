"""Setting shadows, scoring with them after families have answered, and comparing the two.

A shadow works on stored requests, a second later, in the public's small queue: no caller waits for it,
and requests not scored within a minute are left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard.asking.rows import ask_each
from steelyard.asking.window import RowResult
from steelyard.caller import Caller
from steelyard.decision_log.store import feedback_of_answers
from steelyard.errors import SteelyardError
from steelyard.evaluations.models import EvaluatedModels
from steelyard.families.lineage.references import find_family
from steelyard.families.lineage_store import LineageStore
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.scoring.protocol import ScoredDecision
from steelyard.scoring.shares import Share
from steelyard.serving.decide import Prepared
from steelyard.serving.registry import ModelRegistry
from steelyard.shadows import store as rows
from steelyard.shadows import wire
from steelyard.shadows.comparing import Pair, Top, compare, is_chosen
from steelyard.storage import State
from steelyard.wire.decoding import decoder_of
from steelyard.wire.violations import BODY, refusal

_log = logging.getLogger(__name__)

#: Seconds after its answer in which a request is still scored by the shadow, and that scoring may take.
LATEST_S, DEADLINE_S = 60.0, 10.0
#: Answers that are looked at for a shadow at a time, and scored.
_LOOKED, _AT_ONCE = 2_000, 8
_SHARE = Share("shadow", is_public=True)
#: Answers of a comparison, and how far back it goes unless it is said.
_MOST_COMPARED, _WINDOW_S = 20_000, 30 * 86_400.0

_tops = decoder_of(dict[str, Top])


class Shadows:
    """The shadows of every account's families."""

    def __init__(
        self,
        state: State,
        writes: KeyedWrites,
        registry: ModelRegistry,
        models: EvaluatedModels,
        lineages: LineageStore,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._writes = writes
        self._registry = registry
        self._models = models
        self._lineages = lineages
        self._now = now

    async def put(self, write: Write, family: str, request: wire.SetShadow) -> wire.Shadow:
        """Set the model that scores a share of a family's requests from now on."""
        caller = write.caller
        await self._find_family(caller, family)
        if request.model == family:
            raise refusal(
                (*BODY, "model"), f"is {family} itself; name another model.", "not_allowed"
            )
        model = await self._models.find(caller, request.model)
        hosted = self._registry.find(request.model)
        if (
            hosted is not None
            and hosted.is_connected
            and hosted.price_nano
            and not caller.is_operator
        ):
            # Requests of a shadow are free.
            raise refusal(
                (*BODY, "model"),
                f"is {request.model}, which costs whoever runs the server; ask them to set the shadow.",
                "not_allowed",
            )
        made = wire.Shadow(family=family, model=model.label, share=request.share, since=self._now())

        def set_it(connection: Connection) -> wire.Shadow:
            rows.put_shadow(
                connection,
                caller.account_id,
                family,
                model=made.model,
                model_id=model.id,
                share=made.share,
                since=made.since,
            )
            return made

        return await self._writes.once(write, set_it)

    async def end(self, write: Write, family: str) -> wire.EndedShadow:
        """End a family's shadow; its answers stay."""
        account_id = write.caller.account_id
        await self._find_family(write.caller, family)
        return await self._writes.once(
            write,
            lambda connection: wire.EndedShadow(
                family=family, ended=rows.delete_shadow(connection, account_id, family)
            ),
        )

    async def put_beside(self, caller: Caller, subject: str, model: str, share: float) -> float:
        """Set the model that scores a named decision's requests, and return since when."""
        entry, since = await self._models.find(caller, model), self._now()
        await self._state.write(
            lambda connection: rows.put_shadow(
                connection,
                caller.account_id,
                subject,
                model=model,
                model_id=entry.id,
                share=share,
                since=since,
            )
        )
        return since

    async def end_beside(self, caller: Caller, subject: str) -> None:
        """End the shadow of a named decision; its answers stay."""
        await self._state.write(
            lambda connection: rows.delete_shadow(connection, caller.account_id, subject)
        )

    async def figures(
        self, caller: Caller, subject: str, since: float
    ) -> tuple[int, dict[str, wire.ShadowFigures]]:
        """Return how many answers of a named decision its shadow scored since, and how they compare."""

        def read(connection: Connection) -> tuple[int, dict[str, wire.ShadowFigures]]:
            shadow = rows.find_shadow(connection, caller.account_id, subject)
            pairs = [] if shadow is None else _pairs(connection, shadow, since, self._now())
            return len(pairs), compare(pairs)

        return await self._state.read(read)

    async def report(
        self, caller: Caller, family: str, query: wire.ShadowQuery
    ) -> wire.ShadowReport:
        """Compare a family with its shadow; without one nothing is compared."""
        await self._find_family(caller, family)
        until = self._now() if query.until is None else query.until
        since = until - _WINDOW_S if query.since is None else query.since
        if until <= since:
            raise refusal(
                ("query", "until"), "is not after since; give a later time.", "empty_range"
            )

        def read(connection: Connection) -> wire.ShadowReport:
            shadow = rows.find_shadow(connection, caller.account_id, family)
            pairs = [] if shadow is None else _pairs(connection, shadow, since, until)
            return wire.ShadowReport(
                shadow=None if shadow is None else _to_wire(shadow),
                since=since,
                until=until,
                answers=len(pairs),
                decisions=compare(pairs),
            )

        return await self._state.read(read)

    async def _find_family(self, caller: Caller, family: str) -> None:
        find_family((await self._lineages.read(caller.account_id)).lineage, family)

    def tick(self) -> None:
        """Score recent answers of families with their shadows."""
        for shadow in self._state.read_now(rows.all_shadows):
            since = max(shadow.since, self._now() - LATEST_S)
            untaken = self._state.read_now(
                partial(rows.newest_untaken, shadow=shadow, since=since, limit=_LOOKED)
            )
            chosen = [answer_id for answer_id in untaken if is_chosen(answer_id, shadow.share)][
                :_AT_ONCE
            ]
            if chosen:
                try:
                    self._score(shadow, chosen)
                except SteelyardError as error:
                    _log.warning("The shadow %s did not answer: %s", shadow.model, error.message)

    def _score(self, shadow: Row[Any], chosen: Sequence[str]) -> None:
        taken = self._state.write_now(
            lambda connection: rows.take(connection, shadow, chosen, self._now())
        )
        results: dict[str, bytes] = {}
        with self._models.open(shadow.account_id, shadow.model_id) as model:
            prepared: list[tuple[str, Prepared]] = []
            for decision_id, request in taken:
                with _left_out(shadow):
                    prepared.append((decision_id, model.decide.prepare(request)))

            def take(answer: RowResult[tuple[str, Prepared], list[ScoredDecision]]) -> None:
                decision_id, request = answer.row
                with _left_out(shadow):
                    answered = model.decide.finish(request, answer.result())
                    results[decision_id] = msgspec.json.encode(answered.decisions)

            ask_each(
                prepared,
                lambda row: model.queue.submit(row[1].rendered, DEADLINE_S, _SHARE),
                take,
                _AT_ONCE,
                timeout_s=DEADLINE_S,
            )
        self._state.write_now(lambda connection: rows.put_results(connection, results))


@contextmanager
def _left_out(shadow: Row[Any]) -> Iterator[None]:
    """Log an answer that failed, and go on without it."""
    try:
        yield
    except (SteelyardError, TimeoutError, CancelledError) as error:
        _log.warning("The shadow %s left out an answer: %s", shadow.model, error)


def _pairs(connection: Connection, shadow: Row[Any], since: float, until: float) -> list[Pair]:
    answered = rows.answered_pairs(
        connection, shadow, since=since, until=until, limit=_MOST_COMPARED
    )
    observed: dict[str, dict[str, Any]] = {}
    for start in range(0, len(answered), _LOOKED):
        ids = [row.id for row in answered[start : start + _LOOKED]]
        observed |= feedback_of_answers(connection, ids)
    return [
        Pair(_tops.decode(row.results), _tops.decode(row.shadow_results), observed.get(row.id, {}))
        for row in answered
    ]


def _to_wire(shadow: Row[Any]) -> wire.Shadow:
    return wire.Shadow(
        family=shadow.family, model=shadow.model, share=shadow.share, since=shadow.since
    )
