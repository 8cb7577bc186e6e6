"""A queue that accounts share fairly, whatever each of them sends.

Deficit round robin (M. Shreedhar and G. Varghese, 1995) over characters: each account's line gets the
same number in turn, so that one long text counts as much as many short ones. An account that had
nothing waiting goes first, once: a line keeps its place in the round until its turn has come and it is
still empty, so that no account is new again and again. Within a line short requests go first; a long
one lets a bounded number of later ones pass.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from typing import Generic, Protocol, TypeVar

#: Characters that a line gets in its turn: a few short requests.
TURN_CHARACTERS = 512
#: Characters beyond which a request costs its line no more: others run between its passes.
MOST_CHARACTERS = 32_768
#: Characters for which a request lets one later request of its line pass.
_CHARACTERS_A_PLACE = 512


@dataclass(frozen=True, slots=True)
class Share:
    """The account that a request is scored for, or the public, which comes after all accounts."""

    account: str = ""
    is_public: bool = False


class Sized(Protocol):
    """An entry of a queue, with its size."""

    @property
    def share(self) -> Share:
        """Its account."""

    @property
    def characters(self) -> int:
        """How long it is."""


Entry = TypeVar("Entry", bound=Sized)


@dataclass(order=True, slots=True)
class _Placed(Generic[Entry]):
    key: int
    number: int
    entry: Entry = field(compare=False)


@dataclass(slots=True)
class _Line(Generic[Entry]):
    placed: list[_Placed[Entry]] = field(default_factory=list)
    deficit: int = 0
    has_turn: bool = False
    characters: int = 0
    n_pushed: int = 0

    @property
    def head(self) -> Entry:
        return self.placed[0].entry

    def next_key(self, entry: Entry) -> int:
        """Return the place of an entry, were it pushed now."""
        return self.n_pushed + 1 + entry.characters // _CHARACTERS_A_PLACE


def _below(bound: float, entries: Iterable[Sized]) -> int:
    """Return the characters of the entries that have fewer than a bound."""
    return sum(entry.characters for entry in entries if entry.characters < bound)


class FairQueue(Generic[Entry]):
    """Entries by account, taken in turns; not thread-safe."""

    def __init__(self) -> None:
        self._lines: OrderedDict[Share, _Line[Entry]] = OrderedDict()
        #: The number of entries, and the characters of all.
        self.n_entries = self.characters = 0

    def __len__(self) -> int:
        """Return the number of entries."""
        return self.n_entries

    def __iter__(self) -> Iterator[Entry]:
        """Yield every entry."""
        return (placed.entry for line in self._lines.values() for placed in line.placed)

    @property
    def shares(self) -> tuple[Share, ...]:
        """The accounts that wait."""
        return tuple(share for share, line in self._lines.items() if line.placed)

    def characters_before(self, entry: Entry, bound: float = inf) -> int:
        """Return the characters of entries below a bound that would be taken before one pushed now.

        Others get their turns beside the earlier entries of its own line, and no more than all of them
        have.
        """
        line = self._lines.get(entry.share, _Line())
        key = line.next_key(entry)
        before = takewhile(lambda placed: placed.key <= key, line.placed)
        own = _below(bound, (placed.entry for placed in before))
        if not own:
            return 0
        beside = self.characters - line.characters
        if bound < inf:
            beside = _below(bound, (other for other in self if other.share != entry.share))
        return min(own + beside, own * len({entry.share, *self.shares}))

    def push(self, entry: Entry) -> None:
        """Add an entry to its account's line, which is next where the account is new in the round."""
        line = self._lines.get(entry.share)
        if line is None:
            line = self._lines[entry.share] = _Line(deficit=_cost(entry))
            self._lines.move_to_end(entry.share, last=False)
        key = line.next_key(entry)
        line.n_pushed += 1
        insort(line.placed, _Placed(key, line.n_pushed, entry))
        line.characters += entry.characters
        self.characters += entry.characters
        self.n_entries += 1

    def take(
        self, max_characters: int, may_go: Callable[[Entry], bool] = lambda _: True
    ) -> list[Entry]:
        """Remove and return the entries of the next pass; one longer than the bound goes alone."""
        taken: list[Entry] = []
        size = n_passed = 0
        while n_passed < len(self._lines):
            share, line = next(iter(self._lines.items()))
            if not line.placed:
                del self._lines[share]
                continue
            if not may_go(line.head):
                n_passed += 1
                line.has_turn = False
                self._lines.move_to_end(share)
                continue
            n_passed = 0
            if not line.has_turn:
                line.has_turn = True
                line.deficit += TURN_CHARACTERS
            while line.placed and may_go(line.head) and _cost(line.head) <= line.deficit:
                entry = line.head
                if taken and size + entry.characters > max_characters:
                    return taken  # its turn goes on with the next
                line.deficit -= _cost(entry)
                self._remove(line, 0)
                taken.append(entry)
                size += entry.characters
            line.has_turn = False
            if not line.placed:
                line.deficit = 0
            self._lines.move_to_end(share)
            if not any(other.placed for other in self._lines.values()):
                self._lines.clear()
        return taken

    def take_last_of_longest(self) -> Entry | None:
        """Remove and return the last entry of the longest line."""
        if not self._lines:
            return None
        share, line = max(self._lines.items(), key=lambda item: len(item[1].placed))
        if not line.placed:
            return None
        entry = self._remove(line, len(line.placed) - 1)
        if not line.placed:
            del self._lines[share]
        return entry

    def n_of(self, share: Share) -> int:
        """Return the number of an account's entries."""
        return len(self._lines[share].placed) if share in self._lines else 0

    def most(self) -> int:
        """Return the number of entries of the longest line."""
        return max((len(line.placed) for line in self._lines.values()), default=0)

    def keep(self, stays: Callable[[Entry], bool]) -> None:
        """Remove the entries that a condition does not hold for."""
        for share, line in list(self._lines.items()):
            for index in reversed(range(len(line.placed))):
                if not stays(line.placed[index].entry):
                    self._remove(line, index)
            if not line.placed:
                del self._lines[share]

    def _remove(self, line: _Line[Entry], index: int) -> Entry:
        entry = line.placed.pop(index).entry
        line.characters -= entry.characters
        self.characters -= entry.characters
        self.n_entries -= 1
        return entry


def _cost(entry: Sized) -> int:
    return min(entry.characters, MOST_CHARACTERS)
