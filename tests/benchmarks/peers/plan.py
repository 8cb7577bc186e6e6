"""The plan of the runs: sizes, loads, and their times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from peers.bodies import Size

CLOSED, OPEN = "closed", "open"
#: The rate of arrivals in open loop, as a share of what the same clients did in closed loop.
OPEN_SHARE = 0.7
#: A size is not tried where the next smaller one says that it takes this much over the patience.
BEYOND = 1.5
_STEPS = 30
#: No round of a load is shorter, whatever the time there is.
_SHORTEST_S = 0.3


@dataclass(frozen=True, slots=True)
class Grid:
    questions: tuple[int, ...] = (1, 3, 10, 32)
    outcomes: tuple[int, ...] = (2, 4, 77)
    contexts: tuple[str, ...] = ("short", "medium", "long")
    clients: tuple[int, ...] = (1, 8, 32)
    loops: tuple[str, ...] = (CLOSED, OPEN)

    def sizes(self) -> list[Size]:
        """Return the sizes, those with more questions after those with fewer."""
        return [
            Size(questions, outcomes, context)
            for context in self.contexts
            for outcomes in self.outcomes
            for questions in sorted(self.questions)
        ]


QUICK = Grid((3, 32), (4,), ("short", "medium"), (1, 8), (CLOSED,))


@dataclass(frozen=True, slots=True)
class Load:
    """So many clients in closed or open loop."""

    loop: str
    clients: int


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a round of one size and load goes on, and the work from which on a load is left out."""

    target_s: float
    longest_s: float

    def requests(self, alone_s: float, clients: int) -> int:
        """Return the requests of a round, 0 where it is left out."""
        if alone_s * clients > self.longest_s:
            return 0
        return max(clients, math.ceil(self.target_s / alone_s))

    def seconds(self, alone_s: float, load: Load) -> float:
        """Return how long a round takes at most, as one request alone tells."""
        spent = self.requests(alone_s, load.clients) * alone_s
        return spent if load.loop == CLOSED else spent / OPEN_SHARE


def fit_effort(
    wanted: Effort, alone_s: Sequence[float], loads: Sequence[Load], rounds: int, budget_s: float
) -> Effort:
    """Shorten rounds, and leave more of the longest loads out, until all fit in the time.

    ``alone_s`` are the seconds of one request alone, of each contestant and size.
    """

    def total(effort: Effort) -> float:
        return rounds * sum(effort.seconds(alone, load) for alone in alone_s for load in loads)

    def scaled(factor: float) -> Effort:
        target = max(wanted.target_s * factor, min(_SHORTEST_S, wanted.target_s))
        return Effort(target, wanted.longest_s * factor)

    if total(wanted) <= budget_s:
        return wanted
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if total(scaled(middle)) <= budget_s else (low, middle)
    return scaled(low)
