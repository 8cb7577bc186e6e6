"""Live without a browser: figures, the feed, feedback, the rows of a mark, and every state."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
from msgspec import structs

import steelyard
from steelyard.client import Client
from steelyard.client.failures import ServerUnreachableError
from steelyard.client.tables import read_table
from steelyard.errors import KeyScopeError, NotFoundError
from steelyard.shadows.comparing import Pair, Top, compare
from steelyard.shadows.wire import Shadow, ShadowReport
from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.live import feed as live_feed
from steelyard_workbench.pages.live.feed import Feed
from steelyard_workbench.pages.live.figures import show_details
from steelyard_workbench.pages.live.page import LivePage, fetch_shadows, show_shadow
from steelyard_workbench.parts.live.view import AnswerFilter, View, from_text, to_text
from support.browser.shown_parts import named, texts_of
from support.servers.held_calls import HeldCall, until_done

#: Seconds that a thread waits for what is sure to come.
SOON = 30
REFUND = {"id": "refund", "kind": "binary", "question": "Is money asked back?"}
UNSURE = {**REFUND, "id": "unsure", "policy": {"abstain_below": 1.0}}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a server with five stored answers: two abstained once, and two have feedback."""
    with steelyard.embed(engine="hashing") as server:
        for n in range(5):
            asked = [REFUND, UNSURE] if n < 2 else [REFUND]
            answer = server.client.decide(f"Ticket {n}: charged twice.", asked)
            if n < 2:
                top = answer.decisions["refund"].top
                other = "no" if top == "yes" else "yes"
                server.client.feedback(answer.id, {"refund": top if n else other})
        yield server.client


@pytest.fixture
def bare() -> Iterator[Client]:
    """A client of a server that has stored nothing."""
    with steelyard.embed(engine="hashing") as server:
        yield server.client


def opened(client: Any, **session: Any) -> LivePage:
    page = LivePage(Session(client, page="live", **session))
    page.open()
    return page


def texts(view: Any) -> str:
    """Every text that is shown."""
    whole = view.__panel__() if hasattr(view, "__panel__") else view
    names = ("object", "label", "texts")
    found = whole.select(lambda one: any(hasattr(one, name) for name in names))
    return " ".join(
        next((str(text) for name in names if (text := getattr(one, name, ""))), "") for one in found
    )


def test_every_figure_has_its_n_and_interval(client: Client) -> None:
    page = opened(client)
    said = texts(page.figures)
    for part in ("29 %", "4 to 71, of 7", "50 %", "1 to 99, of 2"):  # two of seven abstained
        assert part in said
    page.show_more()
    said = texts(page.charts)
    assert "2 of 30 right answers known" in said
    assert "since it started" in said


def test_a_curve_of_how_sure_and_how_right_needs_thirty_outcomes(client: Client) -> None:
    summary = client.decision_summary()
    said = [
        texts(show_details(structs.replace(summary, accuracy=seen), View(), print))
        for n in (29, 30)
        if (seen := structs.replace(summary.accuracy, n=n))
    ]
    assert ["not a random sample" in text for text in said] == [False, True]


def test_a_slider_shows_how_many_which_and_how_many_wrong_would_have_acted(client: Client) -> None:
    page = opened(client)
    acting = page.acting
    rows = client.decision_summary().top_probabilities
    acting.slider.value = 0
    assert (
        "<b>7</b> of 7 acted on, <b>0</b> to a person; of 2 known, <b>1</b> (50 %) was wrong"
        in (acting.text.object)
    )
    acting.slider.value = round(rows[0].high * 100)
    left = sum(row.n for row in rows if row.high <= rows[0].high)
    assert f"<b>{left}</b> to a person" in acting.text.object
    acting.left.param.trigger("clicks")
    assert sum(len(entry.decisions) for entry in page.feed.entries) >= left > 0
    acting.slider.value = 100
    assert "of none of them" in acting.text.object
    acting.unit.value = acting.unit.options[1]
    assert "<b>0</b> of 7 acted on" in acting.text.object  # a share of all of them


def test_the_stream_has_text_answer_and_right_or_wrong(client: Client) -> None:
    page = opened(client)
    rows = {row["text"]: row for row in page.feed.table.rows.iter_rows(named=True)}
    assert "to a person" in rows["Ticket 0: charged twice."]["answer"]
    right = [rows[f"Ticket {n}: charged twice."]["right"] for n in range(3)]
    assert ["was " in right[0], ">right<" in right[1], ">say<" in right[2]] == [True] * 3
    page.only.value = "the wrong ones"
    assert len(page.feed.entries) == 1


