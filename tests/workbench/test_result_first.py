"""Pages that begin with their result: a family with its verdict, a dataset with its rows."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import steelyard
from steelyard.evaluations.wire import EvaluationRecord
from steelyard_workbench.kit.components.choices import Choices
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.theme import outcome_colours
from steelyard_workbench.pages.datasets.page import DatasetsPage
from steelyard_workbench.pages.families.page import FamiliesPage
from support.browser.shown_parts import choose, texts, texts_of
from support.families.family_data import LADDER, WORDS, gate, model
from support.families.told_families import (
    family_job,
    growth,
    make_client,
    record,
    told_evaluation,
    told_family,
    told_job,
)

OUTCOMES = ["billing", "shipping"]


def row(text, outcome="billing"):
    decision = {"id": "team", "question": "Who?", "outcomes": OUTCOMES}
    return {"context": text, "decisions": [decision], "targets": {"team": outcome}}


@pytest.fixture(scope="module")
def client():
    with steelyard.embed(engine="hashing") as server:
        yield server.client


@pytest.fixture(scope="module")
def dataset(client):
    return client.datasets.create("desk", [row(f"case {n}") for n in range(12)])


def test_a_family_begins_with_its_verdict_and_the_answers_that_changed():
    before = [
        record("a", "billing", 0.2),
        record("b", "shipping", 0.9),
        record("c", "billing", 0.3),
    ]
    after = [record("a", "billing", 0.8), record("b", "shipping", 0.4), record("c", "billing", 0.9)]
    figures = {"gate": gate(words={**WORDS, "ladder": LADDER})}
    client = make_client(
        families_get=lambda name: told_family(jobs=[family_job(3)], served=model(3), move=None),
        jobs_get=lambda job_id: told_job(
            id=job_id,
            metrics=figures,
            dataset_evaluation=msgspec.to_builtins(told_evaluation(status="succeeded")),
        ),
        jobs_records=lambda job_id, group="adapted": after if group == "adapted" else before,
        evaluations_records=lambda *a, contexts, context: [
            msgspec.convert(
                {**msgspec.to_builtins(one), "row": 0, "context": f"Text {one.context_sha256}"},
                EvaluationRecord,
            )
            for one in after
            if one.context_sha256 in contexts
        ],
    )
    page = FamiliesPage(Session(client, page="families", family="router"))
    page.open()
    said = texts(page.__panel__())
    assert "On 20 rows that neither has seen" in said
    assert "33 % → 67 % <small>right</small>" in said
    assert "+33 points, between " in said
    assert "2 fixed · 1 broken" in said
    assert "Answers since 21 Sep 2026" in said
    assert "Passed the check" in said
    assert "words alone answer 90 % in 0.3 ms, the rest takes 6.7 more" in said
    assert "Asked in words that it was not trained on, it answers as hashing does." in said
    assert "Text b" in said
    assert said.count("broken</span>") == 1
    # Ids, switches and the check in figures come with Details alone.
    assert "ftj_3" not in said
    assert "Keep warm" not in said
    choose(page.__panel__(), "All 2 fixed")
    assert page.one.rows.frame["context_sha256"].to_list() == ["c", "a"]


def test_a_fine_tune_that_changed_no_answer_says_so():
    same = [record("a", "billing", 0.8), record("b", "shipping", 0.4)]
    lineage = {
        "new_training": 8,
        "earlier_training": 72,
        "new_evaluation": 2,
        "earlier_evaluation": 18,
    }
    client = make_client(
        families_get=lambda name: told_family(jobs=[family_job(3)]),
        jobs_get=lambda job_id: told_job(id=job_id, lineage=lineage),
        jobs_records=lambda job_id, group="adapted": same,
    )
    page = FamiliesPage(Session(client, page="families", family="router"))
    page.open()
    said = texts(page.__panel__())
    assert "50 % → 50 %" in said
    assert "Your 8 new or corrected rows changed no answer of 2." in said


def test_a_running_fine_tune_leaves_the_earlier_verdict():
    queued = family_job(4, status="queued", outcome=None, output_model=None)
    given = told_family(**{"continue": growth(), "jobs": [queued, family_job(3)]})
    client = make_client(families_get=lambda name: given)
    page = FamiliesPage(Session(client, page="families", family="router"))
    page.open()
    assert client.jobs.of("get")[-1] == (("ftj_3",), {})
    said = texts(page.__panel__())
    assert "Passed the check" in said
    assert "for now" not in said


def test_words_answer_while_what_was_asked_for_is_trained():
    jobs = [
        family_job(2, status="running", outcome=None, output_model=None, follows="ftj_1"),
        family_job(1),
    ]
    given = told_family(**{"continue": growth("training"), "jobs": jobs, "models": [model(1)]})
    running = told_job(
        id="ftj_2",
        status="running",
        outcome=None,
        output_model=None,
        metrics=None,
        follows="ftj_1",
        parent="ft-ftj_1",
        progress={"step": 3, "steps": 9, "loss": None, "phase": "heads"},
    )
    client = make_client(
        families_get=lambda _: given,
        jobs_get=lambda name: running if name == "ftj_2" else told_job(id=name),
    )
    page = FamiliesPage(Session(client, page="families", family="router"))
    page.open()
    said = texts(page.__panel__())
    assert "Passed the check" in said
    assert "Words alone answer for now." in said
    assert "learning the answers: 33 %" in said


@pytest.mark.parametrize("is_kept", [True, False])
def test_words_go_on_where_the_fine_tune_behind_them_makes_no_model(is_kept):
    refused = {"outcome": "gate_failed", "output_model": None}
    jobs = [
        family_job(2, **refused, follows="ftj_1"),
        family_job(1, **({} if is_kept else refused)),
    ]
    given = told_family(**{"continue": growth(), "jobs": jobs, "models": [model(1)]})
    client = make_client(families_get=lambda _: given)
    page = FamiliesPage(Session(client, page="families", family="router"))
    page.open()
    assert client.jobs.of("get")[-1] == (("ftj_1" if is_kept else "ftj_2",), {})
    assert ("Words alone go on answering." in texts(page.__panel__())) == is_kept
    if is_kept:
        page.session.job = "ftj_2"
        asyncio.run(page.one.loaded.refresh())
        assert "go on answering" not in texts(page.__panel__())


def test_a_dataset_begins_with_its_rows_and_the_step_that_is_next(client):
    made = client.datasets.create("next", [row(f"next {n}") for n in range(40)])

    def first():
        page = DatasetsPage(Session(client, page="datasets", dataset=made.id, reviewer="mia"))
        page.open()
        filled = [
            each.label
            for part in page.__panel__().select(Choices)
            for each in part.choices
            if each.look == "filled"
        ]
        assert made.sha256 not in texts_of(page.__panel__())  # that is in Details
        assert "40 rows · " in texts_of(page.__panel__())
        return filled

    assert first() == ["Evaluate it"]
    [evaluation] = client.evaluations.create(made.id, "hashing").data
    client.evaluations.wait(evaluation.id, timeout_s=60, progress=False)
    assert first() == ["Train on it"]
    draft = client.drafts.create(made.id)
    client.drafts.assign(draft.id, ["mia"])
    assert first() == ["Review 40 for you"]
    client.datasets.delete(made.id)


def test_labels_are_chips_of_the_outcome_alone_in_its_colour(client, dataset):
    page = DatasetsPage(Session(client, page="datasets", dataset=dataset.id))
    page.open()
    [chip] = page.rows.table.rows["labels"].to_list()[0]
    assert chip["text"] in OUTCOMES
    assert chip["colour"] == outcome_colours(OUTCOMES)[chip["text"]]
