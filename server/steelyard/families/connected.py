"""Models of heads on a connected base: the base is asked as it is for others, then the heads answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from steelyard.decisions.rendering import RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.batching import ScoreFuture
from steelyard.scoring.protocol import ScoredDecision
from steelyard.scoring.shares import Share
from steelyard.serving.registry import HostedModel, Scores, WatchedQueue

if TYPE_CHECKING:  # libraries of heads are slow to import
    from steelyard.scoring.tuned import DecisionHead, TunedScorer

_NOBODY = Share()


class ConnectedBase:
    """A connected model as the scorer under heads; ``HeadsQueue`` asks it."""

    def __init__(self, hosted: HostedModel) -> None:
        self.name = hosted.name
        self.engine = hosted.engine
        self.sha256 = hosted.sha256

    def score(self, requests: Sequence[RenderedRequest]) -> NoReturn:
        """Refuse: its answers take as long as its server does, so that nothing may wait for them."""
        raise EngineUnavailableError(
            f"{self.name} answers {len(requests)} requests through its own queue alone; report it."
        )

    def close(self) -> None:
        """Do nothing: its connections are the server's."""


class HeadsQueue:
    """Requests to a tuned model, whose connected base is asked only where heads need it; thread-safe."""

    #: One call that takes long holds up no other.
    running_call = None

    def __init__(self, scorer: TunedScorer, base: WatchedQueue) -> None:
        self._scorer = scorer
        self._base = base
        # Heads take milliseconds, which neither the caller's event loop nor the connections wait.
        self._heads = ThreadPoolExecutor(1, thread_name_prefix="steelyard-heads")

    @property
    def n_waiting(self) -> int:
        """Requests that wait for a place at the base."""
        return self._base.n_waiting

    @property
    def max_queue(self) -> int:
        """Requests that may wait."""
        return self._base.max_queue

    @property
    def rest_s(self) -> float:
        """Seconds for which the base's server is left alone."""
        return self._base.rest_s

    def end_rest(self) -> None:
        """Allow the next request to try the base."""
        self._base.end_rest()

    def check_room(self, request: RenderedRequest, share: Share = _NOBODY) -> None:
        """Refuse a request as ``submit`` would now."""
        [chosen] = self._scorer.choose([request])
        request_below = self._scorer.request_below(request, chosen)
        if request_below is not None:
            self._base.check_room(request_below, share)

    def submit(
        self, request: RenderedRequest, deadline_s: float | None = None, share: Share = _NOBODY
    ) -> Scores:
        """Queue a request; the future gives one scored decision per decision."""
        [chosen] = self._scorer.choose([request])
        request_below = self._scorer.request_below(request, chosen)
        answer = ScoreFuture()
        finish = partial(self._finish, request, chosen, answer)
        if request_below is None:
            self._heads.submit(finish, None)
            return answer
        below = self._base.submit(request_below, deadline_s, share)
        answer.add_done_callback(lambda done: below.cancel() if done.cancelled() else None)
        below.add_done_callback(partial(self._pass_on, finish, answer))
        return answer

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002  the rest takes milliseconds
        """Wait for the base's running answers; later answers are refused."""
        self._heads.shutdown()
        return True

    def _pass_on(
        self, finish: Callable[[Scores], None], answer: ScoreFuture, below: Scores
    ) -> None:
        try:
            self._heads.submit(finish, below)
        except RuntimeError:  # closed meanwhile
            with suppress(InvalidStateError):
                answer.set_exception(
                    EngineUnavailableError(
                        "The fine-tuned model was unloaded; try again.", retry_after_s=1.0
                    )
                )

    def _finish(
        self,
        request: RenderedRequest,
        chosen: Sequence[DecisionHead],
        answer: ScoreFuture,
        below: Scores | None,
    ) -> None:
        with suppress(InvalidStateError):  # given up by its caller
            try:
                scored: Sequence[ScoredDecision] = () if below is None else below.result()
                answer.set_result(self._scorer.answer(request, chosen, scored, {}))
            except InvalidStateError:
                raise
            except Exception as error:  # noqa: BLE001  somebody waits for the future
                answer.set_exception(error)
