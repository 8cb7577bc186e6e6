"""Requests to one reader: a thread of this process that gives way to the shipped model's.

Base answers never wait for it: it has a queue and a thread of its own, which on Linux the system runs
after the others, and no pair is begun while a pass of theirs runs, for a short while at most.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.decisions.statements import read_decision
from steelyard.errors import EngineUnavailableError
from steelyard.recent import Recent
from steelyard.scoring.cancellation import only_while
from steelyard.scoring.entailment.folder import bounded, read_folder
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.wire import Post
from steelyard.serving.reader.hypotheses import hypotheses_of
from steelyard.serving.reader.wordings import Wordings
from steelyard.settings import InvalidSettingError
from steelyard.waiting import PASSES

if TYPE_CHECKING:  # the runtime is slow to import
    from steelyard.scoring.entailment.encoder import Encoder, Logits

_log = logging.getLogger(__name__)
#: Pairs whose logits are cached, each for its account, and how much a reader's thread gives way.
_CACHED_PAIRS, _NICENESS = 16_384, 10


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
        #: Passes that were computed and not found in the cache.
        self.n_passes = 0
        # One pass at a time: each is short, and the other cores are the shipped model's.
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="steelyard-reader", initializer=_give_way
        )
        self._encoder: Encoder | None = None
        self._cached: Recent[bytes, Logits] = Recent(_CACHED_PAIRS)

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
            await asyncio.get_running_loop().run_in_executor(self._thread, self._load)
        except EngineUnavailableError as error:
            _log.warning("%s", error.message)

    async def close(self) -> None:
        """End the thread once its pass is done."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> Encoder:
        if self._encoder is None:
            from steelyard.scoring.entailment.encoder import Encoder  # noqa: PLC0415  slow

            model = self._model
            try:
                facts = read_folder(
                    self._folder, labels=model.labels, hypothesis_first=model.hypothesis_first
                )
                facts = bounded(facts, model.context_tokens)
                self._encoder = Encoder(facts, threads=model.threads or 1)
            except InvalidSettingError as error:
                raise EngineUnavailableError(f"{self._name}: {error}") from error
        return self._encoder

    def _score(self, request: RenderedRequest, given_up: threading.Event) -> list[ScoredDecision]:
        with only_while(lambda: not given_up.is_set()):
            encoder = self._load()
            return [self._decide(encoder, request, decision) for decision in request.decisions]

    def _decide(
        self, encoder: Encoder, request: RenderedRequest, decision: RenderedDecision
    ) -> ScoredDecision:
        from steelyard.scoring.entailment.evidence import (  # noqa: PLC0415
            weigh_outcome,
            weigh_yes_no,
        )

        facts, manifest = encoder.facts, encoder.facts.manifest
        temperature = manifest.temperatures.get(decision.kind, manifest.temperature)
        hypotheses = tuple(
            map(encoder.fitting, hypotheses_of(decision, questions=manifest.questions))
        )
        parts = encoder.windows(request.context, hypotheses)
        rows = [
            [self._logits(encoder, request.owner, part, hypothesis) for part in parts]
            for hypothesis in hypotheses
        ]
        unstated = None
        if decision.kind == "binary":
            answer = weigh_yes_no(facts, rows[0], rows[1] if len(rows) > 1 else None, temperature)
            logits, unstated = np.array([answer.evidence, 0.0]), answer.unstated
        else:
            logits = np.array([weigh_outcome(facts, row, temperature) for row in rows])
        return ScoredDecision(
            logits - np.logaddexp.reduce(logits),
            np.zeros((len(logits), 0), dtype=np.float32),
            unstated=unstated,
            reading=read_decision(decision),
            doubt=_read_in_parts(len(parts), facts.max_tokens),
        )

    def _logits(self, encoder: Encoder, owner: str, part: str, hypothesis: str) -> Logits:
        """Return the logits of a pair; an account's own are cached for it alone."""
        if not owner:
            return self._pass(encoder, part, hypothesis)
        key = hashlib.sha256("\0".join((owner, hypothesis, part)).encode()).digest()
        logits = self._cached.find(key)
        if logits is None:
            logits = self._pass(encoder, part, hypothesis)
            self._cached.note(key, logits)
        return logits

    def _pass(self, encoder: Encoder, part: str, hypothesis: str) -> Logits:
        """Return the logits of a pair, computed between passes of the shipped model."""
        PASSES.give_way()
        self.n_passes += 1
        return encoder.logits(part, hypothesis)


def _read_in_parts(n_parts: int, max_tokens: int) -> str:
    if n_parts == 1:
        return ""
    return (
        f"The context is longer than the {max_tokens} tokens that the model reads at once. It was read in "
        f"{n_parts} parts, and the strongest evidence on each side counted."
    )


def _give_way() -> None:
    """Lower the priority of this thread below those that the shipped model computes on."""
    if sys.platform == "linux":  # elsewhere it would be the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
