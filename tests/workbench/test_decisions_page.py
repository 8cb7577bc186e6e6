"""Decisions: production beside its candidate, and every verb of a named decision."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from types import SimpleNamespace

import pytest
from msgspec import structs

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn

import steelyard
from steelyard.cli.decision import command
from steelyard.decision_log.wire import DecisionSummary
from steelyard.evaluations.wire import Change
from steelyard.ledger.money import from_usd
from steelyard.named.comparison_wire import (
    ComparedDecision,
    ComparedRules,
    ComparedSide,
    ComparisonResult,
    NamedComparison,
)
from steelyard.wire.measures import Measure
from steelyard_workbench.frame.navigation import make_page
from steelyard_workbench.kit.components.choices import Choices
from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope
from steelyard_workbench.pages.decisions.cards import meaning_of
from steelyard_workbench.pages.decisions.edit_form import EditForm
from steelyard_workbench.pages.decisions.judging import judge
from steelyard_workbench.parts.live.share_table import share_table
from steelyard_workbench.parts.named.looking import look_at
from steelyard_workbench.parts.named.naming import name_family
from support.browser.shown_parts import choices, choose, named, press, texts
from support.families.learnable_rows import DECISION, learnable_rows
from support.servers.live_server import live_server

TEAM = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing", webhook_hosts="hook.example") as running:
        yield running


@pytest.fixture
def decisions(server, request):
    """The named decisions, with one named after the test, which is at version 1."""
    name = request.node.originalname.replace("_", "")[:40]
    server.client.named_decisions.create(name, [TEAM], owner="Mia")
    return server.client.named_decisions, name


def opened(server, slug="decisions", **chosen):
    page = make_page(slug, Session(server.client, page=slug, **chosen))
    page.open()
    return page


def shown(page):
    return unescape(texts(page.__panel__()))


def tables(page):
    return page.__panel__().select(MarkTable)


def form_of(page) -> EditForm:
    choose(page.__panel__(), "Edit")
    return page.form


def confirm(page, reason=""):
    """Answer the question that is asked."""
    dialog = page.moves.dialog
    for field in named(dialog.dialog, "Why, for the history (may be empty)"):
        field.value = reason
    for field in named(dialog.dialog, "Why, for the history"):
        field.value = reason
    asyncio.run(dialog.confirm())
    return dialog


def start_first(page):
    """Press the card of the first template."""
    [cards] = [each for each in page.__panel__().select(Choices) if each.layout == "cards"]
    assert "→ termination" in cards.lines[0]["text"]
    assert cards.lines[0]["pill"] == "85 % right, 33 % to a person"
    cards.press(0)


def test_the_list_makes_decisions_and_opens_them(server):
    named_decisions = server.client.named_decisions
    page = opened(server)
    assert "No named decisions yet." in shown(page)
    start_first(page)
    assert page.session.named == "contract_clause"
    assert "What does this clause of a contract regulate?" in shown(page)
    named_decisions.archive("contract_clause")
    page = opened(server)
    start_first(page)
    assert page.session.named == "contract_clause_2"  # the other name is taken still
    named_decisions.archive("contract_clause_2")
    page = opened(server)
    choose(page.__panel__(), "New decision")
    form = page.form
    form.new_name.value = "desk"
    named(form.__panel__(), "Question")[0].value = "Which team?"
    named(form.__panel__(), "Kind")[0].value = "single"
    named(form.__panel__(), "Answers, one a line; a description after a colon")[
        0
    ].value = "billing: money\nshipping"
    asyncio.run(form.save())
    assert page.session.named == "desk"
    assert named_decisions.version("desk").decisions[0]["outcomes"] == {
        "billing": "money",
        "shipping": None,
    }
    [listed] = opened(server, "home").__panel__().select(MarkTable)
    assert listed.rows == [["desk", "", "production 1", "0", "not known yet", ""]]
    page = opened(server)
    archived = page.__panel__().select(MarkTable)[1]
    archived.press([row[0] for row in archived.rows].index("contract_clause"))
    press(page, "Bring it back")
    assert named_decisions.get("contract_clause").archived_at is None


def test_the_form_begins_with_the_decisions_of_another_page(server):
    client = server.client
    dataset = client.datasets.create("to name", examples=learnable_rows(n_rows=40))
    session = Session(client, page="families")
    asyncio.run(name_family(session, SimpleNamespace(id="hashing", dataset_id=dataset.id)))
    assert (session.page, session.view) == ("decisions", "new")
    page = make_page("decisions", session)
    page.open()
    content = page.form.content()
    assert content["model"] == "hashing"
    assert content["decisions"][0]["question"] == DECISION["question"]
    page.form.new_name.value = "desk_named"
    asyncio.run(page.form.save())
    assert session.named == "desk_named"
    assert client.named_decisions.get("desk_named").dataset_id == dataset.id


#: By verb of the shell, what does it on the page.
VERBS = {
    "new": "New decision",
    "push": "Edit",
    "pull": "Download it as a file",
    "show": "Download it as a file",
    "list": "New decision",
    "archive": "Archive…",
    "compare": "Compare again",
    "diff": "Beside production",
    "grow": "Let it grow",
    "history": "History",
    "move": "Overrule…",
    "rollback": "Roll back to 1",
    "settle": "Review what would settle it",
    "share": "Percent of the requests for production",
    "store": "Stored of it at most",
    "rules": "Try on rows",
    "test": "Try on rows",
}


def test_each_verb_of_the_shell_is_on_the_page(server, decisions):
    client, name = decisions
    client.add_version(name, [{**TEAM, "question": "Which team owns it?"}])
    client.move(name, "production", 2, overrule="to have a move")
    client.add_version(name, [{**TEAM, "question": "Whose is it?"}])
    client.move(name, "staging", 3)
    for number in range(12):
        server.client.decision(name).decide(f"Ticket {number}")
    client.wait(client.compare(name, 3))
    pages = [opened(server), opened(server, named=name, view="code")]
    labels = {label for page in pages for label in choices(page.__panel__())} | {"History"}
    for page in pages:
        parts = page.__panel__().select(lambda part: hasattr(part, "label"))
        labels |= {part.label for part in parts}
    assert 'aria-label="History"' in texts(pages[1].__panel__())
    assert VERBS.keys() == command.commands.keys()
    assert [verb for verb, label in VERBS.items() if label not in labels] == []


def test_a_decision_has_its_week_its_code_and_pages_of_its_own(server, decisions):
    _, name = decisions
    page = opened(server, named=name)
    assert "No requests in the last week." in shown(page)
    assert "0 answers" not in shown(page)
    assert "Which team?" in shown(page)
    choose(page.__panel__(), "Use it in your program")
    assert f"client.decision('{name}').decide(" in shown(page)
    server.client.decision(name).decide("Charged twice")
    page.on_session()
    assert "1 answer in the last week" in shown(page)
    [shares] = [each for each in tables(page) if each.label == "True shares of answers"]
    assert shares.rows[0][:1] + shares.rows[0][3:] == ["team", "—", "0", "—"]
    shares.press(0)  # opens the answers that chance draws
    assert page.session.page == "live"
    live = opened(server, "live", query=page.session.query)
    assert (live.view.named, live.view.rows.order, live.view.rows.decision) == (
        name,
        "chance",
        "team",
    )
    [of_live] = [each for each in tables(live) if each.label == shares.label]
    assert of_live.rows == shares.rows
    assert (live.only.value, live.shares.__panel__().visible) == ("to check, drawn by chance", True)
    for each in server.client.decision_log(order="chance", named=name).data:
        server.client.feedback(each.id, {"team": "billing"})
    twice = server.client.decision(name).decide("Twice")
    server.client.feedback(twice.id, {"team": "billing"})
    live.shares.look()
    assert tables(live)[0].rows[0][4] == "2"
    series = server.client.decision_series(named=name)
    outcomes = [structs.replace(series.outcomes[0], checks_left_out=3)]
    table = share_table(structs.replace(series, outcomes=outcomes), str)
    assert "Checks out of this order count once those before them are done: 3 of team." in texts(
        table
    )
    page = opened(server, named=name)
    press(page, "Look at its answers")
    assert page.session.page == "live"
    assert f'"named":"{name}"' in page.session.query.replace(" ", "")
    page = opened(server, "alarms", named=name, view="of-decision")
    assert f"No alarm is raised about {name}." in shown(page)
    named(page.__panel__(), "Show all")[0].clicks += 1
    assert page.session.view == ""
    page = opened(server, "jobs", named=name, view="of-decision")
    assert f"Of the decision {name} alone." in shown(page)


def test_an_edit_becomes_a_version_that_keeps_the_rest(server, decisions):
    named_decisions, name = decisions
    costs = {"billing": 1.0, "shipping": 4.0}
    named_decisions.add_version(name, [{**TEAM, "costs": costs}], model="hashing")
    page = opened(server, named=name)
    form = form_of(page)
    named(form.__panel__(), "Question")[0].value = "Whose is it?"
    [act_from] = form.act_from.values()
    act_from.value = "much"
    asyncio.run(form.save())
    assert "Write a number from 0 to 1, or leave it empty." in texts(form.__panel__())
    assert act_from.error_state
    act_from.value, form.note.value = "0,6", "shorter"
    asyncio.run(form.save())
    version = named_decisions.version(name, "staging")
    assert (version.version, version.note, version.model) == (3, "shorter", "hashing")
    assert version.decisions == [
        {
            "id": "team",
            "kind": "single",
            "question": "Whose is it?",
            "outcomes": ["billing", "shipping"],
            "costs": costs,
            "abstain": {"min_probability": 0.6},
        }
    ]
    text = shown(page)
    assert "Version 3 is saved." in text
    assert 'aria-label="Staging"' in text
    assert "<del" in text
    assert "acts from 0.6, else a person" in re.sub("<[^>]*>", "", text)
    assert "Version 3 made: shorter" in text


def test_each_version_has_the_reading_of_its_question(server, decisions):
    named_decisions, name = decisions
    happy = {"id": "happy", "kind": "binary", "question": "Is the customer satisfied?"}
    named_decisions.add_version(name, [happy], model="hashing")
    page = opened(server, named=name)
    form = form_of(page)
    assert "Read as: The customer is satisfied." in texts(form.__panel__())
    named(form.__panel__(), "Yes states")[0].value = "The customer praises us."
    guideline = "Thanks are *praise*.\n\n<img src=x onerror=alert(1)>"
    named(form.__panel__(), "Guideline: what reviewers and judges go by")[0].value = guideline
    asyncio.run(form.save())
    [decision] = named_decisions.version(name, "staging").decisions
    written = {"statement": "The customer praises us.", "guideline": guideline}
    assert decision == {**happy, **written}
    text = re.sub("<[^>]*>", "", shown(page))
    assert "Read as: The customer praises us." in text
    assert "Guideline: Thanks are *praise*." in text  # marked as a change of staging
    named_decisions.move(name, "production", 3, overrule="clearer")
    page = opened(server, named=name)
    [pane] = [
        each for each in page.__panel__().select(pn.pane.Markdown) if guideline == each.object
    ]
    html = pane._transform_object(pane.object)["object"]
    assert ("&lt;em&gt;praise" in html, "&lt;img" in html) == (True, False)


def test_production_moves_by_a_reason_alone_and_rolls_back(server, decisions):
    named_decisions, name = decisions
    named_decisions.add_version(name, [{**TEAM, "question": "Whose is it?"}])
    page = opened(server, named=name)
    assert "Version 2 was not compared yet." in shown(page)
    page.moves.ask_production(page.looked, 2)
    assert "No comparison with production passed this version" in texts(confirm(page).dialog)
    press(page, "Overrule…")
    assert "Write why, for those who read the history." in texts(confirm(page).dialog)
    confirm(page, "asked for by support")
    assert named_decisions.version(name).version == 2
    assert "production moved from 1 to 2, overruled: asked for by support" in shown(page)
    press(page, "Roll back to 1")
    confirm(page, "too many")
    assert named_decisions.version(name).version == 1
    press(page, "Put a version in use…")
    confirm(page)
    assert "staging moved to 2" in shown(page)
    choose(page.__panel__(), "Archive…")
    confirm(page)
    assert "Archived." in shown(page)


def test_a_comparison_is_started_followed_and_stopped(server, decisions):
    named_decisions, name = decisions
    named_decisions.add_version(name, [{**TEAM, "question": "Whose is it?"}])
    server.client.decision(name).decide("Charged twice")
    page = opened(server, named=name)
    press(page, "Compare with production")
    named_decisions.wait(next(iter(named_decisions.comparisons(name))))
    asyncio.run(page.look())
    asyncio.run(page.refresh())
    text = shown(page)
    assert "Version 2 may be better or worse: no right answers are known." in text
    assert "2 compared with 1: better or worse, too few rows to tell" in text
    assert text.count("this machine") >= 4  # the comparison has its author too
    assert named(page.__panel__(), "Compare again")
    assert not named(page.__panel__(), "Move 2 to production")


def test_a_price_is_shown_before_it_is_reserved():
    with live_server(jobs="off", accounts="on", prices="hashing=1000") as running:
        accounts = running.services.accounts
        account = accounts.create_account("payer")
        accounts.add_credit(account.id, from_usd("50"))
        key = accounts.create_key(account=account.id).secret
        with steelyard.connect(running.url, key) as client:
            client.named_decisions.create("desk", [TEAM])
            client.named_decisions.add_version("desk", [{**TEAM, "question": "Whose is it?"}])
            client.decision("desk").decide("Charged twice", store=True)
            page = opened(SimpleNamespace(client=client), named="desk")
            press(page, "Compare with production")
            assert "Press again to reserve that amount and compare." in shown(page)
            assert list(client.named_decisions.comparisons("desk")) == []
            press(page, "Compare with production")
            [comparison] = client.named_decisions.comparisons("desk")
            assert f"It costs {comparison.price_usd} USD." not in shown(page)
            assert "Version 2 is being compared with production." in shown(page)
            press(page, "Stop")
            assert "The comparison of version 2 was stopped." in shown(page)


def test_a_share_is_sent_and_ended_by_the_slider(server, decisions):
    named_decisions, name = decisions
    page = opened(server, named=name)
    assert "Point staging to another version" in shown(page)
    named_decisions.move(name, "staging", named_decisions.add_version(name, [DECISION]).version)
    page.on_session()
    for percent, label in ((20, "Send it 20 %"), (0, "End the share")):
        [slider] = named(page.__panel__(), "Percent of the requests for production")
        slider.value = percent
        press(page, label)
        assert named_decisions.get(name).shares[0].share == 0.2
    assert "20 % of production to staging ended: a person ended it" in shown(page)
    named(page.__panel__(), "Percent of the requests for production")[0].value = 5
    named(page.__panel__(), "And then")[0].value = 24
    assert "5 → 25 → 50 → 90 %, at the last one in 3.0 days." in shown(page)
    for label in ("Send it 5 %", "Stop the share", "Continue at 5 %"):
        press(page, label)
        share = named_decisions.get(name).shares[0]
        assert (share.share, share.ramp.steps, share.ramp.step_hours) == (
            0.05,
            [0.25, 0.5, 0.9],
            24,
        )
        assert (share.ended_at is None) is (label != "Stop the share")
    assert "25 % follows in 24 h." in shown(page)


def test_growth_is_given_leave_and_stopped(server, decisions):
    named_decisions, name = decisions
    server.client.datasets.create(f"{name} rows", examples=learnable_rows(n_rows=20))
    page = opened(server, named=name)
    named(page.__panel__(), "Dataset of its rows, by its name")[0].value = f"{name} rows"
    named(page.__panel__(), "What it is for")[0].value = "tickets"
    named(page.__panel__(), "Stored of it at most")[0].value = "features"
    press(page, "Save these")
    decision = named_decisions.get(name)
    assert (decision.description, decision.owner, decision.store) == ("tickets", "Mia", "features")
    assert decision.dataset_id
    [policy] = named(page.__panel__(), "What it may do")
    policy.value = "rows"
    press(page, "Let it grow")
    assert named_decisions.growth(name).policy.policy == "rows"
    press(page, "Look now")
    assert "It grows by itself." in shown(page)
    press(page, "Stop growing")
    assert named_decisions.growth(name).stopped_at is not None


def test_rows_are_answered_by_both_versions_and_nothing_is_stored(server, decisions):
    named_decisions, name = decisions
    dataset = server.client.datasets.create(f"{name} rows", examples=learnable_rows(n_rows=20))
    named_decisions.change(name, dataset_id=dataset.id)
    page = opened(server, named=name)
    form = form_of(page)
    named(form.__panel__(), "Question")[0].value = "Whose is it?"
    named(form.__panel__(), "Try it on rows")[0].clicks += 1
    tried = page.tried
    asyncio.run(tried.ask())
    assert len(tried.rows) > 0
    assert f"Right of {len(tried.rows)}: production: " in texts(tried.result)
    assert 'class="chip"' in texts(tried.result)
    assert server.client.decision_summary(named=name).answers == 0


def test_rules_are_lines_that_are_checked_as_one_types_and_tried_on_rows(server, decisions):
    named_decisions, name = decisions
    rows = learnable_rows(n_rows=6)
    for place, row in enumerate(rows):
        row["metadata"] = {"amount": 10 * place} if place else {}
    dataset = server.client.datasets.create(f"{name} rows", evaluation=rows)
    named_decisions.change(name, dataset_id=dataset.id)
    page = opened(server, named=name)
    form = form_of(page)
    form.rules.fields.value = "amount: decimal\nvip: boolean, optional"
    form.rules.rules.value = "refund if amnt < 25"
    form.check_rules()
    assert "when of rule 1 names amnt, which is not there, at column 1" in shown(page)
    form.rules.rules.value = "else person\nrefund if amount < 25"
    form.check_rules()
    assert "Line 2 of rules has a line after else; make else the last one." in shown(page)
    form.rules.rules.value = "refund if amount < 25\ncall if vip\nelse person"
    asyncio.run(form.check())
    assert "refund where amount below 25" in shown(page)
    named(form.__panel__(), "Try it on rows")[0].clicks += 1
    tried = page.tried
    asyncio.run(tried.ask())
    text = texts(tried.result)
    assert "Rules of the new version" in text
    assert "1 of 6 rows do not have the fields: fields.amount is missing" in text
    counts = re.findall("<td[^>]*>([^<]*)</td></tr>", text.partition("Rules of the new")[2])
    assert counts == ["2", "0", "3"]
    asyncio.run(form.save())
    version = named_decisions.version(name, "staging")
    assert version.fields == {
        "amount": {"type": "decimal"},
        "vip": {"type": "boolean", "optional": True},
    }
    assert version.rules == [
        {"when": "amount < 25", "action": "refund"},
        {"when": "vip", "action": "call"},
    ]
    assert version.otherwise == "person"
    named_decisions.move(name, "production", version.version, overrule="try")
    page = opened(server, named=name)
    form = form_of(page)
    form.rules.rules.value = "refund if amount < 35\nelse person"
    named(form.__panel__(), "Try it on rows")[0].clicks += 1
    asyncio.run(page.tried.ask())
    assert "The rules of both act otherwise on 1 of 5 rows." in texts(page.tried.result)
    text = re.sub("<[^>]*>", "", shown(page))
    assert "with amount: decimal, vip: boolean (optional)" in text
    assert "else person" in text


def measured(value, low, high, n=410):
    return Change(before=0.88, after=0.88 + value, change=value, low=low, high=high, n=n)


def compared(verdict, right, sentences=(), wrong=None):
    decision = ComparedDecision(
        decision="refund",
        n=410,
        changed=None,
        abstained=measured(-0.03, -0.05, -0.01),
        right=right,
        wrong=wrong,
        moves=[],
    )
    changed = Measure(value=0.275, low=0.2, high=0.35, n=40)
    rules = ComparedRules(n=40, changed=changed, right=None, moves=[])
    side = ComparedSide(contexts=410, labelled=410, decisions=[decision], gate=None, rules=rules)
    return NamedComparison(
        id="ndc_1",
        object="named.comparison",
        status="succeeded",
        decision="refund",
        version=7,
        against=6,
        dataset_id=None,
        dataset_version=None,
        contexts=410,
        completed_contexts=410,
        price_usd="0",
        charge="free",
        result=ComparisonResult(
            verdict=verdict,
            reasons=[],
            sentences=list(sentences),
            changes=[],
            rows=side,
            stored=None,
            price=None,
            left_out=3,
        ),
        error=None,
        error_code=None,
        created_at=1.0,
        updated_at=2.0,
    )


@pytest.mark.parametrize(
    ("verdict", "right", "sentence"),
    [
        (
            "passed",
            measured(0.05, 0.01, 0.09),
            "Version 7 is better: +5 points right, between +1 and +9.",
        ),
        (
            "passed",
            measured(0.0, -0.01, 0.01),
            "Version 7 is as good as production: +0 points right, between -1 and +1.",
        ),
        (
            "passed",
            measured(0.0, 0.0, 0.0),
            "Version 7 is as good as production: it changed no answer that is known to be right or wrong.",
        ),
        (
            "refused",
            measured(-0.05, -0.14, 0.04),
            "Version 7 is refused: -5 points right, between -14 and +4.",
        ),
        (
            "inconclusive",
            measured(0.004, None, None),
            "Version 7 may be better or worse: +0.4 points right.",
        ),
        ("refused", None, "Version 7 is refused: no right answers are known."),
    ],
)
def test_the_verdict_is_a_sentence(verdict, right, sentence):
    comparison = compared(verdict, right, ["It no longer asks team."])
    _, text, basis = judge(7, comparison)
    assert text == sentence
    assert basis[-3:] == [
        "Its rules act otherwise on 28 % of 40 texts.",
        "3 texts are longer than one of the models reads.",
        "It no longer asks team.",
    ]
    # Answers that are left to a person are neither.
    known = compared(verdict, measured(0.05, 0.01, 0.09), wrong=measured(-0.8, -0.9, -0.7))
    assert judge(7, known)[2][0] == "Of 410 known answers 88 % → 93 % right and 88 % → 8 % wrong."


def week(answers, feedback):
    share = None if not answers else Measure(value=feedback, low=None, high=None, n=answers)
    return DecisionSummary(
        since=0.0,
        until=1.0,
        bucket_s=60,
        answers=answers,
        decisions=answers,
        abstain_rate=None,
        feedback_share=share,
        accuracy=None,
        reliability=[],
        latency_p50_ms=None,
        latency_p95_ms=None,
        buckets=[],
        groups=[],
        groups_left_out=0,
        server=None,
    )


@pytest.mark.parametrize(
    ("percent", "answers", "feedback", "text"),
    [
        (
            20,
            12_400,
            0.01,
            "20 % is about 2,480 of 12,400 answers a week. Feedback can judge it in 6",
        ),
        (20, 12_400, 0.5, "Feedback can judge it within a day."),
        (90, 12_400, 0.01, "Feedback can judge it in 11 days."),
        (20, 100, 0.0, "Without feedback it cannot be judged."),
        (20, 0, 0.0, "No requests in the last week, so nothing says how many that is."),
        (0, 100, 0.5, "Production answers every request itself."),
    ],
)
def test_a_share_has_its_effect_in_words(percent, answers, feedback, text):
    assert text in meaning_of(percent, week(answers, feedback))


def test_the_next_version_is_that_of_staging_then_the_newest(server, decisions):
    named_decisions, name = decisions
    client = server.client
    assert look_at(client, name).beside is None
    for number in (2, 3):
        named_decisions.add_version(name, [{**TEAM, "question": f"Which team of {number}?"}])
    assert look_at(client, name).beside.version == 3
    named_decisions.move(name, "staging", 2)
    assert look_at(client, name).beside.version == 2
    assert look_at(client, name, 3).beside.version == 3
    form = EditForm(
        client,
        name,
        named_decisions.version(name, 3),
        on_saved=None,
        on_leave=list,
        on_try=None,
        scope=Scope(),
    )
    asks = {**TEAM, "question": "Which team of 3?"}
    assert form.content()["decisions"] == [asks]
    [act_from] = form.act_from.values()
    act_from.value = "0.7"
    assert form.content()["decisions"] == [{**asks, "abstain": {"min_probability": 0.7}}]


def test_a_version_that_no_longer_abstains_says_nothing_of_it(server, decisions):
    named_decisions, name = decisions
    policy = {"abstain_below": 0.4, "outcome_thresholds": {"billing": 0.9}}
    version = named_decisions.add_version(name, [{**TEAM, "policy": policy}])
    page = opened(server, named=name)
    form = form_of(page)
    [act_from] = form.act_from.values()
    assert act_from.value == "0.4"
    act_from.value = ""
    [decision] = form.content()["decisions"]
    assert decision == {**TEAM, "policy": {"outcome_thresholds": {"billing": 0.9}}}
    form.staging.value = False
    asyncio.run(form.save())
    assert named_decisions.get(name).latest == version.version + 1
