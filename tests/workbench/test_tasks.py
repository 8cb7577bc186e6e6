"""Asynchronous work: dropped work, work done once, and where a failure is shown."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
import panel_material_ui as pmui

from steelyard.errors import InvalidNameError, InvalidReferenceError, KeyScopeError
from steelyard_workbench.kit.problems import needed, problem_of
from steelyard_workbench.kit.tasks import OneAtATime, Scope, Task, Write
from support.browser.shown_parts import buttons, texts, texts_of
from support.servers.held_calls import HeldCall, until_done
from support.waiting import next_turn


@pytest.fixture
def corner(monkeypatch):
    """The messages in a corner of the window."""
    said = []
    told = SimpleNamespace(
        success=lambda text, _: said.append(("done", text)),
        error=lambda text, _: said.append(("failed", text)),
    )
    monkeypatch.setattr(type(pn.state), "notifications", property(lambda _: told))
    return said


class Held:
    """Work that waits in a thread, and its steps."""

    def __init__(self, fails=False):
        def call(text):
            if fails:
                raise InvalidNameError(f"No {text}.")
            return text

        self.call = HeldCall(call)
        self.done = []

    async def work(self, text="first"):
        found = await asyncio.to_thread(self.call, text)
        self.done.append(found)
        return found


async def held_at(task, held):
    """Start the task, and wait until it is in its thread."""
    run = asyncio.create_task(task())
    await held.call.until_called()
    return run


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("end", ["overtaken", "dropped", "scope ends"])
def test_a_dropped_task_stops_where_it_waits(caplog, end, fails):
    held, place, scope = Held(fails), pn.Column(), Scope()

    async def drop():
        task = Task(held.work, "Could not load it.", place, scope=scope)
        first = await held_at(task, held)
        assert task.is_running
        if end == "overtaken":
            held.call = HeldCall(lambda text: text)
            held.call.go_on()
            assert await task("second") == "second"
        elif end == "dropped":
            task.drop()
        else:
            scope.end()
        first_call.go_on()
        assert await first is None
        assert not task.is_running

    first_call = held.call
    asyncio.run(drop())
    assert held.done == (["second"] if end == "overtaken" else [])
    assert not place.objects
    assert not caplog.records


def test_nothing_is_started_once_its_scope_has_ended():
    held, scope = Held(), Scope()
    scope.end()
    assert asyncio.run(Task(held.work, scope=scope)()) is None
    assert held.call.n_calls == 0


def test_a_failure_is_shown_in_its_place_with_a_way_to_try_again():
    answers, place = iter([InvalidNameError("No such thing."), None]), pn.Column()

    async def work():
        if (error := next(answers)) is not None:
            raise error
        place[:] = [pn.pane.Str("Here it is.")]

    task = Task(work, "Could not load the rows.", place)
    asyncio.run(task())
    assert "Could not load the rows.** No such thing." in texts_of(place)
    buttons(place)["Try again"].clicks += 1
    assert texts_of(place) == "Here it is."


@pytest.mark.parametrize("kind", [Task, OneAtATime, Write])
def test_a_failure_that_has_no_place_is_raised(kind):
    async def work():
        raise LookupError("no such thing")

    task = kind(work)
    with pytest.raises(LookupError, match="no such thing"):
        asyncio.run(task())
    assert not task.is_running


@pytest.mark.parametrize("kind", [OneAtATime, Write])
def test_a_running_task_is_not_started_again(kind):
    held = Held()

    async def start_twice():
        task = kind(held.work)
        first = await held_at(task, held)
        assert await asyncio.wait_for(task(), 10) is None
        held.call.go_on()
        assert await first == "first"
        assert await task("again") == "again"

    asyncio.run(start_twice())
    assert held.done == ["first", "again"]


def test_a_dropped_task_may_be_started_while_its_thread_works():
    held = Held()

    async def start_anew():
        task = OneAtATime(held.work)
        first = await held_at(task, held)
        task.drop()
        second = asyncio.create_task(task("second"))
        await until_done(first, second)
        held.call.go_on()
        return await first, await second

    assert asyncio.run(start_anew()) == (None, "second")
    assert held.done == ["second"]


def test_a_timeout_within_the_work_is_the_works():
    ended = []

    async def work():
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append("timed out")

    asyncio.run(Task(work)())
    assert ended == ["timed out"]


def test_a_cancelled_caller_cancels_the_work():
    ended = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def cancel():
        task = Task(work)
        run = asyncio.create_task(task())
        await next_turn()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        assert run.cancelled()
        assert not task.is_running

    asyncio.run(cancel())
    assert ended == ["cancelled"]


@pytest.mark.parametrize("is_left", [False, True])
def test_a_write_goes_on_after_its_page_was_left_and_is_reported_in_the_corner(corner, is_left):
    held, scope = Held(), Scope()
    opened = []

    async def work():
        await held.work()
        if not scope.say_if_ended("Sent. It is on its page."):
            opened.append(1)

    async def leave():
        run = await held_at(Write(work, scope=scope), held)
        if is_left:
            scope.end()
        held.call.go_on()
        await run

    asyncio.run(leave())
    assert held.done == ["first"]
    assert corner == ([("done", "Sent. It is on its page.")] if is_left else [])
    assert opened == ([] if is_left else [1])


@pytest.mark.parametrize("is_left", [False, True])
def test_a_write_that_fails_after_its_page_was_left_is_reported_in_the_corner(corner, is_left):
    held, scope, place = Held(fails=True), Scope(), pn.Column()

    async def leave():
        run = await held_at(Write(held.work, "Not sent:", place, scope=scope), held)
        if is_left:
            scope.end()
        held.call.go_on()
        assert await run is None

    asyncio.run(leave())
    assert "Not sent:** No first." in texts_of(place)
    assert "Try again" not in buttons(place)
    assert corner == ([("failed", "Not sent: No first.")] if is_left else [])


def test_a_field_that_lacks_something_is_marked_with_one_sentence_and_no_code():
    field, place = pmui.TextInput(), pn.Column()

    async def work():
        return needed(field, "Write a name.")

    write = Write(work, "Not saved.", place)
    assert asyncio.run(write()) is None
    assert field.error_state
    assert texts(place) == "**Write a name.**"
    field.value = " Ann "
    assert asyncio.run(write()) == "Ann"
    assert not field.error_state


@pytest.mark.parametrize(
    ("message", "path", "said"),
    [
        ("decisions[0].id is empty; give 1.", ["decisions", 0, "id"], "id of decision 1 is empty"),
        ("hyperparameters.seed is a text.", ["hyperparameters", "seed"], "seed is a text."),
        ("rows[2] is no row.", ["body", "rows", 2], "row 3 is no row."),
        ("name is empty.", ["name"], "name is empty."),
    ],
)
def test_the_path_of_a_field_is_said_in_words(message, path, said):
    error = InvalidReferenceError(message, details=[{"loc": path, "msg": message}])
    problem = problem_of(error, "Not saved.")
    assert problem.message.startswith(said)
    assert problem.details == ()


def test_a_write_that_is_not_allowed_has_its_button_disabled_with_the_reason():
    async def work():
        raise KeyScopeError("The key may only read.")

    place = pn.Column()
    asyncio.run(Write(work, "Not sent:", place, refused="Send")())
    assert "The key may only read." in texts_of(place)
    assert buttons(place)["Send"].disabled


def test_listeners_of_a_task_hear_when_it_runs_and_has_ended():
    seen = []

    async def work():
        seen.append("work")

    task = Write(work)
    task.param.watch(lambda event: seen.append(event.new), "is_running")
    asyncio.run(task())
    assert seen == [True, "work", False]
