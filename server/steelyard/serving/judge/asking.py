"""How a judge's next tokens become evidence on a decision's outcomes."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from steelyard.decisions.rendering import RenderedDecision
from steelyard.serving.connected.chat import LabelShares, read_top
from steelyard.serving.judge.evidence import Evidence
from steelyard.serving.judge.prompts import MAX_OPTIONS, opposed, rotations, write_question

#: Gives the likeliest next tokens after a question on the context at hand.
NextToken = Callable[[str], Awaitable[Any]]


class Asker:
    """Asks decisions about one context, one after another."""

    def __init__(self, next_token: NextToken, orders: int | None) -> None:
        self._next_token = next_token
        self._orders = orders

    async def ask(self, decision: RenderedDecision) -> Evidence:
        """Return the evidence on a decision, and on its opposite where it has one."""
        answer = await self._outcomes(decision)
        if not decision.opposite:
            return Evidence(answer.shares, mass=answer.mass)
        opposite = await self._outcomes(opposed(decision))
        return Evidence(answer.shares, opposite=opposite.shares, mass=answer.mass)

    async def _outcomes(self, decision: RenderedDecision) -> LabelShares:
        """Return the log probability of every outcome, in order, and that of all labels together."""
        n_outcomes = len(decision.outcomes)
        if n_outcomes <= MAX_OPTIONS:
            return await self._average(decision, range(n_outcomes))
        # A tournament: each group by itself, then the groups' winners against each other.
        groups = np.array_split(np.arange(n_outcomes), math.ceil(n_outcomes / MAX_OPTIONS))
        within = [(await self._average(decision, group.tolist())).shares for group in groups]
        winners = [int(group[logs.argmax()]) for group, logs in zip(groups, within, strict=True)]
        final = await self._average(decision, winners)
        # A winner's share of its group gives that of the others in it.
        pairs = zip(final.shares.tolist(), within, strict=True)
        logs = np.concatenate([logs - logs.max() + log for log, logs in pairs])
        return LabelShares(logs, final.mass)

    async def _average(self, decision: RenderedDecision, places: Sequence[int]) -> LabelShares:
        """Return the mean over orders of some outcomes, in their order."""
        logs, mass = dict.fromkeys(places, 0.0), 0.0
        orders = rotations(decision.kind, places, self._orders)
        for order in orders:
            question = write_question(decision, order)
            answer = read_top(question.labels, await self._next_token(question.text))
            mass += answer.mass / len(orders)
            for place, share in zip(order, answer.shares.tolist(), strict=True):
                logs[place] += math.log(share) / len(orders)
        return LabelShares(np.array([logs[place] for place in places]), mass)
