"""The page of versions: the changes, their rows, and every state."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
import polars as pl

import steelyard
from steelyard.errors import SteelyardError
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.versions.changes import Transition, find_changes
from steelyard_workbench.pages.versions.page import VersionsPage
from support.browser.shown_parts import choices, choose, texts_of

TO_SHIPPING = Transition("team", "billing", "shipping")


def row(text, outcome="billing"):
    decision = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
    return {"context": text, "decisions": [decision], "targets": {"team": outcome}}


@pytest.fixture(scope="module")
def client():
    with steelyard.embed(engine="hashing") as server:
        yield server.client


@pytest.fixture(scope="module")
def dataset(client):
    made = client.datasets.create("desk", [row(f"case {n}") for n in range(30)])
    client.datasets.add_rows(made.id, [row("case 4", "shipping"), row("case 9", "shipping")])
    return client.datasets.add_rows(made.id, [row(f"new {n}") for n in range(5)])


def opened(client, **chosen):
    page = VersionsPage(Session(client, page="versions", **chosen))
    page.open()
    return page


def test_the_newest_version_is_compared_with_the_one_before(client, dataset):
    page = opened(client, dataset=dataset.id)
    assert (page.newer, page.older) == (3, 2)
    assert [part.state for part in page.parts] == ["shown"] * 2
    assert page.rows.table.rows["row"].to_list() == [32, 33, 34, 35, 36]
    assert "No labels changed" in texts_of(page.difference.__panel__())


def test_another_pair_is_chosen_and_a_change_of_labels_opens_its_rows(client, dataset):
    page = opened(client, dataset=dataset.id)
    page.choose_older(1)
    assert page.rows.table.total == 7
    assert page.difference.data.diff["relabelled"][0]["contexts"] == 2
    page.choose_rows(TO_SHIPPING)
    assert page.rows.table.rows["context"].to_list() == ["case 4", "case 9"]
    assert "shipping" in page.shown_text.object


def test_a_version_in_the_address_is_shown_and_another_is_gone_to(client, dataset):
    page = opened(client, dataset=dataset.id, version=2)
    assert (page.newer, page.older) == (2, 1)
    page.choose_version(3)
    assert page.session.version == 3
    assert (page.newer, page.older) == (3, 2)


def test_the_compared_version_is_in_the_address(client, dataset):
    page = opened(client, dataset=dataset.id, version=3, against=1)
    assert (page.newer, page.older) == (3, 1)
    page.choose_older(2)
    assert page.session.against == 2
    page.open()
    assert (page.newer, page.older) == (3, 2)
    page.choose_version(2)
    assert (page.newer, page.older, page.session.against) == (2, 1, 0)


def test_a_version_of_a_review_lists_relabelled_and_excluded_rows(client):
    made = client.datasets.create("seen", [row(f"case {n}") for n in range(30)])
    draft = client.drafts.create(made.id, name="spring")
    relabels = [
        {"row": n, "action": "relabel", "decision": "team", "outcome": "shipping", "seen": 0}
        for n in range(4)
    ]
    client.drafts.edit(draft.id, [*relabels, {"row": 9, "action": "exclude", "seen": 0}])
    client.drafts.seal(draft.id, "version")
    page = opened(client, dataset=made.id)
    [told] = [
        part for part in page.history.__panel__().select(pn.pane.HTML) if "spring" in part.object
    ]
    assert "the review spring" in told.object
    assert "4 relabelled" in told.object
    part = page.difference.__panel__()
    expected = {"Rows relabelled (4)", "Rows excluded, or relabelled as they were (5)"}
    assert expected <= set(choices(part))
    [changed] = [one.object for one in part.select(pn.pane.HTML) if "Rows excluded" in one.object]
    assert "Rows added" not in changed


def test_the_first_version_says_that_all_of_it_is_new(client, dataset):
    page = opened(client, dataset=dataset.id, version=1)
    assert page.older == 0
    assert page.rows.table.total == 30
    assert "is the first" in texts_of(page.difference.__panel__())


def test_a_review_begins_with_the_version_that_is_shown(client, dataset):
    page = opened(client, dataset=dataset.id, version=2, view="bulk")
    choose(page.history.__panel__(), "Review this version")
    assert (page.session.page, page.session.version, page.session.view) == ("review", 2, "")


def test_the_newest_version_alone_is_evaluated_and_fine_tuned_on(client, dataset):
    for version, is_newest in ((2, False), (3, True)):
        shown = opened(client, dataset=dataset.id, version=version).history.__panel__()
        for label in ("Evaluate this version", "Train on this version"):
            assert (choices(shown)[label] is not None) is is_newest


def test_without_a_dataset_the_newest_of_two_versions_is_shown(client, dataset):
    single = client.datasets.create("single", [row(f"alone {n}") for n in range(30)])
    page = opened(client)
    assert page.older == page.newer - 1
    [field] = page.__panel__().select(lambda one: getattr(one, "label", "") == "Dataset")
    newest = field.value
    assert newest != single.id
    page.choose_version(1)
    assert (page.session.dataset, page.session.version) == (newest, 1)
    page = opened(client)
    [field] = page.__panel__().select(lambda one: getattr(one, "label", "") == "Dataset")
    field.value = single.id
    assert page.session.dataset == single.id
    nothing = SimpleNamespace(list=lambda **_: SimpleNamespace(data=[]))
    assert "No datasets yet" in texts_of(opened(SimpleNamespace(datasets=nothing)).__panel__())


def test_a_difference_that_fails_leaves_the_versions(client, dataset):
    def fail(*_, **__):
        raise SteelyardError("The versions cannot be compared now; try again.")

    whole = client.datasets
    parts = {name: getattr(whole, name) for name in ("list", "get", "versions")}
    failing = SimpleNamespace(datasets=SimpleNamespace(diff=fail, **parts), drafts=client.drafts)
    page = opened(failing, dataset=dataset.id)
    assert [part.state for part in page.parts] == ["shown", "failed"]


def test_a_sealed_version_lists_removed_and_relabelled_rows():
    def frame(*rows):
        labels = [
            [{"decision": "team", "outcome": outcome, "value": 1.0}] if outcome else []
            for _, _, outcome in rows
        ]
        return pl.DataFrame(
            {
                "index": [index for index, _, _ in rows],
                "context_sha256": [context for _, context, _ in rows],
                "labels": labels,
            },
            schema_overrides={
                "labels": pl.List(
                    pl.Struct({"decision": pl.String, "outcome": pl.String, "value": pl.Float64})
                )
            },
        )

    before = frame((0, "a", "billing"), (1, "b", "billing"), (2, "c", None))
    after = frame((0, "a", "billing"), (3, "b", "shipping"))
    found = find_changes(before, after)
    assert found.removed == [1, 2]
    assert found.relabelled == {TO_SHIPPING: [3]}
