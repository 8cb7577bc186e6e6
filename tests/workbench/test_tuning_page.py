"""The Prompt tuning page: a job is started, followed, and its result is used."""

from __future__ import annotations

import asyncio

import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.cli.samples import SAMPLES, sample_file
from support.browser.shown_parts import buttons, named, texts
from support.decisions.wordings import TEAM, rows, tuned_server
from support.waiting import until

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.frame.heading import Heading
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.words import changed_words
from steelyard_workbench.pages.tuning.page import TuningPage
from steelyard_workbench.pages.tuning.result import keyword_parts


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    with tuned_server(tmp_path_factory.mktemp("home"), price_in="1") as (services, http, _):
        yield services, http


@pytest.fixture(scope="module")
def client(services):
    with steelyard.connect(str(services[1].base_url)) as client:
        yield client


@pytest.fixture(scope="module")
def improved(client, services):
    dataset = client.datasets.create(
        "<tickets>", training=rows(63, wrong={5, 33, 61}), evaluation=rows(42, start=63)
    )
    with open_worker(services[0].settings):
        return client.prompt_tuning.wait(
            client.prompt_tuning.create(dataset.id, model="far"), progress=False
        )


def opened(client, **chosen):
    page = TuningPage(Session(client, page="tuning", **chosen))
    page.open()
    return page


def test_a_price_is_shown_before_a_job_is_started(client, improved):
    page = opened(client, dataset=improved.dataset_id)
    assert "succeeded, improved · far" in texts(page.__panel__())
    form = page.form
    assert form.dataset.value == improved.dataset_id
    assert (list(form.decision.options.values()), form.decision.value) == ([TEAM["id"]], TEAM["id"])
    form.model.value = "far"
    before = len(list(client.prompt_tuning.list()))
    asyncio.run(form.begin())
    assert "It costs 0.0" in texts(page.__panel__())
    assert len(list(client.prompt_tuning.list())) == before
    asyncio.run(form.begin())
    assert page.session.tuning
    job = client.prompt_tuning.get(page.session.tuning)
    assert (job.status, job.price_usd) == ("queued", improved.price_usd)
    page = opened(client, tuning=job.id)
    named(page.__panel__(), "Cancel")[0].clicks += 1
    assert "cancelled" in texts(page.__panel__())
    heading = Heading(page.session)
    heading.refresh()
    assert heading.in_browser == f"Wording of {TEAM['id']}"
    heading.up.clicks += 1
    assert page.form is not None


def test_untunable_decisions_have_reasons(client, improved):
    page = opened(client, dataset=improved.dataset_id)
    page.form.decision.param.update(options=["nothing"], value="nothing")
    asyncio.run(page.form.begin())
    assert "Not started:" in texts(page.__panel__())
    assert page.session.tuning == ""


def test_a_dataset_of_rewards_comes_last_and_says_that_nothing_can_be_tuned(client, improved):
    rewarded = client.datasets.create(SAMPLES[1], sample_file(SAMPLES[1]))
    assert rewarded.method == "reward"
    page = opened(client)
    assert list(page.form.dataset.options.values())[-1] == rewarded.id
    assert page.form.dataset.value != rewarded.id
    assert not page.form.start.disabled
    small = client.datasets.create("few", training=rows(21), evaluation=rows(21, start=21))
    for dataset_id in (rewarded.id, small.id):
        page = opened(client, dataset=dataset_id)
        assert "No decision here can be tuned." in texts(page.__panel__())
        assert (page.form.decision.disabled, page.form.start.disabled) == (True, True)


def test_a_proven_wording_is_shown_and_becomes_a_dataset(client, improved):
    assert improved.result.verdict == "improved"
    page = opened(client, tuning=improved.id)
    shown = texts(page.__panel__())
    assert "Improved." in shown
    assert "rows for the check" in shown
    assert "the loss went from" not in shown
    assert "<ins" in shown
    assert "Rows of each answer that are right" in shown
    # Keywords are there to be taken, and nothing that the page proposes.
    is_listed = bool(keyword_parts(improved.result))
    label = f"Make a dataset with {'these keywords anyway' if is_listed else 'this wording'}"
    [button] = named(page.__panel__(), label)
    assert button.variant == ("text" if is_listed else "contained")
    made = asyncio.run(_press(page, label))
    assert "Made a dataset of 105 rows." in made
    named(page.__panel__(), "Open it")[0].clicks += 1
    dataset = client.datasets.get(page.session.dataset)
    assert (dataset.name, dataset.rows) == ("<tickets>, tuned wording", 105)
    assert (dataset.split.training, dataset.split.evaluation) == (63, 42)
    [row] = client.datasets.rows(dataset.id, limit=1).data
    assert row.decisions[0]["question"] == improved.result.tuned["question"]
    assert row.decisions != [TEAM]


async def _press(page, name):
    named(page.__panel__(), name)[0].clicks += 1
    await until(lambda: "Made a dataset" in texts(page.__panel__()))
    return texts(page.__panel__())


def test_labels_that_contradict_the_wording_are_dismissed_and_listed_again(client, improved):
    page = opened(client, tuning=improved.id)
    assert improved.result.label_issues[0].row in texts(page.__panel__())
    named(page.__panel__(), "Dismiss them")[0].clicks += 1
    assert client.prompt_tuning.get(improved.id).label_issues_dismissed_at is not None
    assert buttons(page.__panel__())["List them again"]


def test_changed_words_are_marked_and_everything_is_escaped():
    shown = changed_words("Is it <paid>?", "Is it settled?")
    assert shown.startswith("Is it <del")
    assert "&lt;" in shown
    assert "<ins" in shown
    assert shown.endswith("?")
    assert changed_words("", "a").count("<ins") == 1
