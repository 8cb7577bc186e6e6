"""Pages that were left: later results are reported, and do not change the next page."""

from __future__ import annotations

import asyncio
import gc
import weakref
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn

from steelyard.errors import InvalidNameError
from steelyard_workbench.frame.app import App
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.families.page import FamiliesPage
from steelyard_workbench.pages.review.page import ReviewPage
from support.browser.shown_parts import buttons, named, texts, texts_of
from support.families.told_families import make_client, told_job
from support.review.drafts_in_memory import FakeClient, make_row
from support.servers.held_calls import HeldCall, until_done


class Lines(Page):
    """A page of one part."""

    slug, title = "lines", "Lines"

    def build(self):
        return [self.part(Loaded("The lines", self.client, self.show))]

    def show(self, text):
        self.session.query = text
        return pn.pane.Str(text)


def test_results_for_a_page_that_was_left_are_not_shown():
    fetch = HeldCall(lambda: "too late")

    async def leave():
        page = Lines(Session(fetch))
        page.open()
        await fetch.until_called()
        page.close()
        fetch.go_on()
        await until_done()
        return page

    page = asyncio.run(leave())
    assert page.session.query == ""
    assert "too late" not in texts_of(page.__panel__())
    page.open()
    assert "too late" in texts_of(page.__panel__())


def test_each_visit_is_another():
    page = Lines(Session(lambda: "now"))
    visits = []
    for step in (page.open, page.close, page.open, page.open):
        step()
        visits.append(page.visit)
    assert len(set(visits)) == 4


def test_nothing_stays_selected_of_a_page_that_was_left():
    page = Lines(Session(lambda: "now"))
    page.open()
    page.session.selected = [4]
    page.close()
    assert page.session.selected == []


def test_a_page_is_shown_again_without_the_parts_of_the_visit_before():
    app = App(make_client())
    app.session.page = "families"
    before = app.page.__panel__()[0]
    app.session.page = "jobs"
    parts = []
    app.place.param.watch(lambda _: parts.append(app.page.__panel__()[0]), "objects")
    app.session.page = "families"
    assert parts
    assert before not in parts


@pytest.mark.parametrize(
    ("slug", "chosen"),
    [
        ("evaluations", {"evaluation": "eval_1"}),
        ("compare", {"after": "eval_1"}),
        ("families", {"family": "router"}),
        ("jobs", {"job": "ftj_3"}),
    ],
)
def test_a_page_left_by_a_larger_change_fetches_nothing(monkeypatch, slug, chosen):
    client = make_client()
    app = App(client)
    app.session.page = slug
    left = app.page
    n_asked = [len(part.asked) for part in vars(client).values()]
    visit, begin, n_begun = left.visit, left.begin_visit, []
    monkeypatch.setattr(left, "begin_visit", lambda: n_begun.append(begin()))
    app.session.param.update(page="nowhere", **chosen)
    assert [len(part.asked) for part in vars(client).values()] == n_asked
    assert visit.has_ended
    assert len(n_begun) == 1


@pytest.mark.parametrize("is_left", [True, False])
def test_a_family_that_started_is_opened_where_it_was_asked_for(monkeypatch, is_left):
    said = []
    corner = SimpleNamespace(success=lambda text, _: said.append(text))
    monkeypatch.setattr(type(pn.state), "notifications", property(lambda _: corner))
    create = HeldCall(lambda **_: told_job(id="ftj_9", family="ant"))

    async def start():
        page = FamiliesPage(Session(make_client(families_create=create), page="families"))
        page.open()
        await until_done()
        page.form.family.value = "ant"
        await page.form.estimate()
        starting = asyncio.create_task(page.form.start())
        await create.until_called()
        if is_left:
            page.close()
            page.session.page = "jobs"
        create.go_on()
        await starting
        await until_done()
        return page.session

    session = asyncio.run(start())
    assert (session.family, session.job) == ("" if is_left else "ant", "")
    assert said == (
        ["Started: the model line ant. It is on the page Model lines."] if is_left else []
    )


