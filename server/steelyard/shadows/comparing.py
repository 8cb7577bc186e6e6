"""Which answers a shadow scores, and how the two compare."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, Struct

from steelyard.decision_log.traffic import is_right, share
from steelyard.shadows.wire import ShadowFigures


class Top(Struct, frozen=True):
    """The compared part of a result."""

    top: str


@dataclass(frozen=True, slots=True)
class Pair:
    """One stored answer by both models, and its outcomes, by decision."""

    family: Mapping[str, Top]
    shadow: Mapping[str, Top]
    observed: Mapping[str, Any]


def is_chosen(answer_id: str, sampled_share: float) -> bool:
    """Return whether an answer is in the sampled share, the same on every server and each time."""
    digest = hashlib.sha256(f"shadow {answer_id}".encode()).digest()
    return int.from_bytes(digest[:8]) < sampled_share * 2**64


def compare(pairs: Iterable[Pair]) -> dict[str, ShadowFigures]:
    """Return the figures of every decision that both answered."""
    tallies: dict[str, _Tally] = {}
    for pair in pairs:
        for name in pair.family.keys() & pair.shadow.keys():
            tally = tallies.setdefault(name, _Tally())
            tally.add(pair.family[name].top, pair.shadow[name].top, pair.observed.get(name))
    return {name: tallies[name].figures() for name in sorted(tallies)}


@dataclass(slots=True)
class _Tally:
    n: int = 0
    n_agreed: int = 0
    both: int = 0
    family: int = 0
    shadow: int = 0
    neither: int = 0

    def add(self, family: str, shadow: str, outcome: Any) -> None:
        self.n += 1
        self.n_agreed += family == shadow
        if outcome is None:
            return
        match is_right(family, outcome), is_right(shadow, outcome):
            case True, True:
                self.both += 1
            case True, False:
                self.family += 1
            case False, True:
                self.shadow += 1
            case _:
                self.neither += 1

    def figures(self) -> ShadowFigures:
        observed = self.both + self.family + self.shadow + self.neither
        agreement = share(self.n_agreed, self.n)
        assert agreement is not None  # noqa: S101  there is a tally because there is an answer
        return ShadowFigures(
            n=self.n,
            agreement=agreement,
            observed=observed,
            both_right=self.both,
            family_right=self.family,
            shadow_right=self.shadow,
            both_wrong=self.neither,
            family_accuracy=share(self.both + self.family, observed) or UNSET,
            shadow_accuracy=share(self.both + self.shadow, observed) or UNSET,
        )
