from __future__ import annotations

import pytest

from steelyard.datasets.versions import hash_version

A, B = b"a" * 32, b"b" * 32


def test_a_later_hash_is_chained_on_the_one_before() -> None:
    first, other = hash_version([A]), hash_version([B])
    assert len({first, other, hash_version([A], first), hash_version([A], other)}) == 4
    assert hash_version([A], first) == hash_version([A], first)


@pytest.mark.parametrize("hashes", [[B, A], [A, A]])
def test_hashes_are_sorted_and_each_once(hashes: list[bytes]) -> None:
    with pytest.raises(ValueError, match="not sorted"):
        hash_version(hashes)
