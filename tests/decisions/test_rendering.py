from __future__ import annotations

from itertools import permutations

import pytest

from steelyard.decisions.rendering import read_outcomes, render_outcome


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("getQuote", "get Quote"),
        ("CardNotWorking", "Card Not Working"),
        ("HTTPError", "HTTP Error"),
        ("howToFileAClaim", "how To File A Claim"),
        ("file_a_claim", "file a claim"),
        ("Media_3_PlayMovie", "Media 3 Play Movie"),
        # Words and names of people, brands and versions stay.
        ("New York", "New York"),
        ("get quote", "get quote"),
        ("iPhone", "iPhone"),
        ("McKay", "McKay"),
        ("PDFs", "PDFs"),
        ("v2.0", "v2.0"),
        ("top-up", "top-up"),
        ("the getQuote call", "the getQuote call"),
        ("_", "_"),
        ("", ""),
    ],
)
def test_a_name_of_a_program_is_read_as_its_words(written: str, read: str) -> None:
    assert read_outcomes([written, "other"]) == (read, "other")
    described = render_outcome(written, "asks forA price: now_or later")
    assert read_outcomes([described, "other"])[0] == described.replace(written, read, 1)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (("A) refund", "B) exchange", "C) neither"), ("refund", "exchange", "neither")),
        (("(a) refund", "(b) exchange"), ("refund", "exchange")),
        (("1. refund", "2. newOrder: one more"), ("refund", "new Order: one more")),
        # No list: letters are missing, or are part of names, or are all that there is.
        (("A) refund", "exchange"), ("A) refund", "exchange")),
        (("A. Milne", "E. White"), ("A. Milne", "E. White")),
        (("A)", "B)"), ("A)", "B)")),
        (("A: refund", "B: exchange"), ("A: refund", "B: exchange")),
    ],
)
def test_the_letters_of_a_list_are_not_read(
    written: tuple[str, ...], read: tuple[str, ...]
) -> None:
    for order in permutations(range(len(written))):
        found = read_outcomes([written[i] for i in order])
        assert found == tuple(read[i] for i in order)
        assert read_outcomes(found) == found
