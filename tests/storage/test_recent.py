from __future__ import annotations

from steelyard.recent import Recent


def test_the_least_recently_used_goes_first():
    recent = Recent[str, int](2)
    recent.note("a", 1)
    recent.note("b", 2)
    assert recent.find("a") == 1
    recent.note("c", 3)
    assert recent.items() == [("a", 1), ("c", 3)]
    assert (recent.find("b"), "b" in recent, recent.evictions) == (None, False, 1)
    assert recent.find_or_note("c", 4) == 3
    assert recent.find_or_note("d", 4) == 4
    assert list(recent) == ["c", "d"]


def test_sizes_and_numbers_are_bounded():
    recent = Recent[str, str](6, lambda _, text: len(text), most_entries=3)
    for key in "abcd":
        recent.note(key, "x")
    assert (list(recent), recent.size) == (["b", "c", "d"], 3)
    recent.note("e", "12345")
    assert (list(recent), recent.size) == (["d", "e"], 6)
    recent.note("d", "123")
    assert (list(recent), recent.size) == (["d"], 3)
    recent.bound(2)
    assert (len(recent), recent.size) == (0, 0)


def test_too_large_values_are_not_stored_unless_the_newest_always_is():
    recent = Recent[str, str](2, lambda _, text: len(text))
    recent.note("a", "1")
    recent.note("b", "123")
    assert list(recent) == ["a"]
    keeping = Recent[str, str](2, lambda _, text: len(text), stores_any=True)
    keeping.note("a", "1")
    keeping.note("b", "123")
    assert list(keeping) == ["b"]
    keeping.pop("b")
    keeping.clear()
    assert keeping.size == 0
