"""The page of datasets: lists and rows, imports that are looked at first, and every state."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
import panel_material_ui as pmui
import polars as pl
from panel.viewable import Viewer

import steelyard
from steelyard.errors import SteelyardError
from steelyard_workbench.kit.components.bar_list import BarList
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.components.frame_table import PageRequest
from steelyard_workbench.kit.components.unseen import FirstField
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.datasets.page import DatasetsPage
from steelyard_workbench.parts.datasets.row_pages import at_places, search_page
from steelyard_workbench.parts.review.row_filter import RowFilter
from support.browser.shown_parts import choices, choose, named, texts, texts_of
from support.servers.held_calls import HeldCall, Instead, until_done
from support.waiting import next_turn

OUTCOMES = ["billing", "shipping"]


class ForbiddenError(SteelyardError):
    code = "key_scope"
    status = 403


@pytest.fixture
def told(monkeypatch):
    """The messages in a corner of the window."""
    said = []
    corner = SimpleNamespace(
        success=lambda text, _: said.append(text), error=lambda text, _: said.append(text)
    )
    monkeypatch.setattr(type(pn.state), "notifications", property(lambda _: corner))
    return said


def row(text, outcome="billing"):
    decision = {"id": "team", "question": "Who?", "outcomes": OUTCOMES}
    return {"context": text, "decisions": [decision], "targets": {"team": outcome}}


def lines(*rows):
    return b"".join(json.dumps(one).encode() + b"\n" for one in rows)


@pytest.fixture(scope="module")
def client():
    with steelyard.embed(engine="hashing") as server:
        yield server.client


@pytest.fixture(scope="module")
def dataset(client):
    rows = [row(f"case {n} of the desk", OUTCOMES[n % 3 == 0]) for n in range(40)]
    return client.datasets.create("desk", rows)


def opened(client, **chosen):
    page = DatasetsPage(Session(client, page="datasets", **chosen))
    page.open()
    if page.details is not None:
        page.details.open()
    return page


def test_every_dataset_is_listed_and_one_is_opened_from_the_list(client, dataset):
    page = opened(client)
    assert page.list.rows["name"].to_list() == ["desk"]
    page.list._on_open(page.list.rows.row(0, named=True))
    assert page.session.dataset == dataset.id
    assert [part.state for part in page.parts] == ["shown"] * 4
    assert page.rows.table.total == 40


def test_a_bar_of_the_labels_filters_the_rows_and_the_address_keeps_it(client, dataset):
    page = opened(client, dataset=dataset.id)
    [bars] = page.__panel__().select(BarList)
    titles = [chart["title"] for chart in bars.charts]
    names = [bar["name"] for bar in bars.charts[titles.index("team")]["bars"]]
    bars.press(titles.index("team"), names.index("shipping"))
    assert page.rows.table.total == 14
    again = opened(client, dataset=dataset.id, query=page.session.query)
    assert again.rows.table.total == 14


def test_a_filter_that_leaves_nothing_says_so_and_can_be_cleared(client, dataset):
    page = opened(client, dataset=dataset.id)
    page.bar.choose(RowFilter(words="nowhere", side="training"))
    assert "words: nowhere" in texts_of(page.rows.__panel__())
    page.bar.choose(RowFilter())
    assert page.rows.table.total == 40


def buttons_of(rows):
    """The buttons of rows that are seen."""
    return set(choices(rows.__panel__()))


@pytest.mark.parametrize(
    ("label", "where"),
    [
        ("Review it", ("review", "", "ev_1", "ant")),
        ("Map it", ("map", "", "ev_1", "ant")),
        ("Evaluate it", ("evaluations", "", "", "ant")),
        ("Train on it", ("families", "start", "ev_1", "")),
    ],
)
def test_next_steps_begin_afresh_after_other_pages(client, dataset, label, where):
    page = opened(client, dataset=dataset.id, view="bulk", evaluation="ev_1", family="ant")
    choose(page.__panel__(), label)
    session = page.session
    assert (session.page, session.view, session.evaluation, session.family) == where
    assert session.dataset == dataset.id


def test_unready_steps_of_a_dataset_have_reasons(client):
    held = client.datasets.create("held out", evaluation=[row(f"held {n}") for n in range(3)])
    page = opened(client, dataset=held.id)
    steps = choices(page.__panel__())
    assert steps["Train on it"] is None
    assert "It has no rows to train on." in texts(page.__panel__())
    assert steps["Evaluate it"] is not None
    client.datasets.delete(held.id)


def test_keys_open_one_row_after_the_other_with_its_labels(client, dataset):
    page = opened(client, dataset=dataset.id)
    assert not {"Previous row (k)", "Close the row"} & buttons_of(page.rows)
    assert page.on_key("next", 1)
    assert {"Previous row (k)", "Close the row"} <= buttons_of(page.rows)
    assert page.on_key("next", 1)
    assert page.rows.opened == 1
    assert "case 1 of the desk" in texts_of(page.rows._detail)
    assert page.on_key("previous", 1)
    assert page.rows.opened == 0
    assert page.on_key("close", 1)
    assert page.rows.opened is None
    assert not page.on_key("undo", 1)


def test_rows_come_with_their_sides_and_in_the_order_asked(client, dataset):
    page = search_page(client, dataset.id, PageRequest(0, 40, (("row", True),)))
    assert page.rows["row"].to_list() == list(range(39, -1, -1))
    counts = page.rows["side"].value_counts()
    assert dict(counts.rows()) == {
        "training": dataset.split.training,
        "check": dataset.split.evaluation,
    }


def test_places_are_written_as_runs():
    ranges = at_places([9, 4, 5, 5])["filters"]
    assert [(one["at_least"], one["below"]) for one in ranges] == [(4, 6), (9, 10)]


def test_rows_with_mistakes_are_reported_and_left_out(client):
    page = opened(client)
    before = len(client.datasets.list().data)
    good = [row(f"fine {n}") for n in range(12)]
    wrong = lines(*good, {"context": 3}, row("so-so", "nobody")) + b"not json\n"
    asyncio.run(page.importing.take("bad.jsonl", wrong))
    told = texts_of(page.importing.found)
    for line in ("3 left out", "line 13: ", "line 14: ", "line 15: It is no JSON at character 1"):
        assert line in told
    assert len(client.datasets.list().data) == before
    schedule(page.importing.send)
    made = client.datasets.get(page.session.dataset)
    assert (made.name, made.rows) == ("bad", 12)
    client.datasets.delete(made.id)
    asyncio.run(page.importing.take("bad.jsonl", lines(row("so-so", "nobody"))))
    assert "Nothing was stored" in texts_of(page.importing.found)
    assert not page.importing.form.visible


def test_a_good_file_becomes_a_dataset_and_is_opened(client):
    page = opened(client)
    data = lines(*[row(f"import {n}") for n in range(12)])
    asyncio.run(page.importing.take("calls.2026.jsonl", data))
    assert page.importing.made.n_rows == 12
    assert page.importing.name_field.value == "calls.2026"
    page.importing.fraction.value = 0.5
    schedule(page.importing.send)
    made = client.datasets.get(page.session.dataset)
    assert (made.name, made.rows, made.evaluation_fraction) == ("calls.2026", 12, 0.5)
    client.datasets.delete(made.id)


def test_rows_and_tables_become_the_next_version_of_an_open_dataset(client):
    made = client.datasets.create("growing", [row(f"first {n}") for n in range(12)])
    page = opened(client, dataset=made.id)
    asyncio.run(page.importing.take("more.jsonl", lines(row("second"), row("second"))))
    assert "1 line is repeated" in texts_of(page.importing.found)
    assert page.importing.is_next_version
    schedule(page.importing.send)
    assert client.datasets.get(made.id).version == 2
    asyncio.run(page.importing.take("more.csv", b"context,team\nthird,shipping\n,shipping\n"))
    assert "Its context is empty" in texts_of(page.importing.found)
    assert page.importing.is_next_version
    schedule(page.importing.send)
    assert client.datasets.get(made.id).version == 3
    asyncio.run(page.importing.take("wrong.csv", b"context,team\nfourth,nobody\n"))
    panel = page.importing
    assert "is no outcome of team" in texts_of(panel.found)
    assert panel.button.disabled
    assert client.datasets.get(made.id).version == 3
    client.datasets.delete(made.id)


def test_an_import_lists_its_versions_and_rows_left_out(client, dataset):
    panel = opened(client).importing
    made = msgspec.structs.replace(dataset, version=2, rows=12, duplicates_removed=1)
    assert panel._what_came(made) == (
        "12 rows. The file was sent in 2 parts, each a version: 1 to 2. 1 duplicate was left out."
    )


@pytest.mark.parametrize("name", ["none.csv", "none.jsonl"])
def test_an_empty_file_is_said_to_be_empty(client, dataset, name):
    page = opened(client, dataset=dataset.id)
    asyncio.run(page.importing.take("fine.jsonl", lines(row("fine"))))
    asyncio.run(page.importing.take(name, b"\n"))
    assert "The file is empty" in texts_of(page.importing.found)
    assert not page.importing.form.visible


def test_a_dataset_is_renamed_restored_and_deleted_once_its_name_is_typed(client):
    made = client.datasets.create("short", [row(f"old {n}") for n in range(12)])
    page = opened(client, dataset=made.id)
    page.actions.ask_name()
    [field] = page.actions.asked.dialog.select(lambda one: getattr(one, "label", "") == "Name")
    field.value_input = "longer"
    asyncio.run(page.actions.asked.confirm())
    assert client.datasets.get(made.id).name == "longer"
    page.open()
    for change in ("archive", "restore"):
        asyncio.run(getattr(page.actions, change)())
        is_archived = client.datasets.get(made.id).archived_at is not None
        assert is_archived == (change == "archive")
        page.open()
    page.actions.ask_delete()
    assert page.actions.asked.button.disabled
    page.actions.asked.entry.value_input = "longer"
    assert not page.actions.asked.button.disabled
    asyncio.run(page.actions.asked.confirm())
    assert page.session.dataset == ""
    assert page.list is not None


def fake_client(**datasets):
    def refuse(*_, **__):
        raise ForbiddenError("This key may not do that; ask for one with another scope.")

    return SimpleNamespace(
        datasets=SimpleNamespace(**{"iterate": lambda **_: [], **datasets}), send=refuse
    )


def test_without_datasets_it_says_how_to_get_some_and_offers_the_import():
    page = opened(fake_client())
    assert "No datasets yet" in texts_of(page.__panel__())
    named(page.__panel__(), "Archived ones")[0].value = True
    assert "No dataset is archived" in texts_of(page.__panel__())


def test_a_missing_permission_is_named_and_not_offered_again(client, dataset):
    page = opened(fake_client())
    asyncio.run(page.importing.take("rows.jsonl", lines(row("one"))))
    assert "Not allowed" in texts_of(page.importing.found)

    def refuse(*_, **__):
        raise ForbiddenError("This key may not do that; ask for one with another scope.")

    given = client.datasets.get(dataset.id)
    page = opened(client, dataset=dataset.id)
    page.actions.client = SimpleNamespace(datasets=SimpleNamespace(rename=refuse))
    page.actions.ask_name()
    asyncio.run(page.actions.asked.confirm())
    assert "another scope" in texts_of(page.actions.problem)
    offered = choices(page.__panel__())
    assert [offered[label] for label in ("Rename", "Archive", "Delete")] == [None] * 3
    assert offered["Map it"] is not None
    assert client.datasets.get(dataset.id) == given


def test_one_part_that_fails_leaves_the_others(client, dataset):
    def fail(*_, **__):
        raise SteelyardError("The rows cannot be counted now; try again.")

    whole = client.datasets
    parts = {name: getattr(whole, name) for name in ("get", "labels_to_check", "search")}
    page = opened(
        Instead(client, datasets=SimpleNamespace(facets=fail, **parts)), dataset=dataset.id
    )
    assert [part.state for part in page.parts] == ["shown", "failed", "shown", "shown"]
    assert page.rows.table.total == 40
    assert isinstance(page.rows.table.rows, pl.DataFrame)


def holding(client, **held):
    """A client some of whose calls of datasets wait."""
    return Instead(client, datasets=Instead(client.datasets, **held))


def review(page, dataset):
    """Leave the page for a review."""
    page.close()
    page.session.param.update(page="review", dataset=dataset.id, version=1, query='{"words": "a"}')


def is_reviewed(page, dataset):
    session = page.session
    chosen = (session.page, session.dataset, session.version, session.query)
    return chosen == ("review", dataset.id, 1, '{"words": "a"}')


def test_an_import_that_ends_after_its_page_was_left_is_only_reported(client, dataset, told):
    create = HeldCall(client.datasets.create)

    async def leave():
        page = opened(holding(client, create=create))
        await until_done()
        await page.importing.take("late.jsonl", lines(*[row(f"late {n}") for n in range(12)]))
        sending = asyncio.create_task(page.importing.send())
        await create.until_called()
        review(page, dataset)
        create.go_on()
        await sending
        return page

    page = asyncio.run(leave())
    assert is_reviewed(page, dataset)
    assert told == ["Imported: late, 12 rows, version 1. It is on the Datasets page."]
    [made] = [one for one in client.datasets.list().data if one.name == "late"]
    client.datasets.delete(made.id)


def test_an_import_that_ends_beside_another_dataset_leaves_that_open(client, dataset, told):
    create = HeldCall(client.datasets.create)

    async def choose_another():
        page = opened(holding(client, create=create))
        await until_done()
        await page.importing.take("late.jsonl", lines(*[row(f"late {n}") for n in range(12)]))
        sending = asyncio.create_task(page.importing.send())
        await create.until_called()
        page.session.dataset = dataset.id
        create.go_on()
        await sending
        await until_done()
        return page

    page = asyncio.run(choose_another())
    assert page.session.dataset == page.shown == dataset.id
    assert len(told) == 1
    [made] = [one for one in client.datasets.list().data if one.name == "late"]
    client.datasets.delete(made.id)


@pytest.mark.parametrize("is_left", [True, False])
def test_an_import_that_fails_after_its_page_was_left_reports_stored_rows(
    client, dataset, told, is_left
):
    def fail(*_, **__):
        error = ForbiddenError("The key was revoked.")
        error.add_note("12 of 24 rows, in ds_half.")
        raise error

    create = HeldCall(fail)

    async def leave():
        page = opened(holding(client, create=create))
        await until_done()
        await page.importing.take("half.jsonl", lines(*[row(f"half {n}") for n in range(24)]))
        sending = asyncio.create_task(page.importing.send())
        await create.until_called()
        if is_left:
            review(page, dataset)
        create.go_on()
        await sending
        return page

    page = asyncio.run(leave())
    said = "The key was revoked. Some rows are in: 12 of 24 rows, in ds_half."
    assert told == ([f"Not imported: {said}"] if is_left else [])
    assert "ds_half" in texts_of(page.importing.said)


def test_rows_that_come_after_a_rename_are_shown_with_their_version(client, told):
    made = client.datasets.create("growing", [row(f"growing {n}") for n in range(12)])
    add = HeldCall(client.datasets.add_rows)

    async def rename_meanwhile():
        page = opened(holding(client, add_rows=add), dataset=made.id)
        await until_done()
        panel = page.importing
        await panel.take("more.jsonl", lines(*[row(f"more {n}") for n in range(3)]))
        sending = asyncio.create_task(panel.send())
        await add.until_called()
        page.actions._on_changed()  # as a rename does
        await until_done(sending)
        add.go_on()
        await sending
        await until_done()
        return page

    page = asyncio.run(rename_meanwhile())
    assert page.parts[0].data.dataset.version == 2
    assert page.rows.table.total == 15
    assert told == ["Imported: growing, 3 rows, version 2."]
    client.datasets.delete(made.id)


@pytest.mark.parametrize("action", ["delete", "rename"])
def test_a_change_that_is_done_once_the_page_was_left_changes_no_other(
    client, dataset, told, action
):
    made = client.datasets.create("passing", [row(f"passing {n}") for n in range(12)])
    call = HeldCall(getattr(client.datasets, action))

    async def leave():
        page = opened(holding(client, **{action: call}), dataset=made.id)
        await until_done()
        actions = page.actions
        (actions.ask_delete if action == "delete" else actions.ask_name)()
        actions.asked.entry.value_input = "passing"
        [field] = actions.asked.dialog.select(lambda one: getattr(one, "label", "") == "Name") or [
            SimpleNamespace()
        ]
        field.value_input = "another"
        doing = asyncio.create_task(actions.asked.confirm())
        await call.until_called()
        review(page, dataset)
        call.go_on()
        await doing
        await until_done()
        return page

    page = asyncio.run(leave())
    assert is_reviewed(page, dataset)
    assert page.shown == made.id
    assert told == (["Deleted: the dataset passing."] if action == "delete" else [])
    if action == "rename":
        client.datasets.delete(made.id)


def test_an_import_is_sent_once_however_often_it_is_clicked(client):
    create = HeldCall(client.datasets.create)

    async def click_twice():
        page = opened(holding(client, create=create))
        await until_done()
        await page.importing.take("twice.jsonl", lines(*[row(f"twice {n}") for n in range(12)]))
        first = asyncio.create_task(page.importing.send())
        await create.until_called()
        await asyncio.wait_for(page.importing.send(), 10)  # the second has nothing to wait for
        assert page.importing.button.disabled
        create.go_on()
        await first
        await until_done()
        return page

    page = asyncio.run(click_twice())
    assert create.n_calls == 1
    assert not page.importing.button.disabled
    [made] = [one for one in client.datasets.list().data if one.name == "twice"]
    client.datasets.delete(made.id)


def test_a_question_is_acted_on_once_however_often_it_is_clicked():
    asked = []

    async def click_twice():
        go_on = asyncio.Event()

        async def act():
            asked.append(1)
            await go_on.wait()
            return True

        question = Confirmation("Delete it?", action="Delete", act=act, typed="desk")
        question.entry.value_input = "desk"
        first = asyncio.create_task(question.confirm())
        await next_turn()
        question.entry.value_input = "des"
        question.entry.value_input = "desk"
        assert question.button.disabled
        await asyncio.wait_for(question.confirm(), 10)
        go_on.set()
        await first
        return question

    question = asyncio.run(click_twice())
    assert asked == [1]
    assert not question.dialog.open
    assert not question.button.disabled


class Asked(Viewer):
    """Content of a question with a field, or with none, in it."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = pn.Column(*parts)

    def __panel__(self):
        return self.parts


