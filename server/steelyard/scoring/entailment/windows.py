"""Parts of a text that an encoder reads one after another: sentences, as many as fit; pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise

from steelyard.decisions.explaining import Span, sentences_of


def windows_of(text: str, tokens: Sequence[Span], most: int) -> list[str]:
    """Return a text in parts of at most so many tokens; the last sentence of each begins the next.

    A sentence that is too long for a part is cut between tokens. ``tokens`` are the places of the
    text's tokens, in order.

    >>> words = [(0, 2), (3, 8), (10, 14), (15, 19), (21, 24), (25, 29), (30, 36)]
    >>> windows_of("It broke. Send more. Now then please!", words, 4)
    ['It broke. Send more.', 'Now then please!']
    """
    starts = [start for start, _ in tokens]
    if len(starts) <= most:
        return [text]

    def count(start: int, end: int) -> int:
        return bisect_left(starts, end) - bisect_left(starts, start)

    pieces = [
        piece for sentence in sentences_of(text) for piece in _cut(sentence, starts, most, count)
    ]
    windows: list[Span] = []
    first = 0
    while first < len(pieces):
        last = first
        while last + 1 < len(pieces) and count(pieces[first][0], pieces[last + 1][1]) <= most:
            last += 1
        windows.append((pieces[first][0], pieces[last][1]))
        if last + 1 == len(pieces):
            break
        # What is said of "it" or "they" is in the sentence before, where that leaves room.
        shares = last > first and count(pieces[last][0], pieces[last + 1][1]) <= most
        first = last if shares and count(*pieces[last]) <= most // 4 else last + 1
    return [text[start:end] for start, end in windows]


def _cut(
    sentence: Span, starts: Sequence[int], most: int, count: Callable[[int, int], int]
) -> list[Span]:
    start, end = sentence
    if count(start, end) <= most:
        return [sentence]
    first, last = bisect_left(starts, start), bisect_left(starts, end)
    edges = [start, *(starts[place] for place in range(first + most, last, most)), end]
    return list(pairwise(edges))
