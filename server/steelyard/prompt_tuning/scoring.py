"""A model's probabilities for rows in several wordings: a context is read once for many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.asking.rows import ask_each
from steelyard.asking.window import RowResult
from steelyard.decisions.kinds import Decision
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, render_decision
from steelyard.prompt_tuning.proof import losses_of
from steelyard.prompt_tuning.reading import AskedRows
from steelyard.prompt_tuning.searching import Scores
from steelyard.prompt_tuning.wording import Wording, reworded
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.registry import HostedModel

#: Wordings that are asked together on one context, and requests that wait at once.
_TOGETHER, _AT_ONCE = 16, 4

#: Place of a context, and the numbers of the wordings that it is asked with.
_Request = tuple[int, list[int]]


class WordingScorer:
    """Asks a model about rows, and calls ``check`` meanwhile; not safe to use from several threads."""

    def __init__(
        self, model: HostedModel, decision: Decision, check: Callable[[], None], account_id: str
    ) -> None:
        self._model, self._decision, self._check = model, decision, check
        self._account_id = account_id

    def on(self, rows: AskedRows) -> RowsScorer:
        """Return a scorer of wordings on these rows."""
        return RowsScorer(self, rows)

    def probabilities(
        self, wordings: Sequence[Wording], contexts: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return probabilities, (n_wordings, n_contexts, n_outcomes); NaN where they are too long to read."""
        decisions = [reworded(self._decision, wording) for wording in wordings]
        rendered = [render_decision(decision) for decision in decisions]
        shape = (len(wordings), len(contexts), len(self._decision.outcomes.names))
        probabilities = np.full(shape, np.nan)

        def take(answer: RowResult[_Request, list[ScoredDecision]]) -> None:
            place, group = answer.row
            for number, score in zip(group, answer.result(), strict=True):
                probabilities[number, place] = self._model.decide.probabilities(
                    self._decision, score
                )

        ask_each(
            (
                (place, group)
                for place, context in enumerate(contexts)
                for group in self._groups(context, rendered)
            ),
            lambda request: self._model.queue.submit(
                RenderedRequest(
                    contexts[request[0]],
                    tuple(rendered[n] for n in request[1]),
                    owner=self._account_id,
                )
            ),
            take,
            _AT_ONCE,
            check=self._check,
        )
        return probabilities

    def _groups(self, context: str, rendered: Sequence[RenderedDecision]) -> list[list[int]]:
        """Return which wordings are asked together, so that the model can read all of a request."""
        decide = self._model.decide
        room = decide.limits.max_input_tokens - decide.count_tokens(context)
        groups: list[list[int]] = []
        left = 0
        for number, tokens in enumerate(map(self._tokens_of, rendered)):
            if tokens > room:
                continue
            if not groups or tokens > left or len(groups[-1]) == _TOGETHER:
                groups.append([])
                left = room
            groups[-1].append(number)
            left -= tokens
        return groups

    def _tokens_of(self, decision: RenderedDecision) -> int:
        # More than it is: words that two outcomes share are counted for each.
        characters = len(decision.question) + sum(map(len, decision.outcomes))
        return characters + 8 * (len(decision.outcomes) + 2)


class RowsScorer:
    """Scores wordings on given rows."""

    def __init__(self, scorer: WordingScorer, rows: AskedRows) -> None:
        self._scorer, self._rows = scorer, rows

    def __call__(self, wordings: Sequence[Wording], places: NDArray[np.int64]) -> list[Scores]:
        """Return losses and probabilities of each wording; an infinite loss where it is too long."""
        rows = self._rows.at(int(place) for place in places)
        probabilities = self._scorer.probabilities(wordings, rows.contexts)
        scores = []
        for wording_probabilities in probabilities:
            losses = np.where(
                np.isnan(wording_probabilities).any(axis=1),
                np.inf,
                losses_of(np.nan_to_num(wording_probabilities), rows.targets),
            )
            scores.append(Scores(losses=losses, probabilities=np.nan_to_num(wording_probabilities)))
        return scores
