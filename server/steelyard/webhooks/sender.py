"""Sends due deliveries, on a thread of its own; several processes may do so on one state."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row

from steelyard.errors import SteelyardError
from steelyard.storage import State
from steelyard.webhooks import store as rows
from steelyard.webhooks.signing import headers

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)

#: Deliveries that a process sends at a time, and how many of them to endpoints that fail.
PLACES, FAILING_PLACES = 32, 16
#: Seconds between two looks; what ends here makes one at once.
LOOK_S = 1.0
#: Seconds that ``close`` waits for what is being sent; it is sent again by the next process.
_CLOSE_S = 2.0


class WebhookSender:
    """Delivers the events of every account, from its start to ``close``."""

    def __init__(
        self,
        state: State,
        *,
        allowed: Collection[str],
        look_s: float = LOOK_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._allowed = allowed
        self._look_s = look_s
        self._now = now
        self._client: httpx.AsyncClient | None = None
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._n_failing = 0
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="steelyard-webhooks", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look for due deliveries now."""
        with suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(self._changed.set)

    def close(self) -> None:
        """Stop; a running delivery has a moment, and is left to the next process after it."""
        self._stopping = True
        self.wake()
        self._thread.join(2 * _CLOSE_S)

    def _main(self) -> None:
        # Names that do not resolve must not hold up others, so each place has a thread for its name.
        names = ThreadPoolExecutor(PLACES, thread_name_prefix="steelyard-webhook-names")
        self._loop.set_default_executor(names)
        try:
            self._loop.run_until_complete(self._keep())
        finally:
            names.shutdown(wait=False, cancel_futures=True)
            self._loop.close()

    async def _keep(self) -> None:
        while not self._stopping:
            self._changed.clear()
            try:
                await self._look()
            except SteelyardError as error:
                _log.warning("Could not look at the webhooks: %s", error.message)
            except Exception:  # noqa: BLE001  the next look may work
                _log.exception("Could not look at the webhooks.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._look_s)
        if self._sending:
            await asyncio.wait(self._sending.values(), timeout=_CLOSE_S)
        for task in self._sending.values():
            task.cancel()
        if self._client is not None:
            await self._client.aclose()

    async def _look(self) -> None:
        places = PLACES - len(self._sending)
        sending, now = frozenset(self._sending), self._now()
        if places == 0 or not await self._state.read(
            lambda connection: rows.has_due(connection, now, sending)
        ):
            return

        def claim(connection: Connection) -> Sequence[Row[Any]]:
            return rows.claim(
                connection,
                self._state,
                now=now,
                sending=sending,
                places=places,
                failing_places=FAILING_PLACES - self._n_failing,
            )

        for row in await self._state.write(claim):
            self._n_failing += row.failing_since is not None
            self._sending[row.id] = asyncio.create_task(self._deliver(row))

    async def _deliver(self, row: Row[Any]) -> None:
        try:
            outcome = await self._send(row)
            await self._state.write(
                lambda connection: rows.record(
                    connection,
                    row,
                    outcome,
                    at=self._now(),
                    chance=random.random(),  # noqa: S311  it spreads tries, and hides nothing
                )
            )
        except SteelyardError as error:
            _log.warning("What became of delivery %s was not noted: %s", row.id, error.message)
        except Exception:  # noqa: BLE001  it is sent again
            _log.exception("Delivery %s failed.", row.id)
        finally:
            self._n_failing -= row.failing_since is not None
            del self._sending[row.id]
            self._changed.set()

    async def _send(self, row: Row[Any]) -> rows.TryOutcome:
        from steelyard.webhooks import sending  # noqa: PLC0415  loads httpx once there is something

        if self._client is None:
            self._client = sending.open_client(PLACES)
        now = self._now()
        signing = [row.secret]
        if row.old_secret is not None and row.old_until > now:
            signing.append(row.old_secret)
        signed = headers(signing, row.event_id, int(now), row.body)
        return await sending.send(self._client, row.url, row.body, signed, self._allowed)