def test_a_family_stands_beside_its_shadow() -> None:
    groups = [
        SimpleNamespace(model=model, version=version)
        for model, version in (("router", "router@2"), ("gone", "gone@1"), ("hashing", None))
    ]
    asked = []

    def compare_shadow(name: str, **_: float) -> ShadowReport:
        asked.append(name)
        if name == "gone":
            raise NotFoundError("It is deleted.")
        return ShadowReport(
            shadow=Shadow(family="router", model="far", share=0.1, since=1.0),
            since=1.0,
            until=2.0,
            answers=5,
            decisions=compare([Pair({"team": Top("a")}, {"team": Top("b")}, {"team": "b"})] * 5),
        )

    families = SimpleNamespace(compare_shadow=compare_shadow)
    summary = SimpleNamespace(groups=groups, since=1.0, until=2.0)
    reports = fetch_shadows(SimpleNamespace(families=families), summary)
    assert asked == ["gone", "router"]
    said = texts(pn.Column(*map(show_shadow, reports)))
    assert "router and its shadow far" in said
    assert "model line 0, shadow 5" in said
    assert "1.000 (0.478 to 1.000, n = 5)" in said
    untouched = structs.replace(reports[0], decisions={})
    assert "10 %" in texts(pn.Column(show_shadow(untouched)))


def test_the_feed_has_the_newest_first_and_opens_an_answer(client: Client) -> None:
    page = opened(client)
    assert len(page.feed.entries) == 5
    assert page.feed.entries[0].created_at >= page.feed.entries[-1].created_at
    assert page.on_key("next", 1)
    assert page.opened is not None
    assert page.session.decision == page.feed.entries[0].id
    assert "Ticket 4" in texts(page.opened)
    assert page.on_key("close", 1)
    assert page.opened is None
    assert page.session.decision == ""


def test_the_decisions_of_a_view_are_handed_over(client: Client) -> None:
    page = opened(client)
    page.show_rows(AnswerFilter(name="with feedback", has_feedback=True))
    made = asyncio.run(page.feed.exports.downloads["csv"].get())
    table = read_table(made.getvalue())
    assert len(table.rows) == 2
    assert set(table.column("decision_id")) == {"refund"}


def test_a_figure_a_bar_and_a_point_open_the_rows_behind_them(client: Client) -> None:
    page = opened(client)
    page.show_rows(AnswerFilter(name="abstained", abstained=True))
    assert len(page.feed.entries) == 2
    page.show_rows(AnswerFilter(name="wrong, by the feedback", has_feedback=True, wrong=True))
    assert len(page.feed.entries) == 1
    assert "wrong, by the feedback" in texts(page)
    page.show_rows(AnswerFilter())
    assert len(page.feed.entries) == 5


def test_rows_that_a_filter_leaves_out_can_be_shown_again(client: Client) -> None:
    page = opened(client)
    page.show_rows(AnswerFilter(name="of another time", since=1.0, until=2.0))
    assert page.feed.entries == []
    assert "is of another time" in texts(page.feed)
    assert "Show all decisions" in texts(page.feed)


@pytest.mark.slow
def test_feedback_is_recorded_and_changes_the_figures(bare: Client) -> None:
    answer = bare.decide("Charged twice.", [REFUND])
    page = opened(bare, decision=answer.id)
    assert page.opened is not None
    asyncio.run(page.opened.save())
    assert "Choose an answer" in page.opened.said.text
    page.opened.fields["refund"].value = answer.decisions["refund"].top
    asyncio.run(page.opened.save())
    assert bare.stored_decision(answer.id).feedback == {"refund": answer.decisions["refund"].top}
    asyncio.run(page.sum_up())
    assert page.figures.data is not None
    assert page.figures.data[0].accuracy is not None
    assert page.figures.data[0].accuracy.value == 1.0
    # Of those that chance drew, the next one opens.
    bare.decide("Charged once.", [REFUND])
    bare.decide("Not charged.", [REFUND])
    page.show_rows(AnswerFilter(has_feedback=False, order="chance"))
    first, second = (entry.id for entry in page.feed.entries)
    page.show(first)
    page.opened.fields["refund"].value = "no"
    asyncio.run(page.opened.save())
    assert bare.stored_decision(first).feedback == {"refund": "no"}
    assert page.session.decision == second
    assert "the next" in page.opened.said.text


@pytest.mark.slow
def test_feedback_given_before_is_not_sent_again(bare: Client) -> None:
    urgent = {"id": "urgent", "kind": "binary", "question": "Today?"}
    answer = bare.decide("Charged twice.", [REFUND, urgent])
    bare.feedback(answer.id, {"refund": "yes"})
    page = opened(bare, decision=answer.id)
    assert page.opened is not None
    assert page.opened.fields["refund"].value == "yes"
    bare.feedback(answer.id, {"refund": "no"})  # the application learned more meanwhile
    page.opened.fields["urgent"].value = "yes"
    asyncio.run(page.opened.save())
    assert bare.stored_decision(answer.id).feedback == {"refund": "no", "urgent": "yes"}
    assert page.opened.fields["refund"].value == "no"
    asyncio.run(page.opened.save())
    assert "not given yet" in page.opened.said.text