@pytest.mark.parametrize("meanwhile", ["stays", "leaves", "estimates another"])
def test_a_refused_start_is_reported_where_the_person_is(monkeypatch, meanwhile):
    said = []
    corner = SimpleNamespace(error=lambda text, _: said.append(text))
    monkeypatch.setattr(type(pn.state), "notifications", property(lambda _: corner))

    def refuse(**_):
        raise InvalidNameError("There is an ant already.")

    create = HeldCall(refuse)

    async def start():
        page = FamiliesPage(Session(make_client(families_create=create), page="families"))
        page.open()
        await until_done()
        form = page.form
        form.family.value = "ant"
        await form.estimate()
        starting = asyncio.create_task(form.start())
        await create.until_called()
        if meanwhile == "leaves":
            page.close()
            page.session.page = "jobs"
        elif meanwhile == "estimates another":
            form.family.value = "bee"
            await form.estimate()
        create.go_on()
        await starting
        return form

    form = asyncio.run(start())
    refusal = "There is an ant already."
    told = [f"Not started: the model line ant. {refusal}"]
    assert said == ([] if meanwhile == "stays" else told)
    is_another = meanwhile == "estimates another"
    assert (refusal in texts_of(form.place)) is not is_another
    assert bool(named(form.place, "Start for 0.25 USD")) is is_another


def test_a_review_that_began_once_its_page_was_left_is_not_opened(monkeypatch):
    said = []
    corner = SimpleNamespace(success=lambda text, _: said.append(text))
    monkeypatch.setattr(type(pn.state), "notifications", property(lambda _: corner))
    client = FakeClient([make_row(0)])
    create = client.drafts.create = HeldCall(client.drafts.create)

    async def start():
        page = ReviewPage(Session(client, page="review", dataset="ds_1"))
        page.open()
        await until_done()
        named(page.__panel__(), "Start a review")[0].clicks += 1
        await create.until_called()
        page.close()
        page.session.param.update(page="datasets", dataset="ds_2", query="words")
        create.go_on()
        await until_done()
        return page

    page = asyncio.run(start())
    session = page.session
    assert (page.desk, session.dataset, session.query, session.draft) == (None, "ds_2", "words", "")
    (text,) = said
    assert "in the list of reviews" in text


def test_two_clicks_begin_one_review():
    client = FakeClient([make_row(0)])
    create = client.drafts.create = HeldCall(client.drafts.create)

    async def start():
        page = ReviewPage(Session(client, page="review", dataset="ds_1"))
        page.open()
        await until_done()
        (button,) = named(page.__panel__(), "Start a review")
        button.clicks += 1
        button.clicks += 1
        await create.until_called()
        create.go_on()
        await until_done()
        return page

    assert asyncio.run(start()).desk is not None
    assert create.n_calls == 1


@pytest.mark.parametrize("opened", ["router", "other"])
def test_a_family_that_is_deleted_closes_no_other(opened):
    delete = HeldCall(lambda *_, **__: None)

    async def remove():
        client = make_client(families_delete=delete)
        page = FamiliesPage(Session(client, page="families", family="router"))
        page.open()
        await until_done()
        deleting = asyncio.create_task(page.one._delete(page.one.family))
        await delete.until_called()
        page.session.family = opened
        delete.go_on()
        await deleting
        return page.session

    assert asyncio.run(remove()).family == ("" if opened == "router" else "other")


def test_the_frame_ignores_other_work_of_the_process():
    app = App(make_client())
    app.session.page = "jobs"
    shell = app.view()
    changes = []
    shell.param.watch(changes.append, "busy")
    pn.state._add_busy_event("of another browser")
    try:
        assert pn.state.busy
        assert not shell.busy
    finally:
        pn.state._remove_busy_event("of another browser")
    assert changes == []
    # Nor does that keep it once nobody has it any more.
    kept = weakref.ref(app)
    del app, shell
    changes.clear()
    gc.collect()
    assert kept() is None


def test_a_page_that_cannot_be_drawn_says_so_and_is_tried_again(monkeypatch):
    def fail(*_):
        raise RuntimeError("no chart")

    app = App(make_client())
    frame = app.view()
    with monkeypatch.context() as patch:
        patch.setattr("steelyard_workbench.frame.app.make_page", fail)
        app.session.page = "jobs"
    assert app.page is None
    assert "Could not load this page." in texts(frame)
    buttons(frame)["Try again"].clicks += 1
    assert app.page is not None