@pytest.mark.parametrize(
    ("content", "typed", "begins_in_it"),
    [
        ([], "", False),
        ([], "desk", True),
        ([pmui.TextInput(label="Why")], "", True),
        ([pmui.TextInput(label="Why", visible=False)], "", False),
        ([Asked(pmui.TextInput(label="Why"))], "", True),
        ([Asked(pmui.Select(label="Base model"))], "", False),
    ],
)
def test_a_question_begins_in_its_field(content, typed, begins_in_it):
    question = Confirmation("Sure?", *content, action="Do it", act=lambda: None, typed=typed)
    assert bool(question.dialog.select(FirstField)) == begins_in_it
    assert list(question.dialog[-1]) == [question.button, question.cancel]


def sorted_by_name(page):
    page.list._table.sorters = [{"field": "name", "dir": "desc"}]
    return page.list


def test_archived_datasets_are_fetched_in_any_order(client, dataset):
    asked = []

    def iterate(**given):
        asked.append(given["archived"])
        return client.datasets.iterate(**given)

    page = opened(holding(client, iterate=iterate))
    listed = sorted_by_name(page)
    assert (listed.rows.height, asked) == (1, [False])
    named(page.__panel__(), "Archived ones")[0].value = True
    assert asked == [False, True]
    assert listed.rows.height == 0
    assert "No dataset is archived" in texts_of(page.__panel__())
    named(page.__panel__(), "Archived ones")[0].value = False
    assert listed.rows["name"].to_list() == ["desk"]


