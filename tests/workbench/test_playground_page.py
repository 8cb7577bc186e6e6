"""The playground without a browser: its decisions, and answers that others have overtaken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
import panel_material_ui as pmui
from msgspec import UNSET
from msgspec.structs import replace

from steelyard.decisions.several import multi_label
from steelyard.decisions.wire import Novelty, SentenceEffect, ThoughtReport
from steelyard.errors import InvalidRequestError
from steelyard.models.judge_wire import Judge, SetupTask
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope
from steelyard_workbench.kit.views import empty
from steelyard_workbench.pages.playground import page as playground
from steelyard_workbench.pages.playground.answer import marked_context
from steelyard_workbench.pages.playground.page import PlaygroundPage, show_answer
from steelyard_workbench.pages.playground.reader_offer import ReaderOffer, is_guessed
from support.browser.shown_parts import buttons, named, texts

#: Seconds that a thread waits for what is sure to come.
SOON = 30


class Asked:
    """A client that answers with the context; the context ``slow`` waits until it may."""

    url = "http://here"

    def __init__(self) -> None:
        self.models = SimpleNamespace(choices=list)
        self.datasets = SimpleNamespace(list=lambda **_: SimpleNamespace(data=[]))
        self.began, self.go_on = threading.Event(), threading.Event()

    def decide(self, context: str, *_: Any, **__: Any) -> Any:
        self._wait(context)
        charge = SimpleNamespace(amount_usd="0")
        return SimpleNamespace(context=context, model="far", decisions={}, charge=charge)

    def lint(self, context: str, *_: Any) -> None:
        self._wait(context)
        raise InvalidRequestError(f"Warned of {context}.")

    def _wait(self, context: str) -> None:
        if context == "slow":
            self.began.set()
            self.go_on.wait(SOON)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> PlaygroundPage:
    monkeypatch.setattr(
        playground, "show_answer", lambda answer, **_: empty(f"Answer to {answer.context}.")
    )
    made = PlaygroundPage(Session(Asked(), page="playground"))
    made.open()
    return made


def test_sentences_are_marked_by_the_loss_without_them():
    text = "Paid <twice>. Thanks."
    effects = [
        SentenceEffect(text="Thanks.", start=14, end=21, change=0.001, top_without="billing"),
        SentenceEffect(text="Paid <twice>.", start=0, end=13, change=0.4, top_without="other"),
    ]
    shown = marked_context(text, "billing", effects).object
    assert (
        '0.14)">Paid &lt;twice&gt;.</mark><small> (+0.40, other without it)</small> Thanks.<'
        in shown
    )
    assert "sensitivity, not reasoning" in shown
    assert "one sentence" in marked_context("Paid", "billing", []).object


def test_why_is_asked_where_it_is_switched_on(page: PlaygroundPage, monkeypatch) -> None:
    asked: list[bool | None] = []

    def decide(*_: Any, **given: Any) -> Any:
        asked.append(given["explain"])
        return SimpleNamespace(context="it", model="far", decisions={})

    monkeypatch.setattr(page.client, "decide", decide)
    monkeypatch.setattr(PlaygroundPage, "_offer_row", lambda *_: empty("Kept."))
    for is_on in (False, True):
        page.why.value = is_on
        asyncio.run(page.ask())
        code = page.show_code(page.request()).texts
        assert ['"explain": true' in code["curl"], "explain=True" in code["Python"]] == [is_on] * 2
    assert asked == [None, True]


@pytest.mark.parametrize("who", [None, SimpleNamespace(accounts=[], account_id=None)])
def test_a_program_has_a_place_for_a_key_where_people_sign_in(page: PlaygroundPage, who) -> None:
    page.session.who = who
    code = page.show_code(page.request()).texts
    has_place = ["YOUR_API_KEY" in code[language] for language in ("curl", "Python")]
    assert has_place == [who is not None] * 2


def make_answer(decisions: dict[str, Any]) -> Any:
    return SimpleNamespace(
        warnings=UNSET,
        explanation=UNSET,
        novelty=UNSET,
        decisions=decisions,
        model="m",
        timing_ms={},
        fallback=None,
        usage=SimpleNamespace(input_tokens=3),
        charge=SimpleNamespace(amount_usd="0"),
    )


def make_result(yes: float) -> Any:
    probabilities = {"yes": yes, "no": 1 - yes}
    top = max(probabilities, key=probabilities.__getitem__)
    return SimpleNamespace(
        kind="binary",
        probabilities=probabilities,
        top=top,
        p_top=probabilities[top],
        action="act",
        unstated=UNSET,
        route=UNSET,
        doubt=UNSET,
    )


def test_a_context_unlike_the_training_rows_is_said_to_be() -> None:
    answer = make_answer({})
    for unlike, words in ((True, "Unlike any training row"), (False, "Like the training rows")):
        answer.novelty = Novelty(share=0.015, unlike=unlike)
        assert words in (shown := texts(show_answer(answer)))
        assert "1.5% of the training rows lie further out" in shown


def test_a_thought_stands_below_the_sentences_that_an_answer_depends_on() -> None:
    answer = make_answer({"paid": make_result(0.1), "due": make_result(0.9)})
    answer.explanation = {"paid": [], "due": []}
    answer.thoughts = {
        "paid": ThoughtReport(text="*15* EUR are open.", tokens=9, before={"yes": 0.55, "no": 0.45})
    }
    shown = texts(show_answer(answer, context="25 EUR came in."))
    assert "Its first answer was not sure (yes 0.55, no 0.45). Then it wrote: " in shown
    assert r"\*15\* EUR are open." in shown
    assert shown.count("Then it wrote") == 1


def test_several_labels_are_a_decision_each_and_one_group_of_the_answer(
    page: PlaygroundPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: dict[str, Any] = {}
    monkeypatch.setattr(
        playground, "show_answer", lambda _, **given: shown.update(given) or empty("Shown.")
    )
    monkeypatch.setattr(PlaygroundPage, "_offer_row", lambda *_: empty("Kept."))
    [kind], [name] = named(page.form_box, "Kind"), named(page.form_box, "Name")
    assert kind.options["several labels"] == "several"
    kind.value, name.value = "several", "topics"
    [labels] = named(page.form_box, "Labels, one a line; a description after a colon")
    labels.value = "late parcel: it has not come\nrefund\nrefund"
    [question] = [field for field in page.form_box.select(pmui.TextInput) if "{}" in field.label]
    question.value = "Is it about {}?"
    expected = multi_label(
        "topics", {"late parcel": "it has not come", "refund": None}, "Is it about {}?"
    )
    assert page.request()["decisions"] == expected
    asyncio.run(page.ask())
    [group] = shown["label_sets"]
    assert group.labels == {"topics_late_parcel": "late parcel", "topics_refund": "refund"}

    shares = {"topics_late_parcel": 0.9, "other": 0.7, "topics_refund": 0.2}
    answer = make_answer({id_: make_result(yes) for id_, yes in shares.items()})
    [chart, rest, _] = show_answer(answer, label_sets=[group])
    assert chart.object.title.text == "topics: late parcel"
    assert chart.object.x_range.end == 1
    assert "<bdi>yes</bdi> <small>70 of 100 sure" in rest.object
    assert "Acts on every answer</span>" in rest.object
    assert "The action is act. No threshold is set." in rest.object
    assert 'aria-label="probability of yes 0.700"' in rest.object
    together = texts(show_answer(answer, has_charts=False, label_sets=[group]))
    lines = "topics: late parcel\n\n- late parcel 0.900, action act\n- refund 0.200, action act\n"
    assert together.startswith(f"{lines}other: yes 0.700")

    labels.value = ""
    asyncio.run(page.check())
    assert "Write a label at least, one a line." in texts(page.warnings)


def test_a_question_that_is_missing_marks_its_field_and_is_not_sent(page: PlaygroundPage) -> None:
    [question] = named(page.form_box, "Question")
    question.value = " "
    asyncio.run(page.ask())
    assert texts(page.answer) == "**Write a question.**"
    assert question.error_state
    question.value = "Who?"
    asyncio.run(page.ask())
    assert "Answer to" in texts(page.answer)
    assert not question.error_state


@pytest.mark.parametrize(
    "policy", [{"policy": {"abstain_below": 0.8}}, {"abstain": {"min_probability": 0.8}}]
)
def test_an_answer_below_its_threshold_is_not_sure_enough_to_act(policy: dict[str, Any]) -> None:
    for action, words in (
        ("abstain", "Not sure enough to act</span>"),
        ("yes", "It acts from 0.8 on."),
    ):
        result = make_result(0.7)
        result.action = action
        [card, _] = show_answer(make_answer({"a<b": result}), decisions=[{"id": "a<b", **policy}])
        assert words in card.object
        assert 'style="left:80.0%"' in card.object
        assert "a&lt;b" in card.object


def test_outcomes_follow_the_kind_and_come_back(page: PlaygroundPage) -> None:
    [kind] = named(page.form_box, "Kind")

    def sent() -> Any:
        return page.request()["decisions"][0].get("outcomes")

    example = sent()
    assert list(example) == ["billing", "shipping", "technical", "other"]
    kind.value = "binary"
    assert sent() is None
    [meaning] = page.form_box.select(pmui.TextAreaInput)
    assert (meaning.value, "“yes: …”" in meaning.label) == ("", True)
    meaning.value = "yes: it asks for money"
    for again in ("ordinal", "single"):
        kind.value = again
        assert list(sent()) == list(example)
    assert sent() == example
    kind.value = "binary"
    assert sent() == {"yes": "it asks for money"}
    meaning.value = "billing: it is about money"
    asyncio.run(page.check())
    assert "billing is neither yes nor no." in texts(page.warnings)


def test_the_reading_of_a_question_stands_under_its_answer_and_is_edited(page, monkeypatch):
    monkeypatch.setattr(PlaygroundPage, "_offer_row", lambda *_: empty("Kept."))
    monkeypatch.setattr(
        playground, "show_answer", lambda _, after, **__: pn.Column(*after.values())
    )
    asyncio.run(page.ask())
    assert "Read as" not in texts(page.answer)
    [kind], [question] = named(page.form_box, "Kind"), named(page.form_box, "Question")
    kind.value, question.value = "binary", "Is the customer satisfied?"
    asyncio.run(page.ask())
    assert "Read as: The customer is satisfied." in texts(page.answer)
    [yes], [edit], [ask] = (
        named(page.answer, name) for name in ("Yes states", "Edit", "Ask again")
    )
    assert (yes.value, yes.visible) == ("The customer is satisfied.", True)
    edit.clicks += 1
    yes.value = "The customer praises us."
    ask.clicks += 1
    [decision] = page.request()["decisions"]
    assert (decision["statement"], "opposite" in decision) == ("The customer praises us.", False)
    assert "Read as: The customer praises us." in texts(page.answer)
    assert "Read as: The customer praises us." in texts(page.form_box)
    assert reloaded(page).request()["decisions"] == [decision]
    kind.value = "single"
    assert "statement" not in page.request()["decisions"][0]


def reloaded(page: PlaygroundPage, **chosen: Any) -> PlaygroundPage:
    """Return the page as another session opens it in the same tab."""
    again = PlaygroundPage(Session(page.client, page="playground", **chosen))
    again.open()
    again.memory.in_tab.text = page.memory.text
    return again


def test_typed_texts_survive_a_reload_and_the_way_back(page: PlaygroundPage) -> None:
    [kind], [question] = named(page.form_box, "Kind"), named(page.form_box, "Question")
    assert page.memory.text == ""
    page.context.value_input = "Half a sent"  # with no key that ends it
    kind.value, question.value = "binary", "Is it urgent?"
    buttons(page.__panel__())["Add a question"].clicks += 1
    page.why.value = True
    expected = [form.fields for form in page.forms]
    again = reloaded(page)
    assert [form.fields for form in again.forms] == expected
    assert (again.context.value, again.why.value) == ("Half a sent", True)
    [kind, _] = named(again.form_box, "Kind")
    kind.value = "single"  # the outcomes of the example are there too
    outcomes = again.request()["decisions"][0]["outcomes"]
    assert list(outcomes) == ["billing", "shipping", "technical", "other"]

    page.close()
    page.open()  # by the menu
    assert [form.fields for form in page.forms] == expected


def overtake(page: PlaygroundPage, do: str, meanwhile: Callable[[], None]) -> None:
    """Do something slow, something else meanwhile, and let the slow one end after it."""

    async def both() -> None:
        page.context.value = "slow"
        slow = asyncio.create_task(getattr(page, do)())
        assert await asyncio.to_thread(page.client.began.wait, SOON)
        meanwhile()
        page.context.value = "quick"
        await getattr(page, do)()
        page.client.go_on.set()
        await slow

    asyncio.run(both())


def test_a_decision_is_removed_from_the_request_and_from_the_page(page: PlaygroundPage) -> None:
    buttons(page.__panel__())["Add a question"].clicks += 1
    buttons(page.__panel__())["Add a question"].clicks += 1
    named(page.__panel__(), "Remove")[1].clicks += 1

    def names() -> list[str]:
        return [field.value for field in named(page.form_box, "Name")]

    assert names() == ["team", "decision_3"]
    assert [one["id"] for one in page.request()["decisions"]] == names()
    buttons(page.__panel__())["Add a question"].clicks += 1
    assert len(set(names())) == 3
    for _ in range(3):  # the last one stays
        named(page.__panel__(), "Remove")[0].clicks += 1
    assert len(names()) == 1


def test_an_answer_that_a_newer_question_overtook_is_dropped(page: PlaygroundPage) -> None:
    overtake(page, "ask", lambda: None)
    assert texts(page.answer).startswith("Answer to quick.")
    assert "slow" not in texts(page.answer)


def test_warnings_of_a_request_that_was_changed_since_are_dropped(page: PlaygroundPage) -> None:
    overtake(page, "check", lambda: None)
    said = texts(page.warnings)
    assert "Warned of quick." in said
    assert "Warned of slow." not in said


@pytest.mark.parametrize(("do", "place"), [("ask", "answer"), ("check", "warnings")])
def test_an_answer_from_before_the_page_was_left_does_not_come(
    page: PlaygroundPage, do: str, place: str
) -> None:
    async def leave_and_come_back() -> None:
        page.context.value = "slow"
        slow = asyncio.create_task(getattr(page, do)())
        assert await asyncio.to_thread(page.client.began.wait, SOON)
        page.close()
        page.open()
        page.client.go_on.set()
        await slow

    asyncio.run(leave_and_come_back())
    assert "slow" not in texts(getattr(page, place))


class Readers:
    """The judges of a server whose reader is downloaded step by step."""

    def __init__(self) -> None:
        self.reader = Judge(
            name="reader",
            kind="reader",
            repository="a/b",
            licence="MIT",
            bytes=96_000_000,
            context_tokens=512,
            measured=None,
            downloaded=False,
            connected=False,
            calibrated=False,
            routes=[],
        )
        self.stopped: list[str] = []

    def list(self) -> Any:
        return SimpleNamespace(data=[self.reader])

    def download(self, _: str) -> Judge:
        self.become(
            task=SetupTask(kind="download", status="running", done=5_000_000, total=96_000_000)
        )
        return self.reader

    def stop(self, name: str) -> Judge:
        self.stopped.append(name)
        return self.reader

    def become(self, **fields: Any) -> None:
        self.reader = replace(self.reader, **fields)


def offered(*, is_operator: bool = True) -> tuple[ReaderOffer, Readers, list[str]]:
    readers, both = Readers(), []
    session = Session(SimpleNamespace(judges=readers), page="playground")
    session.who = SimpleNamespace(user=SimpleNamespace(is_operator=is_operator))

    async def ask_both(name: str) -> None:
        both.append(name)

    offer = ReaderOffer(session, Scope(), ask_both)
    asyncio.run(offer.look())
    return offer, readers, both


def test_a_reader_is_got_stopped_gone_on_with_and_asked_beside_the_shipped_model():
    offer, readers, both = offered()
    assert "Do not rely on this yes or no" in texts(offer.__panel__())
    [get] = named(offer.__panel__(), "Get the reader (96 MB)")
    get.clicks += 1
    assert "5 MB of 96 MB" in texts(offer.__panel__())
    assert offer.is_waiting
    [stop] = named(offer.__panel__(), "Stop")
    stop.clicks += 1
    assert readers.stopped == ["reader"]
    readers.become(
        task=SetupTask(kind="download", status="failed", error="Stopped. Start it again.")
    )
    asyncio.run(offer.look())
    assert "Stopped. Start it again." in texts(offer.__panel__())
    [again] = named(offer.__panel__(), "Go on with the download")
    again.clicks += 1
    assert (offer.is_waiting, both) == (True, [])
    readers.become(downloaded=True, connected=True, task=None)
    asyncio.run(offer.look())
    assert both == ["reader"]
    asyncio.run(offer.look())
    [ask] = named(offer.__panel__(), "Ask reader too")
    ask.clicks += 1
    assert both == ["reader", "reader"]


def test_only_operators_are_offered_a_reader():
    offer, _, _ = offered(is_operator=False)
    assert "Do not rely on this yes or no" in texts(offer.__panel__())
    assert buttons(offer.__panel__()) == {}


def test_the_reader_that_ships_is_no_reader_that_is_got():
    offer, readers, _ = offered()
    ships = replace(readers.reader, name="steelyard-reader-1", repository=None, connected=True)
    readers.list = lambda: SimpleNamespace(data=[ships, readers.reader])
    asyncio.run(offer.look())
    assert list(buttons(offer.__panel__())) == ["Get the reader (96 MB)"]


def test_only_a_yes_no_of_a_model_that_ships_is_doubted():
    def answer(model: str, kind: str, route: Any = UNSET) -> Any:
        result = SimpleNamespace(kind=kind, route=route)
        return SimpleNamespace(model=model, decisions={"d": result})

    base = frozenset({"base"})
    assert is_guessed(answer("base", "binary"), base)
    assert not is_guessed(answer("base", "single"), base)
    assert not is_guessed(answer("reader", "binary"), base)
    for decided_by, is_doubted in (("base", True), ("steelyard-reader-1", True), ("judge", False)):
        route = [SimpleNamespace(model="base"), SimpleNamespace(model=decided_by)]
        assert is_guessed(answer("auto", "binary", route), base) is is_doubted
