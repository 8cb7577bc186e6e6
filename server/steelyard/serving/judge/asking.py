"""How a judge's next token becomes the probabilities of a decision's outcomes."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from steelyard.decisions.rendering import RenderedDecision
from steelyard.serving.connected.answers import Probabilities, normalized
from steelyard.serving.connected.chat import read_top
from steelyard.serving.judge.prompts import MAX_OPTIONS, Question, rotations, write_question

#: Gives the likeliest next tokens after a question on the context at hand.
NextToken = Callable[[str], Awaitable[Any]]


class Asker:
    """Asks the decisions of one context, one after another."""

    def __init__(self, next_token: NextToken, orders: int | None) -> None:
        self._next_token = next_token
        self._orders = orders

    async def decide(self, decision: RenderedDecision) -> Probabilities:
        """Return the probability of every outcome, in order."""
        n_outcomes = len(decision.outcomes)
        if n_outcomes <= MAX_OPTIONS:
            return await self._average(decision, range(n_outcomes))
        # A tournament: each group by itself, then the groups' winners against each other.
        groups = np.array_split(np.arange(n_outcomes), math.ceil(n_outcomes / MAX_OPTIONS))
        within = [await self._average(decision, group.tolist()) for group in groups]
        winners = [int(group[share.argmax()]) for group, share in zip(groups, within, strict=True)]
        final = await self._average(decision, winners)
        # A winner's share of its group says what the group has beside it.
        weights = [
            share / group.max() * group for share, group in zip(final.tolist(), within, strict=True)
        ]
        return normalized(np.concatenate(weights))

    async def _average(self, decision: RenderedDecision, places: Sequence[int]) -> Probabilities:
        """Return the mean over orders of some outcomes, in their order."""
        shares = dict.fromkeys(places, 0.0)
        orders = rotations(decision.kind, places, self._orders)
        for order in orders:
            answer = await self._ask(write_question(decision, order))
            for place, share in zip(order, answer.tolist(), strict=True):
                shares[place] += share / len(orders)
        return normalized([shares[place] for place in places])

    async def _ask(self, question: Question) -> Probabilities:
        return read_top(question.labels, await self._next_token(question.text))
