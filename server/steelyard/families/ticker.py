"""The thread that lets time pass for lineage: hours end, idle switches go off, moves happen."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from steelyard.errors import SteelyardError

_log = logging.getLogger(__name__)

INTERVAL_S = 1.0


class LineageTicker:
    """Ticks at the start and every second after, on a thread of its own."""

    def __init__(self, tick: Callable[[], None], *, interval_s: float = INTERVAL_S) -> None:
        self._tick = tick
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steelyard-lineage", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, once the tick under way is done."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._tick()
            except SteelyardError as error:
                _log.warning("Could not update the lineage of models: %s", error.message)
            except Exception:  # noqa: BLE001  the next tick may work
                _log.exception("Could not update the lineage of models.")
            self._stopping.wait(self._interval_s)
