"""How long a job waits for a model that fails."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds of failures without an answer after which a job waits no longer.
PATIENCE_S = 30.0


class Patience:
    """Measures for how long a model has failed without an answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether no job waits for the model any more."""
        return self._since is not None and self._clock() - self._since >= PATIENCE_S

    def succeeded(self) -> None:
        """Note an answer."""
        self._since = None

    def failed(self) -> None:
        """Note a failure."""
        if self._since is None:
            self._since = self._clock()
