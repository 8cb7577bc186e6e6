"""The benchmark of known questions: its requests, and its table."""

from __future__ import annotations

from steelyard.scoring.hashing import WordCounter


def test_new_questions_are_others_on_the_same_context(script):
    questions = script("questions")
    options = questions.parse([])
    known, again = (questions.make_request(WordCounter(), options, number) for number in (1, 2))
    new = questions.make_request(WordCounter(), options, 1, first_question=3)
    assert known.decisions == again.decisions
    assert known.context == new.context != again.context
    assert len(known.decisions) == len(new.decisions) == 3
    asked = {one.question for one in known.decisions}
    assert not asked & {one.question for one in new.decisions}


def test_the_table_has_each_beside_the_first(script):
    questions = script("questions")
    cells = [
        questions.Cell(0, known_ms=[9.0, 4.0, 5.0], new_ms=[8.0], again_ms=[5.0]),
        questions.Cell(5, known_ms=[2.0], new_ms=[10.0], again_ms=[0.5]),
    ]
    lines = [line.split() for line in questions.table(cells).splitlines()[2:]]
    assert lines == [
        ["0", "5.00", "1.00", "8.00", "1.00", "5.00", "1.00"],
        ["5", "2.00", "2.50", "10.00", "0.80", "0.50", "0.25"],
    ]
