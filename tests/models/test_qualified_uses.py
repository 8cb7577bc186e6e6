"""Gates, growth, comparisons and labeling ask alike whether the models whose labels decide have qualified."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec import UNSET, structs

import steelyard
from steelyard.errors import InvalidRequestError
from steelyard.evaluations.judges import Judges
from steelyard.models.qualification_wire import JudgeIdentity
from steelyard.models.qualifying import changes_between, kin_of
from steelyard.named.compare_run import decode_progress
from steelyard.named.store import COMPARISONS
from support.families.learnable_rows import DECISION, learnable_rows
from support.models.teaching import is_even, taught_server

DOUBT = "it has not been held to labels of people"
KIN = "even: it judges even, and both are of even; they err alike."


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    teachers = {"even": is_even, "sure": lambda _: 0.9}
    with (
        taught_server(home, teachers) as (server, _),
        steelyard.connect(server.url) as client,
    ):
        by_model = {"by": "model", "who": "even"}
        rows = [{**row, "metadata": by_model} for row in learnable_rows(n_rows=60)]
        by_person = [{**row, "metadata": {"by": "person"}} for row in learnable_rows(1, n_rows=20)]
        dataset = client.datasets.create("of even", training=by_person, evaluation=rows)
        for name, model in (("queue", "sure"), ("next", "even")):
            client.named_decisions.create(name, [DECISION], model=model, dataset_id=dataset.id)
            client.named_decisions.add_version(
                name, [{**DECISION, "question": "Whose is it?"}], model=model
            )
        yield server.services, client, dataset


def gate(client, dataset, base=None, judged_by=("model", "unknown")):
    return client.families.estimate(
        "ant", dataset.id, start_from=base, hyperparameters={"judged_by": list(judged_by)}
    )


@pytest.mark.parametrize(
    ("use", "field", "expected"),
    [
        (gate, "judged_by", [f"even: {DOUBT}."]),
        (partial(gate, base="even"), "judged_by", [f"even: {DOUBT}.", KIN]),
        (partial(gate, judged_by=["person"]), "", UNSET),
        (lambda client, _: client.named_decisions.compare("queue", 2), "rows", [f"even: {DOUBT}."]),
        (
            lambda client, _: client.named_decisions.compare("next", 2),
            "rows",
            [f"even: {DOUBT}.", KIN],
        ),
        (lambda client, _: client.named_decisions.compare("queue", 2, rows=0), "", UNSET),
    ],
    ids=["gate", "gate of kin", "gate by people", "comparison", "of kin", "without rows"],
)
def test_unqualified_judges_are_warned_of_or_refused(taught, use, field, expected):
    services, client, dataset = taught
    assert use(client, dataset).warnings == expected
    judges = services.get(Judges)
    try:
        judges.must_qualify = True  # as the setting judges=qualified does
        if expected is UNSET:
            assert use(client, dataset).warnings is UNSET
            return
        with pytest.raises(InvalidRequestError, match=DOUBT) as refused:
            use(client, dataset)
    finally:
        judges.must_qualify = False
    [detail] = refused.value.details
    assert (detail["path"][-1], detail["type"]) == (field, "not_qualified")


def test_a_comparison_remembers_its_warnings(taught):
    services, client, _ = taught
    comparison = client.named_decisions.compare("next", 2)
    row = services.state.read_now(lambda connection: COMPARISONS.find(connection, comparison.id))
    assert decode_progress(row.progress).warnings == [f"even: {DOUBT}.", KIN]


def test_growth_waits_for_a_judge_to_qualify(taught):
    services, client, _ = taught
    named, judges = client.named_decisions, services.get(Judges)
    named.grow("next", "rows", judge_rows=0.5)
    assert named.turn_growth("next").waits_for.endswith(f"alone. even: {DOUBT}.")
    try:
        judges.must_qualify = True
        waits = named.turn_growth("next").waits_for
    finally:
        judges.must_qualify = False
    assert f'judge_rows takes sure answers of "even", but {DOUBT}' in waits
    named.grow("next", "rows")
    assert named.turn_growth("next").waits_for.endswith("alone.")


IDENTITY = JudgeIdentity(
    wire="chat",
    url="https://far/v1",
    model="Qwen/Qwen3-8B",
    provider_model="qwen3-8b-1101",
    settings={"temperatures": {"binary": 2.0}},
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"file_sha256": "00"}, ["file"]),
        ({"file": "elsewhere.gguf"}, []),
        ({"settings": {"temperatures": {"binary": 2.1}}}, ["settings"]),
        ({"model": "Qwen/Qwen3-8B-2026-12"}, ["model"]),
        ({"url": "https://other/v1"}, ["url"]),
        ({"provider_model": "qwen3-8b-1130"}, ["provider_model"]),
        ({"provider_model": ""}, []),
    ],
)
def test_changes_void_a_qualification(change, expected):
    assert changes_between(IDENTITY, structs.replace(IDENTITY, **change)) == expected


@pytest.mark.parametrize(
    ("other", "is_kin"),
    [
        (JudgeIdentity(wire="gguf", file="models/Qwen3-4B-Q4_K_M.gguf"), True),
        (JudgeIdentity(wire="gguf", file="models/qwen2.5-4b.gguf"), False),
        (JudgeIdentity(wire="chat", model="qwen/qwen3-8b"), True),
        (JudgeIdentity(wire="chat", model="gpt-4o-mini"), False),
        (JudgeIdentity(wire="gguf", file="a.gguf", file_sha256="aa"), False),
    ],
)
def test_kin_share_weights_or_their_series(other, is_kin):
    assert kin_of("own", {"own": IDENTITY, "other": other}) == ["other"] * is_kin
