"""Another model, or another provider's answers, on the page of a named decision, and what settles it."""

from __future__ import annotations

import asyncio
from html import unescape

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import steelyard
from steelyard_workbench.frame.navigation import make_page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.decisions.comparing import SETTLE
from support.browser.shown_parts import choose, named, press, texts

RECORDED = "Production and recorded answers"
TEAM = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}


def shown(page):
    return unescape(texts(page.__panel__()))


def opened(server):
    page = make_page("decisions", Session(server.client, page="decisions", named="desk"))
    page.open()
    return page


def test_a_price_is_shown_then_both_are_asked_and_a_review_settles_it():
    with steelyard.embed(engine="hashing") as server:
        client, decisions = server.client, server.client.named_decisions
        decisions.create("desk", [TEAM])
        page = opened(server)
        choose(page.__panel__(), "Try another model")
        assert page.switch.model.value == "hashing"
        press(page, "Say what it costs")
        assert "No texts of that time are stored; take more days." in shown(page)
        for number in range(12):
            client.decision("desk").decide(f"Ticket {number}")
        press(page, "Say what it costs")
        assert "12 texts, some " in shown(page)
        assert "free here." in shown(page)
        assert list(decisions.comparisons("desk")) == []
        page.switch.days.value = 3
        assert named(page.__panel__(), "Say what it costs"), "other texts have another price"
        press(page, "Say what it costs")
        press(page, "Ask both")
        comparison = decisions.wait(next(decisions.comparisons("desk")))
        assert (comparison.version, comparison.contexts) == (2, 12)
        asyncio.run(page.refresh())
        assert not named(page.__panel__(), SETTLE), "both are one model"

        decisions.add_version("desk", [{**TEAM, "question": "Whose is it, after all?"}])
        comparison = decisions.wait(decisions.compare("desk", 3))
        page = opened(server)
        press(page, SETTLE)
        assert page.session.page == "review"
        draft = client.drafts.get(page.session.draft)
        assert draft.rows == len(comparison.result.switches[0].to_label)
        relabel = {"row": 0, "action": "relabel", "decision": "team", "outcome": "billing"}
        client.drafts.edit(draft.id, [relabel])
        client.drafts.seal(draft.id, "version")
        page = opened(server)
        press(page, SETTLE)
        assert "1 labels of the review are feedback now. Compare again." in shown(page)


def test_production_is_compared_with_the_recorded_answers_of_a_file():
    with steelyard.embed(engine="hashing") as server:
        decisions = server.client.named_decisions
        decisions.create("desk", [TEAM])
        page = opened(server)
        assert RECORDED not in shown(page)
        choose(page.__panel__(), "Compare with recorded answers")
        press(page, "Say what it costs")
        assert "Choose a file with recorded answers first." in shown(page)
        form = page.recorded
        form.file.param.update(filename="bad.csv", value=b"a,b\n1,2\n")
        assert "bad.csv has no recorded answers" in shown(page)
        lines = [f"Ticket {number},billing,0.9" for number in range(40)]
        answers = "\n".join(["text,answer,probability", *lines]).encode()
        form.file.param.update(filename="answers.csv", value=answers)
        assert "answers.csv, 40 answers." in shown(page)
        press(page, "Say what it costs")
        assert "40 texts, some 280 input tokens, free here." in shown(page)
        assert list(decisions.comparisons("desk")) == []
        press(page, "Ask production")
        comparison = decisions.wait(next(decisions.comparisons("desk")))
        assert (comparison.recorded, comparison.contexts) == (True, 40)
        asyncio.run(page.look())
        text = shown(opened(server))
        assert "Version 1 was asked about 40 recorded texts." in text
        assert "team: another action in " in text
        assert "1 compared with recorded answers: " in text
        assert comparison.result.switches[0].advice in text
