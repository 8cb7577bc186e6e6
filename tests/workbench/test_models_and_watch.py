"""The pages of models, alarms and webhooks: actions that only commands had before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

import steelyard
from steelyard.evaluations.wire import Change
from steelyard.models.judge_wire import (
    Judge,
    JudgeCalibration,
    JudgeList,
    JudgeThinking,
    SetupTask,
    ThinkingEffect,
)
from steelyard.models.qualification_wire import (
    JudgeIdentity,
    Qualification,
    QualificationList,
)
from steelyard.models.route_wire import ModelOfRoute, ModelRoute, RouteFit, RouteList
from steelyard.models.stress_reports import keep_stress
from steelyard.models.stress_wire import StressLine, StressReport
from steelyard.serving.routed.figures import Figures
from steelyard.wire.measures import Measure
from support.browser.shown_parts import buttons, named, texts

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.frame.navigation import make_page
from steelyard_workbench.kit.components.choices import Choices
from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope
from steelyard_workbench.pages.models import judges as models_judges
from steelyard_workbench.pages.models.judges import JudgeSection, show_qualifications
from steelyard_workbench.pages.models.routes import Routes


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing", webhook_hosts="hook.example") as running:
        yield running


def opened(server, slug, **chosen):
    session = Session(server.client, page=slug, **chosen)
    page = make_page(slug, session)
    page.open()
    return page


def cards_of(section):
    [cards] = [each for each in section.__panel__().select(Choices) if each.layout == "cards"]
    return cards


def press(shown, label):
    [button] = named(shown, label)
    button.clicks += 1


def test_a_model_is_shown_with_where_to_go_on(server):
    page = opened(server, "models")
    [models, judges] = page.__panel__().select(MarkTable)
    [cards] = [each for each in page.judges.__panel__().select(Choices) if each.layout == "cards"]
    assert [line["title"].split(" (")[-1] for line in cards.lines][:2] == ["small)", "good)"]
    assert models.rows[0][:4] == ["hashing", "shipped", "answers", "0"]
    assert ["qwen3-0.6b", "not here"] in [[row[0], row[-1]] for row in judges.rows]
    models.press(0)
    assert "65,536 tokens" in texts(page.opened)
    assert (models.rows[0][4], "not tested" in texts(page.opened)) == ("—", True)
    press(page.opened, "Ask it")
    assert (page.session.page, page.session.model) == ("playground", "hashing")


def test_how_often_answers_flip_under_pressure_is_shown(server):
    line = StressLine(
        pressure="typos",
        description="",
        flipped=Measure(value=0.25, low=0.1, high=0.5, n=40),
        beyond_noise=None,
    )
    noise = replace(line, pressure="harmless wording", flipped=replace(line.flipped, value=0.05))
    report = StressReport(
        model="hashing", dataset_version=1, contexts=20, tested_at=1.0, lines=[noise, line]
    )
    keep_stress(server.home, server.client.models.get("hashing").evaluation_key, report)
    page = opened(server, "models")
    [models, _] = page.__panel__().select(MarkTable)
    assert models.rows[0][4] == "25 % (typos); noise 5 %"
    models.press(0)
    assert "0.250 (0.100 to 0.500, n = 40)" in texts(page.opened)


def test_a_rule_is_saved_and_no_alarm_is_good_news(server):
    page = opened(server, "alarms")
    assert "No alarm is raised." in texts(page.__panel__())
    assert "Nothing is watched yet." in texts(page.__panel__())
    page.rules.model.value = "hashing"
    page.rules.enabled.value = False
    press(page.__panel__(), "Save the rule")
    assert "The rule of hashing is saved." in texts(page.rules.said)
    press(page.__panel__(), "Ask in the Playground")
    assert page.session.page == "playground"
    assert [rule.enabled for rule in server.client.alarms.rules().data] == [True, False]
    press(page.__panel__(), "Remove the rule of hashing …")
    assert "by the rule of every model without its own" in texts(page.rules.question)
    press(page.rules.question, "Remove it")
    assert "The rule is removed." in texts(page.rules.said)
    assert [rule.model for rule in server.client.alarms.rules().data] == [None]
    assert "Remove the rule" not in texts(page.__panel__())


def test_a_webhook_is_added_tried_switched_off_and_removed(server):
    page = opened(server, "webhooks")
    section = page.section
    assert "No webhooks yet." in texts(page.__panel__())
    press(page.__panel__(), "Add a webhook")
    assert "Write the address" in texts(section.said)
    section.url.value_input = "ftp://hook.example"
    press(page.__panel__(), "Add a webhook")
    assert (section.url.error_state, section.events.error_state) == (True, False)
    section.url.value_input = "https://hook.example/steelyard"
    press(page.__panel__(), "Add a webhook")
    assert "whsec_" in texts(section.said)
    assert not section.url.error_state
    [made] = server.client.webhooks.list()
    [listed] = page.__panel__().select(MarkTable)
    listed.press(0)
    press(section.opened, "Send a test")
    assert "webhook test" in texts(section.opened)
    press(section.opened, "Switch off")
    assert server.client.webhooks.get(made.id).enabled is False
    press(section.opened, "Remove …")
    press(section.question, "Remove it")
    assert list(server.client.webhooks.list()) == []


def test_a_route_is_fitted_from_lists_followed_and_removed(server):
    state = {"routes": []}
    figures = Figures(
        name="first",
        accuracy=Measure(value=0.9, low=0.8, high=0.95, n=40),
        log_loss=Measure(value=0.3, low=None, high=None, n=40),
        share_escalated=Measure(value=0.25, low=0.1, high=0.5, n=40),
        price_usd_per_1000=Measure(value=0.5, low=None, high=None, n=40),
    )
    fitted = ModelRoute(
        name="first",
        models=[
            ModelOfRoute(model="cheap", threshold=0.8),
            ModelOfRoute(model="strong", threshold=None),
        ],
        dataset_id="ds_1",
        version=1,
        task=SetupTask(kind="fit", status="succeeded"),
        fit=RouteFit(training=figures, evaluation=[figures], certified=None, failures={}),
    )
    calls = []

    def fit(*given, **options):
        calls.append((given, options))
        task = SetupTask(kind="fit", status="running", done=10, total=80)
        state["routes"] = [
            ModelRoute(name="first", models=[], dataset_id=None, version=None, task=task)
        ]

    def remove(name):
        calls.append(name)
        state["routes"] = []

    models = [
        SimpleNamespace(id=name, lora=None, engine="connected-chat", decision_price_nano=price)
        for name, price in (("cheap", None), ("strong", 500))
    ]
    client = SimpleNamespace(
        models=SimpleNamespace(
            list=lambda: SimpleNamespace(data=models),
            routes=lambda: RouteList(data=state["routes"]),
            fit_route=fit,
            remove_route=remove,
        ),
        datasets=SimpleNamespace(
            iterate=lambda: [SimpleNamespace(id="ds_1", name="orders", rows=80, method="sft")]
        ),
    )
    session = Session(server.client, page="models")
    session.client = client
    section = Routes(session, Scope())
    asyncio.run(section.routes.refresh())
    asyncio.run(section.making.refresh())
    assert "No combined models yet." in texts(section.__panel__())
    assert list(section.first.options) == ["cheap", "strong, 0.5 USD a million tokens"]
    press(section.__panel__(), "Combine them")
    assert "Write a name" in texts(section.said)
    section.route_name.value_input = "first"
    section.bound.value = "accuracy"
    assert (section.value.label, section.value.value) == ("Accuracy, 0 to 1", 0.9)
    press(section.__panel__(), "Combine them")
    [(given, options)] = calls
    assert given == ("first", ["cheap", "strong"], "ds_1")
    assert (options["bound"], options["value"], options["replace"]) == ("accuracy", 0.9, False)
    assert "Fitting: 10 of 80 rows" in texts(section.opened)
    assert "Remove …" not in buttons(section.opened)
    assert asyncio.run(section.look()) is False
    state["routes"] = [fitted]
    asyncio.run(section.look())
    assert asyncio.run(section.look()) is True
    shown = texts(section.opened)
    assert "a top probability of 0.8000 or more" in shown
    assert "0.250 (0.100 to 0.500, n = 40)" in shown
    press(section.opened, "Ask it")
    assert (session.page, session.model) == ("playground", "first")
    press(section.opened, "Remove …")
    press(section.question, "Remove it")
    assert calls[-1] == "first"
    assert "first is removed." in texts(section.said)


#: Of a judge that thinks; the measure of its answers stands in for any share.
SHARE = Measure(value=0.95, low=0.86, high=0.99, n=60)
EFFECT = ThinkingEffect(
    thought=SHARE,
    tokens=16,
    right=Change(before=0.6, after=0.9, change=0.3, low=0.1, high=0.4, n=40),
    log_loss=Change(before=0.5, after=0.4, change=-0.1, low=-0.2, high=0.0, n=40),
    cpu_ms=None,
)


def test_a_judge_goes_from_the_catalogue_to_a_route(server):
    judge = Judge(
        name="small",
        repository="a/b",
        licence="MIT",
        bytes=2_000_000_000,
        context_tokens=4096,
        measured=None,
        downloaded=False,
        connected=False,
        calibrated=False,
        routes=[],
    )
    steps, state = [], {"judge": judge}
    qualification = Qualification(
        id="qual_1",
        judge="small",
        number=2,
        created_at=0.0,
        dataset_id="ds_1",
        dataset_version=1,
        identity=JudgeIdentity(wire="gguf"),
        wordings=[],
        labelled_by=["person"],
        contexts=60,
        failures=0,
        agreement=SHARE,
        accuracy=SHARE,
        log_loss=SHARE,
        floor=0.85,
        passed=True,
        kin=["other"],
    )
    qualified = QualificationList(data=[qualification], is_qualified=True)

    def change(step, **changes):
        def act(name, *_):
            steps.append((step, name))
            state["judge"] = judge = replace(state["judge"], **changes)
            return judge

        return act

    running = SetupTask(kind="download", status="running", done=500_000_000, total=2_000_000_000)
    fitted = JudgeCalibration(
        dataset_id="ds_1",
        version=1,
        fitted_on=90,
        held_out=40,
        log_loss_before=0.6,
        log_loss_after=0.5,
        in_use=True,
        thinking=EFFECT,
    )
    client = SimpleNamespace(
        judges=SimpleNamespace(
            list=lambda: JudgeList(data=[state["judge"]], runs_here=False),
            download=change("download", task=running),
            connect=change("connect", connected=True, wire="gguf"),
            think=lambda name, below=None, tokens=0: change(
                "think", think=below and JudgeThinking(below=below, tokens=tokens)
            )(name),
            check=change("check"),
            calibrate=change("calibrate", calibration=fitted, calibrated=True),
            use_in_route=change("route", routes=["auto"]),
            qualify=lambda name, _, labelled_by: change(f"qualify {labelled_by}")(name),
            qualifications=lambda _: qualified,
        ),
        datasets=SimpleNamespace(
            iterate=lambda: [SimpleNamespace(id="ds_1", name="tickets", method="sft")]
        ),
    )
    section = JudgeSection(Session(client), Scope())
    asyncio.run(section.judges.refresh())
    assert "steelyard[judge]" in texts(section.__panel__())
    [listed] = section.__panel__().select(MarkTable)
    listed.press(0)
    press(section.opened, "Download 2.0 GB")
    [card] = cards_of(section).lines
    assert "Downloading: 500 MB of 2.0 GB" in card["text"]
    assert "500 MB of 2.0 GB" in texts(section.opened)
    ended = replace(running, status="succeeded")
    state["judge"] = replace(state["judge"], task=ended, downloaded=True)
    asyncio.run(section.look())
    press(section.opened, "Connect it")
    press(section.opened, "Check it")
    section.below.value = 0.7
    press(section.opened, "Think")
    assert "up to 200 tokens where its first answer is below 70 %" in texts(section.opened)
    assert section.below.value == 0.7
    press(section.opened, "Calibrate")
    assert "+0.300 (+0.100 to +0.400, n = 40)" in texts(section.opened)
    assert "It thought about 95 % of them, 16 tokens each." in texts(section.opened)
    press(section.opened, "Answer at once")
    assert "up to 200 tokens" not in texts(section.opened)
    assert "0.600 before, 0.500 after" in texts(section.opened)
    assert "It agrees in 95 % (86 to 99, of 60); 85 % are needed." in texts(section.opened)
    assert "likely to err alike: other." in texts(section.opened)
    section.labelled_by.value = "people, or not said"
    press(section.opened, "Qualify")
    press(section.opened, "Ask it in auto")
    assert [step for step, _ in steps] == [
        "download",
        "connect",
        "check",
        "think",
        "calibrate",
        "think",
        "qualify ['person', 'expert', 'unknown']",
        "route",
    ]
    void = [replace(qualification, voided_by=["file"])]
    shown = show_qualifications(QualificationList(data=void, is_qualified=False))
    assert "Void: it is another by now (file)." in texts(shown)
    assert "Not qualified." in texts(
        show_qualifications(QualificationList(data=[], is_qualified=False))
    )
    [card] = cards_of(section).lines
    assert card["pill"] == "judge, connected, calibrated, asked in auto"


def test_a_model_is_disconnected_once_that_is_confirmed():
    state = {"connected": True}

    def disconnect(name):
        state["connected"] = False

    def listed():
        judge = Judge(
            name="ours",
            repository=None,
            licence=None,
            bytes=None,
            context_tokens=None,
            measured=None,
            downloaded=True,
            calibrated=False,
            routes=[],
            **state,
        )
        return JudgeList(data=[judge], runs_here=True)

    none = QualificationList(data=[], is_qualified=False)
    calls = dict.fromkeys(("qualifications", "check", "use_in_route"), lambda _: none)
    judges = SimpleNamespace(list=listed, disconnect=disconnect, **calls)
    client = SimpleNamespace(judges=judges, datasets=SimpleNamespace(iterate=list))
    section = JudgeSection(Session(client), Scope())
    asyncio.run(section.judges.refresh())
    cards_of(section).press(0)
    press(section.opened, "Disconnect …")
    assert cards_of(section).lines[0]["pill"] == "judge, connected"
    press(section.question, "Disconnect it")
    [card] = cards_of(section).lines
    assert (card["pill"], section.opened.visible) == ("judge, here, not connected", False)


def test_one_press_on_a_card_gets_a_recommended_judge_and_says_how_long_it_takes(monkeypatch):
    task = SetupTask(kind="download", status="running", done=0, total=2_000_000_000)
    judge = Judge(
        name="small",
        repository="a/b",
        licence="MIT",
        bytes=2_000_000_000,
        context_tokens=4096,
        measured="70 % right on yes/no",
        recommended="small",
        downloaded=False,
        connected=False,
        calibrated=False,
        routes=[],
    )
    state = {"judge": judge}

    def download(_):
        state["judge"] = replace(judge, task=task)
        return state["judge"]

    judges = SimpleNamespace(
        list=lambda: JudgeList(data=[state["judge"]], runs_here=True, folder="/srv/models"),
        download=download,
    )
    section = JudgeSection(Session(SimpleNamespace(judges=judges)), Scope())
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(models_judges, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    asyncio.run(section.judges.refresh())
    assert "/srv/models" in texts(section.__panel__())
    [card] = cards_of(section).lines
    assert (card["label"], card["title"]) == ("Get it, 2.0 GB", "small (small)")
    assert card["text"].splitlines() == [
        "2.0 GB, in 2.3 GB of memory or more",
        "MIT",
        "Speed not measured here",
        "70 % right on yes/no",
    ]
    cards_of(section).press(0)
    assert "Downloading: 0 MB of 2.0 GB" in cards_of(section).lines[0]["text"]
    named(section.opened, "Stop")
    state["judge"] = replace(judge, task=replace(task, done=500_000_000))
    clock = iter([10.0, 10.0, 10.0])
    asyncio.run(section.look())
    assert "500 MB of 2.0 GB, 30 s left" in cards_of(section).lines[0]["text"]


def test_settings_begin_with_what_is_set_and_what_is_on(server):
    shown = opened(server, "settings").__panel__()
    text = texts(shown)
    assert text.index("Keys ?") < text.index("Answers by") < text.index("programs on this")
    assert text.index("programs on this") < text.index("No backup yet.")
    assert "panel-material-ui" not in text