def test_a_sorted_list_that_could_not_be_had_is_tried_again(client, dataset):
    answers = iter([None, SteelyardError("Not now; try again."), None])

    def iterate(**given):
        if (error := next(answers)) is not None:
            raise error
        return client.datasets.iterate(**given)

    page = opened(holding(client, iterate=iterate))
    listed = sorted_by_name(page)
    schedule(page.load_list)
    assert listed.has_failed
    asyncio.run(listed.refresh())
    assert not listed.has_failed
    assert next(answers, "asked for all of them") == "asked for all of them"


def test_a_list_that_is_had_at_last_offers_its_datasets_by_name(client, dataset):
    answers = iter([SteelyardError("Not now; try again."), None])

    def iterate(**given):
        if (error := next(answers)) is not None:
            raise error
        return client.datasets.iterate(**given)

    page = opened(holding(client, iterate=iterate))
    asyncio.run(page.list.refresh())
    assert dataset.id in page.choose.options.values()


def test_a_list_that_another_overtook_is_not_shown(client, dataset):
    first = HeldCall(lambda: list(client.datasets.iterate(archived=False)))

    def iterate(archived):
        return [] if archived else first()

    async def switch():
        page = opened(holding(client, iterate=iterate))
        await first.until_called()
        named(page.__panel__(), "Archived ones")[0].value = True
        await page.load_list()
        first.go_on()
        await until_done()
        return page

    page = asyncio.run(switch())
    assert "No dataset is archived" in texts_of(page.__panel__())
    assert dataset.id not in page.choose.options.values()


def test_exports_are_named_for_version_and_side(client, dataset):
    from steelyard_workbench.parts.datasets.files import ExportBar

    bar = ExportBar(client, dataset.id, "a name/with marks", 1)
    bar.side.value = "evaluation"
    data = asyncio.run(bar.json_lines.get()).read()
    assert len(data.splitlines()) == dataset.split.evaluation
    assert bar.json_lines.button.filename == "a_name_with_marks-v1-evaluation.jsonl"
    parquet = bar.exports.downloads["parquet"]
    frame = pl.read_parquet(asyncio.run(parquet.get()))
    assert frame.height == dataset.split.evaluation
    bar._version = 9
    assert asyncio.run(parquet.get()) is None
    assert "not_found" in texts_of(parquet.problem)
