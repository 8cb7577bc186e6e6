"""Home: open work, each by itself, and none."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import steelyard
from steelyard.errors import SteelyardError
from steelyard.families.wire import Move
from steelyard.named.wire import NamedAlias
from steelyard.review.wire import Draft
from steelyard_workbench.kit.components.choices import Choices
from steelyard_workbench.kit.page import SharedFetch
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope
from steelyard_workbench.pages.home import attention
from steelyard_workbench.pages.home.attention import (
    OpenDrafts,
    draft_needs,
    evaluation_needs,
    family_needs,
    job_needs,
    open_drafts,
    proposed_needs,
    server_needs,
)
from steelyard_workbench.pages.home.page import HomePage, fetch_spend, show_spend
from steelyard_workbench.parts import beginning
from steelyard_workbench.parts.beginning import Beginning, Steps
from steelyard_workbench.parts.review.row_filter import read_query
from support.browser.shown_parts import choices, choose, texts_of
from support.families.told_families import told_evaluation

NOW = 1_000_000.0


def draft(**states):
    return Draft(
        id="dft_1",
        dataset_id="ds_1",
        dataset_version=2,
        name="desk",
        status="open",
        revision=3,
        rows=10,
        states=states,
        noted=0,
        created_at=NOW,
        updated_at=NOW,
        sealed=None,
    )


def job(**given):
    fields = {
        "id": "ftj_1",
        "family": "router",
        "model": "base",
        "status": "succeeded",
        "outcome": "joined",
        "gate": None,
        "progress": None,
        "error": None,
        "reason": None,
        "is_behind_words": False,
        "updated_at": NOW - 60,
    }
    return SimpleNamespace(**{**fields, **given})


def gate(*reasons):
    return SimpleNamespace(passed=False, reasons=list(reasons), sentences=[], groups={})


def evaluation(**given):
    fields = {
        "id": "ev_1",
        "dataset_id": "ds_1",
        "named": "router",
        "model_label": "router@1",
        "status": "running",
        "completed_rows": 40,
        "evaluation_rows": 100,
        "updated_at": NOW,
        "error": None,
    }
    return SimpleNamespace(**{**fields, **given})


def test_a_draft_tells_how_many_rows_are_left():
    [need] = draft_needs(OpenDrafts([draft(untouched=4, skipped=1, accepted=5)]))
    assert "5 of 10 rows to review" in need.text
    assert need.page == "review"
    afresh = {"query": "", "view": ""}  # what is there is of whatever was looked at before
    assert need.chosen == {"dataset": "ds_1", "version": 2, "draft": "dft_1", **afresh}
    [need] = draft_needs(OpenDrafts([draft(accepted=10)]))
    assert need.action == "Finish"


def test_rows_that_were_assigned_come_first_and_lead_to_their_queue():
    shares = [SimpleNamespace(reviewer=name, rows=9, done=2) for name in ("ann", "bob")]
    drafts = SimpleNamespace(
        list=lambda **_: SimpleNamespace(data=[draft(), draft()], has_more=False),
        get=lambda _: draft(untouched=10),
        assignments=lambda _: SimpleNamespace(data=shares),
    )
    client = SimpleNamespace(drafts=drafts)
    first = draft_needs(open_drafts(client, "ann"))[0]
    assert (first.text, first.action) == ("7 rows are assigned to you.", "Label")
    assert read_query(first.chosen["query"])[1] == "assigned"
    assert "assigned" not in draft_needs(open_drafts(client, "cy"))[0].text


def test_that_there_are_more_drafts_is_said_with_the_way_to_them():
    more = draft_needs(OpenDrafts([draft(untouched=4), draft(untouched=2)], has_more=True))[-1]
    assert "The 2 newest" in more.text
    assert (more.page, more.chosen["draft"], more.chosen["dataset"]) == ("review", "", "")


def test_running_and_lately_failed_fine_tunes_are_listed(monkeypatch):
    told = SimpleNamespace(status="unsure", word="inconclusive", settles="Needs 40 more rows.")
    monkeypatch.setattr(attention, "verdict_of", lambda _: told)
    running = job(status="running", outcome=None, progress=SimpleNamespace(step=3, steps=9))
    broken = SimpleNamespace(message="No memory.")
    failed = job(family="desk", status="failed", outcome="failed", error=broken)
    long_ago = NOW - attention.WEEK_S - 1
    old = job(family="ant", outcome="gate_failed", gate=gate("x"), updated_at=long_ago)
    needs = job_needs(
        [running, job(outcome="gate_failed", gate=gate("x")), failed, old, job()], NOW
    )
    assert [need.status for need in needs] == ["running", "unsure", "bad"]
    assert "step 3 of 9" in needs[0].text
    assert "Needs 40 more rows." in needs[1].text
    assert "No memory." in needs[2].text
    assert needs[0].chosen == {"job": "ftj_1", "family": "router"}


def test_of_a_family_the_last_ended_fine_tune_is_listed(monkeypatch):
    told = SimpleNamespace(status="bad", word="failed", settles="")
    monkeypatch.setattr(attention, "verdict_of", lambda _: told)
    failed = job(outcome="gate_failed", gate=gate("x"))
    assert len(job_needs([failed, failed], NOW)) == 1
    assert job_needs([job(), failed], NOW) == []
    # Words alone go on answering: nothing is to be done.
    refused = job(outcome="gate_failed", gate=gate("x"), is_behind_words=True)
    assert job_needs([refused, job()], NOW) == []


def test_a_waiting_family_has_a_reason():
    waiting = SimpleNamespace(
        id="router", move=Move(to="router@5", waiting_for="place", reason="live_limit")
    )
    [need] = family_needs([waiting, SimpleNamespace(id="other", move=None)])
    assert "router@5" in need.text
    assert need.chosen == {"family": "router"}


def test_running_or_lately_failed_evaluations_are_listed():
    broken = evaluation(status="failed", error=SimpleNamespace(message="The model is gone."))
    needs = evaluation_needs([evaluation(), broken, evaluation(status="succeeded")], NOW)
    assert [need.status for need in needs] == ["running", "bad"]
    assert "40 of 100 rows" in needs[0].text
    assert needs[0].chosen == {"evaluation": "ev_1", "dataset": "ds_1", "query": "", "view": ""}


def test_a_version_that_a_growth_proposed_waits_until_production_moves():
    def decision(**moved_at):
        aliases = [
            NamedAlias(alias=alias, version=version, moved_at=at)
            for version, (alias, at) in enumerate(moved_at.items(), start=1)
        ]
        return SimpleNamespace(name="desk", aliases=aliases)

    [need] = proposed_needs([decision(production=1.0), decision(production=1.0, proposed=2.0)])
    assert (need.title, need.page, need.chosen["named"]) == ("desk:", "decisions", "desk")
    assert "Version 2" in need.text
    assert proposed_needs([decision(production=3.0, proposed=2.0)]) == []


def test_warnings_of_the_server_are_listed():
    warning = SimpleNamespace(code="queue_full", message="The queue is full.")
    [need] = server_needs(SimpleNamespace(warnings=[warning]))
    assert need.title == "queue_full:"


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing") as running:
        yield running


def test_a_new_server_needs_no_action_and_shows_where_to_begin(server):
    page = HomePage(Session(server.client))
    page.open()
    assert [part.problem for part in page.parts] == [None] * len(page.parts)
    assert "Nothing needs you now" in texts_of(page.summary_box)
    [datasets] = [part for part in page.__panel__().select(Choices) if part.title == "Datasets"]
    assert "Nothing here yet" in datasets.lines[0]["text"]
    choose(page.__panel__(), "Import a file")
    assert page.session.page == "datasets"


def labelled_rows():
    decision = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
    return [
        {"context": f"case {n}", "decisions": [decision], "targets": {"team": "billing"}}
        for n in range(12)
    ]


def steps_of(page):
    """The line of steps: its titles by state, and the name of the next one."""
    [line] = [each for each in page.__panel__().select(Choices) if each.layout == "steps"]
    states = {state: [] for state in ("done", "now", "later")}
    for each in line.lines:
        states[each["state"]].append(each["title"])
    labels = [each["label"] for each in line.lines if each["label"]]
    return line, states, labels


def test_a_newcomer_goes_six_steps_by_their_own_press_and_never_again(
    server, tmp_path, monkeypatch
):
    client = server.client
    client.decide("Where is it?", labelled_rows()[0]["decisions"], store=True)
    page = HomePage(Session(client))
    monkeypatch.setattr(beginning, "sample_file", lambda _: None)
    page.open()
    _, states, labels = steps_of(page)
    assert (states["done"], states["now"]) == (["Ask"], ["Correct 10"])
    assert labels == ["Review the sample"]
    assert choices(page.__panel__())["Review the sample"] is None  # there are no samples
    file = tmp_path / "support_triage.jsonl"
    file.write_text("\n".join(map(json.dumps, labelled_rows())), encoding="utf-8")
    monkeypatch.setattr(beginning, "sample_file", lambda _: file)
    for _ in range(2):  # the second opens the draft of the first
        page.open()
        choose(page.__panel__(), "Review the sample")
        [sample] = client.datasets.list().data
        assert (page.session.page, page.session.dataset) == ("review", sample.id)
    [draft] = client.drafts.list().data
    assert page.session.draft == draft.id
    client.drafts.delete(draft.id)
    # The line can be put away, and taken up again.
    page.open()
    line, *_ = steps_of(page)
    choose(page.__panel__(), "Put the first steps away")
    assert not line.visible
    choose(page.__panel__(), "Show the first steps")
    assert line.visible
    client.datasets.delete(sample.id)


def test_each_step_has_the_press_that_comes_next():
    dataset = SimpleNamespace(id="ds_1", name="support_triage", version=1)
    family = SimpleNamespace(id="triage", latest=object())
    decision = SimpleNamespace(name="desk")
    reviewed = draft(untouched=2, accepted=8)
    ways = [
        ({}, "Ask", "Ask a question"),
        ({"has_answers": True, "dataset": dataset}, "Correct 10", "Review the sample"),
        (
            {"dataset": SimpleNamespace(id="ds_2", name="mails", version=1)},
            "Correct 10",
            "Review mails",
        ),
        (
            {"dataset": dataset, "draft": draft(accepted=10)},
            "Train",
            "Train on it",
        ),  # they were right as they were
        ({"draft": draft(accepted=8, relabelled=2)}, "Train", "Finish the review"),
        (
            {"draft": None, "dataset": SimpleNamespace(**{**vars(dataset), "version": 2})},
            "Train",
            "Train on it",
        ),
        ({"training": family}, "Train", "See how far it is"),
        ({"training": None, "family": family}, "Read the check", "See the check"),
        ({"decision": decision}, "Use it", "Copy the code"),
    ]
    assert Beginning(draft=reviewed).n_reviewed == 8
    found = Beginning()
    for changes, title, label in ways:
        found = replace(found, **changes)
        session = Session(None)
        steps = Steps(session, found, Scope())
        [now] = [each for each in steps.line.lines if each["state"] == "now"]
        assert (now["title"], now["label"]) == (title, label)
        place = 1 + [each["title"] for each in steps.line.lines].index(title)
        assert session.first_step == f"Step {place} of 6"
    choose(steps.__panel__(), "Copy the code")
    assert (session.page, session.named) == ("decisions", "desk")
    assert (session.view, session.first_step) == ("code", "")
    assert not steps.line.visible
    assert not Steps(Session(None), replace(found, is_used=True), Scope()).line.visible
    # A decision of a template is named and used before a model is trained.
    template = Steps(Session(None), replace(found, family=None, is_used=True), Scope())
    states = {each["title"]: each["state"] for each in template.line.lines}
    assert (states["Train"], states["Name it"], states["Use it"]) == ("now", "done", "done")
    read = Steps(Session(None), replace(found, decision=None), Scope())
    choose(read.__panel__(), "See the check")
    assert [each["title"] for each in read.line.lines if each["state"] == "now"] == ["Name it"]


def test_spending_is_shown_where_accounts_are_on(server):
    assert fetch_spend(server.client) is None
    wallet = SimpleNamespace(available_usd="4.5", reserved_usd="0.25")
    account = SimpleNamespace(
        get=lambda: SimpleNamespace(accounts_enabled=True, wallet=wallet),
        keys=lambda: iter([SimpleNamespace(month_spent_usd=spent) for spent in ("1.2", None)]),
    )
    told = texts_of(show_spend(fetch_spend(SimpleNamespace(account=account))))
    assert "$1.20, by the account" in told
    assert "$4.50, and $0.25 held" in told


def test_recent_things_are_links(server):
    made = server.client.datasets.create("recent desk", labelled_rows())
    page = HomePage(Session(server.client))
    page.open()
    choose(page.__panel__(), "recent desk")
    assert (page.session.page, page.session.dataset) == ("datasets", made.id)


def test_an_evaluation_is_opened_without_the_filter_of_something_else(server):
    session = Session(server.client, query='{"records": {"wrong": true}}', view="slices")
    page = HomePage(session)
    page.open()
    choose(page._show_evaluations([told_evaluation()]), "hashing")
    assert (session.page, session.evaluation) == ("evaluations", "eval_1")
    assert (session.query, session.view) == ("", "")
    session.param.update(query="{}", view="slices")
    choose(page._show_evaluations([]), "Go to Evaluations")
    assert (session.query, session.view) == ("", "")


def test_a_failed_part_leaves_the_others_and_all_is_not_well(server):
    def fail(*_, **__):
        raise SteelyardError("Drafts cannot be read now; try again.")

    whole = server.client
    client = SimpleNamespace(
        drafts=SimpleNamespace(list=fail),
        datasets=whole.datasets,
        families=whole.families,
        evaluations=whole.evaluations,
        capabilities=whole.capabilities,
        send=whole.send,
        account=whole.account,
        alarms=whole.alarms,
        named_decisions=whole.named_decisions,
    )
    page = HomePage(Session(client))
    page.open()
    assert [part.state for part in page.parts].count("failed") == 1
    assert list(page.summary_box) == []


def test_parts_share_an_answer_and_a_failure_is_not_kept():
    answers = iter([SteelyardError("Not now."), "here"])
    n_asked = []

    def fetch():
        n_asked.append(1)
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shared = SharedFetch(fetch)
    with pytest.raises(SteelyardError):
        shared()
    found = []
    threads = [threading.Thread(target=lambda: found.append(shared())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["here"] * 4
    assert len(n_asked) == 2
