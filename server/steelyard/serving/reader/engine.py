"""Requests to one reader: a thread of this process that gives way to the shipped model's.

Base answers never wait for it: it has a queue and a thread of its own, which on Linux the system runs
after the others, and no pair is begun while a pass of theirs runs, for a short while at most.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.decisions.rendering import RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.cancellation import only_while
from steelyard.scoring.entailment.folder import bounded, read_folder
from steelyard.scoring.entailment.reader import Reader
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.wire import Post
from steelyard.serving.reader.wordings import Wordings
from steelyard.settings import InvalidSettingError
from steelyard.waiting import PASSES

if TYPE_CHECKING:  # the runtime is slow to import
    from steelyard.scoring.entailment.encoder import Encoder

_log = logging.getLogger(__name__)
#: How much a reader's thread gives way.
_NICENESS = 10


class EntailmentWire:
    """Hands requests to a ``ReaderEngine`` as they are."""

    async def score(self, request: RenderedRequest, post: Post) -> list[ScoredDecision]:
        """Return the score of every decision."""
        scored: list[ScoredDecision] = await post("", request)
        return scored


class ReaderEngine:
    """Where the requests of one reader go: a thread of this process, which loads it when asked."""

    def __init__(
        self, name: str, model: ConnectedModel, folder: Path, wordings: Wordings | None = None
    ) -> None:
        self._name, self._model, self._folder = name, model, folder
        self._wordings = wordings
        self.n_requests = 0
        # One pass at a time: each is short, and the other cores are the shipped model's.
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="steelyard-reader", initializer=_give_way
        )
        # Computed between passes of the shipped model.
        self.reader = Reader(self._load, PASSES.give_way)

    async def post(self, path: str, body: RenderedRequest) -> list[ScoredDecision]:  # noqa: ARG002
        """Return the scores of every decision; a request that is given up ends with its pass."""
        self.n_requests += 1
        given_up = threading.Event()
        loop = asyncio.get_running_loop()
        if self._wordings is not None:
            body = await self._wordings.complete(body)
        try:
            return await loop.run_in_executor(self._thread, self._score, body, given_up)
        finally:
            given_up.set()

    async def warm_up(self) -> None:
        """Load the encoder before a request comes; a failure is logged."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self.reader.load)
        except EngineUnavailableError as error:
            _log.warning("%s", error.message)

    async def close(self) -> None:
        """End the thread once its pass is done."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> Encoder:
        from steelyard.scoring.entailment.encoder import Encoder  # noqa: PLC0415  slow

        model = self._model
        try:
            facts = read_folder(
                self._folder, labels=model.labels, hypothesis_first=model.hypothesis_first
            )
            return Encoder(bounded(facts, model.context_tokens), threads=model.threads or 1)
        except InvalidSettingError as error:
            raise EngineUnavailableError(f"{self._name}: {error}") from error

    def _score(self, request: RenderedRequest, given_up: threading.Event) -> list[ScoredDecision]:
        with only_while(lambda: not given_up.is_set()):
            return self.reader.score([request])[0]


def _give_way() -> None:
    """Lower the priority of this thread below those that the shipped model computes on."""
    if sys.platform == "linux":  # elsewhere it would be the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
