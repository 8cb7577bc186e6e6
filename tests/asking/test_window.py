"""Rows that are under way at a model: room, order, refusals, silence and stopping."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from steelyard.asking.rows import ask_each, ask_in_threads, result_or_error
from steelyard.asking.window import RowResult, RowWindow
from steelyard.errors import ContextTooLongError, EngineUnavailableError


class Model:
    """A model that answers when it is bid to, with places for so many requests."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.under_way: dict[int, Future[str]] = {}

    def submit(self, row: int) -> Future[str]:
        if len(self.under_way) == self.places:
            raise EngineUnavailableError(f"No room for {row}.")
        self.under_way[row] = Future()
        return self.under_way[row]

    def answer(self, row: int) -> None:
        self.under_way.pop(row).set_result(f"answer {row}")

    def answer_newest(self) -> None:
        if self.under_way:
            self.answer(max(self.under_way))


def results(answers):
    return [(answer.row, answer.result()) for answer in answers]


def test_rows_are_sent_as_there_is_room_and_answers_come_as_they_end():
    model = Model(places=2)
    window = RowWindow(iter(range(3)), model.submit, at_once=8)

    assert window.look() == []
    assert list(model.under_way) == [0, 1]
    model.answer(1)
    assert results(window.look()) == [(1, "answer 1")]
    window.look()
    assert list(model.under_way) == [0, 2]
    model.answer(2)
    model.answer(0)
    assert results(window.look()) == [(2, "answer 2"), (0, "answer 0")]
    assert not window


def test_the_window_bounds_running_requests():
    model = Model(places=8)
    RowWindow(range(5), model.submit, at_once=3).look()

    assert list(model.under_way) == [0, 1, 2]


def test_a_row_that_cannot_be_sent_has_its_own_error():
    def submit(row: int) -> Future[str]:
        if row == 1:
            raise ContextTooLongError("Row 1 is too long.")
        future: Future[str] = Future()
        future.set_result(f"answer {row}")
        return future

    taken = ask_each(range(3), submit, result_or_error, 8)

    assert [str(each) for each in taken] == ["answer 0", "Row 1 is too long.", "answer 2"]
    assert isinstance(taken[1], ContextTooLongError)


def test_a_refused_row_was_not_sent():
    window = RowWindow([0], Model(places=0).submit, 8)

    assert [answer.is_sent for answer in window.look()] == [False]


def test_without_room_each_row_has_its_own_refusal():
    taken = ask_each(range(2), Model(places=0).submit, result_or_error, 8)

    assert [str(each) for each in taken] == ["No room for 0.", "No room for 1."]


def test_a_row_waits_for_the_room_that_others_take():
    model = Model(places=0)
    window = RowWindow([7], model.submit, 8, patience_s=600.0)

    assert window.look() == []
    model.places = 1
    window.look()
    model.answer(7)
    assert results(window.look()) == [(7, "answer 7")]


def test_the_oldest_request_fails_where_no_answer_comes():
    window = RowWindow(range(2), Model(places=2).submit, 8, timeout_s=0.0)

    for row in range(2):
        [answer] = window.look()
        assert answer.row == row
        with pytest.raises(TimeoutError):
            answer.result()
    assert not window


def test_answers_are_in_the_order_of_the_rows():
    model, counts = Model(places=2), []

    taken = ask_each(
        range(4),
        model.submit,
        RowResult.result,
        8,
        progress=counts.append,
        check=model.answer_newest,
    )

    assert taken == [f"answer {row}" for row in range(4)]
    assert counts == [1, 2, 3, 4]


def test_an_untaken_error_cancels_running_requests():
    model = Model(places=2)

    def fail_first() -> None:
        if 0 in model.under_way:
            model.under_way[0].set_exception(EngineUnavailableError("It failed."))

    with pytest.raises(EngineUnavailableError, match="It failed"):
        ask_each(range(4), model.submit, RowResult.result, 8, check=fail_first)

    assert model.under_way[1].cancelled()


def test_a_row_can_be_asked_again():
    model = Model(places=1)
    window = RowWindow([3, 4], model.submit, 8)
    window.look()
    model.under_way[3].set_exception(EngineUnavailableError("It failed."))
    [failed] = window.look()
    model.under_way.clear()

    window.again(failed.row)
    window.look()

    assert list(model.under_way) == [3]


def test_while_it_pauses_no_row_is_sent():
    model = Model(places=1)
    window = RowWindow([3], model.submit, 8)

    window.pause(600.0)
    window.look()

    assert window
    assert not model.under_way


def test_rows_that_the_model_has_not_begun_are_taken_back():
    model, ends = Model(places=2), []
    window = RowWindow(range(4), model.submit, 8, on_end=lambda: ends.append(1))
    window.look()
    model.under_way[0].started_at = 1.0

    assert sorted(window.take_back()) == [1, 2, 3]

    model.answer(0)
    assert results(window.look()) == [(0, "answer 0")]
    assert len(ends) == 2
    assert not window


def test_calls_that_wait_for_their_answers_run_in_threads():
    assert ask_in_threads(range(20), str, RowResult.result, 4) == [str(row) for row in range(20)]