def test_new_answers_wait_while_rows_are_selected(bare: Client) -> None:
    bare.decide("Charged twice.", [REFUND])
    page = opened(bare)
    page.feed.table.select([page.feed.entries[0].id])
    bare.decide("Charged again.", [REFUND])
    asyncio.run(page.look())
    assert len(page.feed.entries) == 1
    assert (page.feed.new.visible, page.feed.new.label) == (True, "Show 1 new")
    asyncio.run(page.feed.show_new())
    assert len(page.feed.entries) == 2
    bare.decide("Charged a third time.", [REFUND])
    asyncio.run(page.look())
    assert len(page.feed.entries) == 3


def test_a_hidden_tab_asks_for_nothing(bare: Client) -> None:
    page = opened(bare)
    bare.decide("Charged twice.", [REFUND])
    page.visibility.is_hidden = True
    asyncio.run(page.look())
    assert page.feed.entries == []
    page.visibility.is_hidden = False
    asyncio.run(page.look())
    assert len(page.feed.entries) == 1


def test_selected_rows_are_sent_to_review(bare: Client) -> None:
    answers = [bare.decide(f"Ticket {n}: charged twice.", [REFUND]) for n in range(4)]
    for answer in answers:
        bare.feedback(answer.id, {"refund": "yes"})
    page = opened(bare)
    page.feed.table.select([answer.id for answer in answers[:2]])
    assert "2 selected" in page.sending.what.object
    asyncio.run(page.sending.do())
    made = bare.datasets.get(page.session.dataset)
    assert (page.session.page, made.rows) == ("review", 2)
    [draft] = bare.drafts.list(dataset_id=made.id).data
    assert page.session.draft == draft.id


def test_nothing_to_send_says_why(bare: Client) -> None:
    bare.decide("Charged twice.", [REFUND])
    page = opened(bare)
    asyncio.run(page.sending.do())
    assert "No stored decision makes a row" in texts(page.sending)


def test_an_empty_window_offers_a_longer_one_and_at_last_a_command(bare: Client) -> None:
    page = opened(bare)
    assert "Look at the last 30 days" in texts(page.figures)
    page.window.value = 2_592_000
    assert "No answer is stored" in texts(page.figures)
    assert "/v1/decide" in texts(page.figures)


class Failing:
    """A client whose log fails; the rest goes to another."""

    def __init__(self, client: Client, error: Exception) -> None:
        self._client, self._error = client, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def decision_log(self, **_: Any) -> Any:
        raise self._error

    def feedback(self, *_: Any, **__: Any) -> Any:
        raise self._error


def test_a_log_that_fails_leaves_the_figures(client: Client) -> None:
    page = opened(Failing(client, ServerUnreachableError("No server.")))
    assert page.figures.state == "shown"
    assert "Try again" in texts(page.feed)


def test_a_key_without_the_scope_is_refused_once(client: Client) -> None:
    given = client.decision_log(limit=1).data[0].id
    page = opened(Failing(client, KeyScopeError("This key may only decide.")), decision=given)
    assert "Not allowed" in texts(page.feed)
    assert "Try again" not in texts(page.feed)
    assert page.opened is not None
    page.opened.fields["refund"].value = "yes"
    asyncio.run(page.opened.save())
    assert page.opened.send.disabled


class Held:
    """A client of which one call, once, comes only when it may; the rest goes to another."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name
        self.is_held = False
        self.began, self.go_on = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name != self._name or not self.is_held:
            return found
        self.is_held = False

        def call(*given: Any, **named: Any) -> Any:
            self.began.set()
            self.go_on.wait(SOON)
            return found(*given, **named)

        return call

    async def until_held(self) -> None:
        """Wait until the call is under way."""
        assert await asyncio.to_thread(self.began.wait, SOON)


def feed_of(client: Any) -> Feed:
    return Feed(client, on_open=print, on_change=lambda: None, nothing=pn.Column)


def test_a_look_that_overtakes_the_first_at_a_view_shows_it(client: Client) -> None:
    held = Held(client, "decision_log")
    feed = feed_of(held)

    async def look_meanwhile() -> None:
        await feed.show(View())
        held.is_held = True
        shown = asyncio.create_task(feed.show(View(window_s=21_600)))
        await held.until_held()
        await feed.look()
        held.go_on.set()
        await shown

    asyncio.run(look_meanwhile())
    assert len(feed.entries) == 5
    assert feed.shown.visible
    assert not feed.state.objects


@pytest.mark.parametrize("is_another_view", [False, True])
def test_older_decisions_come_though_a_look_found_nothing_new_but_not_under_another_view(
    client: Client, monkeypatch: pytest.MonkeyPatch, is_another_view: bool
) -> None:
    monkeypatch.setattr(live_feed, "_PAGE", 2)
    held = Held(client, "decision_log")
    feed = feed_of(held)

    async def load_meanwhile() -> None:
        await feed.show(View())
        held.is_held = True
        older = asyncio.create_task(feed.load_older())
        await held.until_held()
        await (feed.show(View(window_s=21_600)) if is_another_view else feed.look())
        held.go_on.set()
        await older

    asyncio.run(load_meanwhile())
    assert len(feed.entries) == (2 if is_another_view else 4)


@pytest.fixture
def fed(bare: Client) -> Client:
    """A client of a server whose answers have feedback."""
    for n in range(4):
        answer = bare.decide(f"Ticket {n}: charged twice.", [REFUND])
        bare.feedback(answer.id, {"refund": "yes"})
    return bare


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The messages in a corner of the window."""
    said: list[str] = []
    corner = SimpleNamespace(success=lambda text, _: said.append(text))
    monkeypatch.setattr(type(pn.state), "notifications", corner)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [False, True])
