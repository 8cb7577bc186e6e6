from __future__ import annotations

import re

import pytest

from steelyard import ids
from steelyard.ids import new_id


def test_ids_are_safe_in_addresses_and_distinct() -> None:
    minted = {new_id("dec") for _ in range(10_000)}
    assert len(minted) == 10_000
    assert all(re.fullmatch(r"dec_[0-9a-hjkmnp-tv-z]{26}", id_) for id_ in minted)


def test_ids_sort_by_the_millisecond_they_were_minted_in(monkeypatch: pytest.MonkeyPatch) -> None:
    minted = []
    for milliseconds in (0, 1, 31, 32, 1_700_000_000_000, 1_700_000_000_001, 2**48 - 1):
        monkeypatch.setattr(ids.time, "time_ns", lambda ms=milliseconds: ms * 1_000_000)
        minted.append(new_id("x"))
    assert minted == sorted(minted)
    assert {len(id_) for id_ in minted} == {28}
