"""Asking about given rows, once each, with the answers in the order of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from steelyard.asking.window import Result, Row, RowResult, RowWindow
from steelyard.errors import SteelyardError

_Taken = TypeVar("_Taken")


def ask_each(
    rows: Iterable[Row],
    submit: Callable[[Row], Future[Result]],
    take: Callable[[RowResult[Row, Result]], _Taken],
    at_once: int,
    *,
    timeout_s: float = float("inf"),
    patience_s: float = 0.0,
    progress: Callable[[int], object] = lambda _: None,
    check: Callable[[], object] = lambda: None,
) -> list[_Taken]:
    """Return ``take`` of the answer to each row; an error that it raises ends the asking.

    ``progress`` receives the number of answers after each, and ``check`` is called at every look: an
    error of either ends the asking too. For the others see ``RowWindow``.
    """
    taken: dict[int, _Taken] = {}
    window = RowWindow(
        enumerate(rows),
        lambda numbered: submit(numbered[1]),
        at_once,
        timeout_s=timeout_s,
        patience_s=patience_s,
    )
    with window:
        while window:
            check()
            for answer in window.look():
                place, row = answer.row
                taken[place] = take(
                    RowResult(row, answer.future, answer.sent_at, answer.ended_at, answer.is_sent)
                )
                progress(len(taken))
    return [taken[place] for place in sorted(taken)]


def ask_in_threads(
    rows: Iterable[Row],
    ask: Callable[[Row], Result],
    take: Callable[[RowResult[Row, Result]], _Taken],
    at_once: int,
    *,
    progress: Callable[[int], object] = lambda _: None,
) -> list[_Taken]:
    """Return ``take`` of the answer to each row, where asking waits for the answer."""
    with ThreadPoolExecutor(at_once, thread_name_prefix="steelyard-asking") as pool:
        return ask_each(rows, lambda row: pool.submit(ask, row), take, at_once, progress=progress)


def result_or_error(answer: RowResult[Row, Result]) -> Result | SteelyardError:
    """Return the answer to a row, or its error."""
    try:
        return answer.result()
    except SteelyardError as error:
        return error