def test_a_user_who_left_while_rows_were_sent_stays_and_gets_a_link(
    fed: Client, told: list[str], comes_back: bool
) -> None:
    sent = HeldCall(fed.datasets.from_feedback)

    async def leave_meanwhile() -> LivePage:
        page = opened(fed)
        await until_done()
        page.sending.client = SimpleNamespace(datasets=SimpleNamespace(from_feedback=sent))
        sending = asyncio.create_task(page.sending.do())
        await sent.until_called()
        page.close()
        page.session.open("review", dataset="ds_mine", version=1, draft="dft_mine")
        if comes_back:
            page.session.page = "live"
            page.open()
        sent.go_on()
        await sending
        await until_done()
        return page

    session = asyncio.run(leave_meanwhile()).session
    assert session.page == ("live" if comes_back else "review")
    assert (session.dataset, session.draft) == ("ds_mine", "dft_mine")
    (made,) = fed.datasets.list().data
    assert made.id in told[0]


def test_rows_are_sent_once_however_often_it_is_clicked(fed: Client) -> None:
    sent = HeldCall(fed.datasets.from_feedback)

    async def click_twice() -> LivePage:
        page = opened(fed)
        await until_done()
        page.sending.client = SimpleNamespace(datasets=SimpleNamespace(from_feedback=sent))
        first = asyncio.create_task(page.sending.do())
        await sent.until_called()
        page.sending.describe()  # as a row that is selected does
        assert page.sending.send.disabled
        second = asyncio.create_task(page.sending.do())
        sent.go_on()
        await asyncio.gather(first, second)
        return page

    page = asyncio.run(click_twice())
    assert sent.n_calls == 1
    assert not page.sending.send.disabled


def test_a_table_that_is_open_stays_so_when_the_figures_are_drawn_anew(client: Client) -> None:
    page = opened(client)
    page.show_more()

    def are_open() -> list[bool]:
        bars, groups = page.details.select(MarkTable)
        groups.press(0)  # a line of the figures by model opens its decisions
        return [bars.visible]

    assert are_open() == [False]
    assert "by hashing" in page.view.rows.name
    (button,) = named(page.details, "Show the bars as a table")
    button.clicks += 1
    asyncio.run(page.sum_up())
    assert are_open() == [True]
    (button,) = named(page.details, "Show the bars as a table")
    button.clicks += 1
    asyncio.run(page.sum_up())
    assert are_open() == [False]


def test_a_context_is_shown_as_it_is_and_metadata_beside_the_facts(bare: Client) -> None:
    answer = bare.decide({"text": "Überweisung"}, [REFUND], metadata={"Id": "order 118"})
    page = opened(bare, decision=answer.id)
    assert page.opened is not None
    page.opened.details.open()
    said = texts_of(page.opened.__panel__())
    assert "Überweisung" in said
    assert answer.id in said
    assert "order 118" in said


def test_the_view_is_in_the_address_and_leaves_it(client: Client) -> None:
    view = View(
        window_s=900, decision="refund", rows=AnswerFilter(name="abstained", abstained=True)
    )
    assert from_text(to_text(view)) == view
    assert to_text(View()) == ""
    for text in ("", "{", '{"live": {"window_s": 7}}', '{"filter": 1}'):
        assert from_text(text) == View()
    page = opened(client, query=to_text(view))
    assert (page.window.value, page.decision.value) == (900, "refund")
    page.close()
    assert page.session.query == ""


def test_fields_of_another_page_in_the_address_change_nothing(client: Client) -> None:
    page = opened(client)
    page.window.value = 900
    page.close()
    page.session.query = '{"queue": "all"}'
    page.open()
    assert page.window.value == 900
    assert from_text(page.session.query) == View(window_s=900)
