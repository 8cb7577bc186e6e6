"""The wire ``hub``: an exported model of the Hugging Face hub, run in this process beside the others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.temperature import softmax
from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.cancellation import only_while
from steelyard.serving.connected.answers import Probabilities, normalized, unusable
from steelyard.serving.connected.wire import Post

if TYPE_CHECKING:  # the engine is slow to import
    from steelyard.scoring.exported import ExportedModel


class HubWire:
    """Hands requests to a ``HubEngine`` as they are."""

    async def score(self, request: RenderedRequest, post: Post) -> list[Probabilities]:
        """Return the probabilities of every decision, in outcome order."""
        scores: list[NDArray[np.float64]] = await post("", request)
        if not all(np.isfinite(row).all() for row in scores):
            raise unusable("a score is not a number")
        return [normalized(softmax(row)) for row in scores]


class HubEngine:
    """Where the requests of one exported model go: a thread of this process, which loads it when asked."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        self._folder = folder
        self.n_requests = 0
        # One pass at a time: it takes every core.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="steelyard-hub")
        self._model: ExportedModel | None = None

    async def post(self, path: str, body: RenderedRequest) -> list[NDArray[np.float64]]:  # noqa: ARG002
        """Return the logits of every decision; a request that is given up ends with its batch."""
        self.n_requests += 1
        given_up = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._score, body, given_up)
        finally:
            given_up.set()

    async def close(self) -> None:
        """End the thread once its batch is done."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _score(
        self, request: RenderedRequest, given_up: threading.Event
    ) -> list[NDArray[np.float64]]:
        from steelyard.scoring.exported import ExportedModel  # noqa: PLC0415  slow to import

        with only_while(lambda: not given_up.is_set()):
            self._model = self._model or ExportedModel(self._name, self._folder)
            return self._model.score(request)
