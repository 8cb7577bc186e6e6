"""Decisions on their way along a route: where the first model is unsure, the next is asked."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

import numpy as np

from steelyard.decisions.policy import choose_action
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.decisions.wire import ABSTAIN
from steelyard.errors import DeadlineExceededError, EngineUnavailableError
from steelyard.scoring.batching import ScoreFuture
from steelyard.scoring.protocol import RouteStepScore, ScoredDecision
from steelyard.scoring.shares import Share
from steelyard.serving.registry import HostedModel, Scores

_NOBODY = Share()
#: No probability counts as less when two models' are multiplied.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class HostedStep:
    """A model of a route, and the top probability below which the next one decides."""

    model: HostedModel
    threshold: float
    #: Instead of it for decisions of a kind.
    by_kind: Mapping[str, float] = field(default_factory=dict)
    #: Highest probability that the context does not say with which its answer stands.
    max_unstated: float = 1.0
    #: Weight of the log-probabilities of the model before, which are added to this one's.
    carries: float = 0.0


class RouteQueue:
    """Requests to a route: each waits in the queue of the model that is asked now; thread-safe."""

    #: What hangs is an engine of one of its models.
    running_call = None

    def __init__(self, steps: tuple[HostedStep, ...]) -> None:
        self._steps = steps
        # Half: requests that the first model has answered need places at the next, beside others.
        self.max_queue = max(1, min(step.model.queue.max_queue for step in steps) // 2)
        self._lock = threading.Lock()
        self._n_waiting = 0

    @property
    def n_waiting(self) -> int:
        """Requests that are under way."""
        return self._n_waiting

    @property
    def rest_s(self) -> float:
        """Seconds for which a server of its models is left alone, the longest."""
        return max(step.model.queue.rest_s for step in self._steps)

    def end_rest(self) -> None:
        """Allow the next request to try every model."""
        for step in self._steps:
            step.model.queue.end_rest()

    def check_room(self, request: RenderedRequest, share: Share = _NOBODY) -> None:
        """Refuse a request as ``submit`` would now."""
        self._steps[0].model.require_room(request, share)

    def submit(
        self, request: RenderedRequest, deadline_s: float | None = None, share: Share = _NOBODY
    ) -> ScoreFuture:
        """Queue a request; the future gives one scored decision per decision."""
        walk = _Walk(self._steps, request, deadline_s, share)
        walk.ask(0, list(range(len(request.decisions))))
        with self._lock:
            self._n_waiting += 1
        walk.future.add_done_callback(self._end)
        return walk.future

    def _end(self, _: Scores) -> None:
        with self._lock:
            self._n_waiting -= 1


class _Walk:
    """One request along a route. Its calls follow one another, whichever threads they come on."""

    def __init__(
        self,
        steps: tuple[HostedStep, ...],
        request: RenderedRequest,
        deadline_s: float | None,
        share: Share,
    ) -> None:
        # It began when its first model did, between waits in several queues: no time is its own.
        self.future = ScoreFuture()
        self._steps = steps
        self._request = request
        self._ends_at = None if deadline_s is None else monotonic() + deadline_s
        self._share = share
        self._scored: dict[int, ScoredDecision] = {}
        self._probabilities: dict[int, list[float]] = {}

    def ask(self, place: int, decisions: list[int]) -> None:
        """Ask a model some of the request's decisions."""
        left_s = None if self._ends_at is None else self._ends_at - monotonic()
        if left_s is not None and left_s <= 0:
            raise DeadlineExceededError("The request waited past its deadline; send it again.")
        part = dataclasses.replace(
            self._request, decisions=tuple(self._request.decisions[n] for n in decisions)
        )
        model = self._steps[place].model
        model.require_room(part, self._share)
        scores = model.queue.submit(part, left_s, self._share)
        self.future.add_done_callback(partial(_give_up, scores))
        scores.add_done_callback(partial(self._answered, place, decisions))

    def _answered(self, place: int, decisions: list[int], scores: Scores) -> None:
        """Ask the next model about unsure decisions, or resolve the future; never raise."""
        try:
            unsure = self._take(place, decisions, scores.result())
            if unsure:
                self.ask(place + 1, unsure)
                return
        except CancelledError:
            name = self._steps[place].model.name
            error = EngineUnavailableError(f"{name} gave the request up; send it again.")
            with suppress(InvalidStateError):
                self.future.set_exception(error)
        except Exception as error:  # noqa: BLE001  somebody waits for the future
            with suppress(InvalidStateError):
                self.future.set_exception(error)
        else:
            with suppress(InvalidStateError):  # given up by its caller
                self.future.set_result([self._scored[n] for n in range(len(self._scored))])

    def _take(self, place: int, decisions: list[int], scored: list[ScoredDecision]) -> list[int]:
        """Store a model's answers; return the decisions that go on."""
        step = self._steps[place]
        unsure = []
        for n, score in zip(decisions, scored, strict=True):
            decision = self._request.decisions[n]
            probabilities = step.model.decide.calibrated(
                decision.kind, len(decision.outcomes), score
            )
            weighed = score
            if step.carries:
                probabilities = carry(
                    self._probabilities[n], probabilities, step.carries, score.unstated or 0.0
                )
                logits = np.log(np.maximum(probabilities, _LEAST)).astype(np.float32)
                weighed = dataclasses.replace(score, logits=logits, is_calibrated=True)
            self._probabilities[n] = probabilities
            p_top = max(probabilities)
            before = self._scored[n].route if place else ()
            n_written = 0 if score.thought is None else score.thought.n_tokens
            entry = RouteStepScore(step.model.name, p_top, n_written)
            self._scored[n] = dataclasses.replace(weighed, route=(*before, entry))
            if self._request.n_steps:
                goes_on = place + 1 < self._request.n_steps[n]
            else:
                goes_on = place < len(self._steps) - 1 and (
                    p_top < step.by_kind.get(decision.kind, step.threshold)
                    or (score.unstated or 0.0) > step.max_unstated
                    or _abstains(decision, probabilities, score.unstated)
                )
            if goes_on:
                unsure.append(n)
        return unsure


def carry(
    before: Sequence[float], now: Sequence[float], weight: float, unstated: float = 0.0
) -> list[float]:
    """Return the product of two models' probabilities, the first to the power of a weight, as shares.

    The second counts by as much as its text says of the question.

    >>> [round(share, 3) for share in carry([0.8, 0.2], [0.5, 0.5], 1.0)]
    [0.8, 0.2]
    >>> [round(share, 3) for share in carry([0.8, 0.2], [0.1, 0.9], 1.0, unstated=1.0)]
    [0.8, 0.2]
    """
    logs = weight * np.log(np.maximum(before, _LEAST)) + (1 - unstated) * np.log(
        np.maximum(now, _LEAST)
    )
    shares: list[float] = np.exp(logs - np.logaddexp.reduce(logs)).tolist()
    return shares


def _abstains(
    decision: RenderedDecision, probabilities: list[float], unstated: float | None
) -> bool:
    """Whether the policy of a decision is not content with an answer: unsure, or too dear."""
    if decision.policy is None:
        return False
    chosen = choose_action(decision.policy, decision.outcomes, probabilities, unstated)
    return chosen.action == ABSTAIN


def _give_up(scores: Scores, future: Scores) -> None:
    if future.cancelled():
        scores.cancel()
