"""``steelyard family`` and ``steelyard job`` against a live server that really trains."""

from __future__ import annotations

import json

import httpx
import pytest

from steelyard import connect
from steelyard.app.job_runtime import open_worker
from steelyard.client import Client, ClientOptions
from support.families.grown_family import grow, post
from support.families.learnable_rows import learnable_rows, one_request
from support.servers.live_server import live_server
from support.waiting import wait_until

#: Models are really trained.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with live_server(home=home, jobs="off", base_models="double=hashing") as server:
        yield server


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def worker(server):
    with open_worker(server.services.settings):
        yield


@pytest.fixture(scope="module")
def family(http, worker):
    """The family router with two models."""
    return grow(http, "router", 2)


@pytest.fixture
def dataset_id(http):
    body = {"name": "tickets", "examples": learnable_rows(0), "evaluation_fraction": 0.3}
    return post(http, "/v1/datasets", body)["id"]


@pytest.fixture
def ask(run, server):
    def run_command(*arguments: str, stdin: str | None = None):
        return run(*arguments, "--url", server.url, stdin=stdin)

    return run_command


@pytest.mark.slow
def test_a_family_from_its_estimate_to_its_end(ask, dataset_id, worker):
    told = ask("family", "estimate", "ant", dataset_id)
    assert told.exit_code == 0, told.output
    assert "112" in told.output
    made = ask("family", "create", "ant", dataset_id, "--seed", "7", "--follow")
    assert made.exit_code == 0, made.output
    assert "The gate passed it, against the base" in made.output
    assert made.stderr.startswith("Following ftj_")
    assert "new rows" in made.output
    refused = ask("family", "continue", "ant")
    assert refused.exit_code == 2
    assert "no_new_data" in refused.output
    words = ask("family", "create", "bee", dataset_id, "--first", "words", "--follow")
    assert words.exit_code == 0, words.output  # words have joined, whatever came after them
    assert words.stderr.count("Following ftj_") == 2
    assert "bee answers, by words alone." in words.stderr
    assert "follows" in words.stdout
    assert ", against the parent" in words.stdout
    refused = ask("family", "estimate", "bee", "--first", "words")
    assert "are for a new family" in refused.output
    off = ask("family", "switch", "ant", "off")
    assert "ant is off (owner)" in off.output
    deleted = ask("family", "delete", "ant", stdin="y\n")
    assert "ant is deleted." in deleted.output


def test_list_and_show(ask, family, server):
    assert "router@2" in ask("family", "list").output
    listed = json.loads(ask("family", "list", "--json").stdout)
    assert "router" in {one["id"] for one in listed["data"]}
    shown = ask("family", "show", "router")
    for text in ("is on, serves router@2", "served, latest", "joined", "continue: no new data"):
        assert text in shown.output
    assert json.loads(ask("family", "show", "router", "--json").stdout)["id"] == "router"
    with Client(ClientOptions(server.url)) as client:
        choices = {choice.name for choice in client.models.choices()}
    # The number that the family serves is asked under its name: as a number it is switched off.
    assert "router" in choices
    assert "router@2" not in choices


def test_a_bound_is_found_shown_and_removed(ask, family):
    refused = ask("family", "bound", "router", "--error", "0.0001")
    assert refused.exit_code == 1, refused.output
    assert "more evaluation rows would certify it. Nothing is kept." in " ".join(
        refused.output.split()
    )
    found = ask("family", "bound", "router", "--error", "0.2", "--confidence", "0.9")
    assert found.exit_code == 0, found.output
    assert "wrong in at most 0.2, with a confidence of 0.9; all others abstain" in found.output
    assert "router@2: from a top probability" in ask("family", "show", "router").output
    assert "has no bound" in ask("family", "bound", "router", "--remove").output
    assert ask("family", "bound", "router").exit_code == 2


def test_a_dossier_has_the_stored_facts_with_their_commands(ask, server, family, tmp_path):
    output = str(tmp_path / "router")
    with connect(server.url) as client:
        draft = client.drafts.create(family["dataset_id"])
        client.drafts.edit(draft.id, [{"row": 0, "action": "accept"}], reviewer="ann")
    written = ask("family", "dossier", "router", "--output", output)
    assert written.exit_code == 0, written.output
    assert written.output.splitlines() == [f"{output}.json", f"{output}.html"]
    dossier = json.loads((tmp_path / "router.json").read_text())
    facts = {section["command"]: section["facts"] for section in dossier["sections"]}
    assert facts["steelyard family show router --json"]["served"]["gate"]["passed"]
    assert len(facts[f"steelyard dataset versions {family['dataset_id']} --json"]["data"]) == 2
    versions = [
        c for c in facts if c.startswith(f"steelyard dataset download {family['dataset_id']}")
    ]
    assert [command.split()[-2:] for command in versions] == [
        ["--version", "1"],
        ["--version", "2"],
    ]
    assert [list(facts[command]) for command in versions] == [["not given"], ["not given"]]
    edits = facts[f'curl "$STEELYARD_URL/v1/drafts/{draft.id}/edits"']["data"]
    assert [(edit["reviewer"], edit["action"]) for edit in edits] == [("ann", "accept")]
    details = [facts[command] for command in facts if "evaluate show" in command]
    assert len(details) == 2
    assert all("not available" not in entry for entry in facts.values()), facts
    page = (tmp_path / "router.html").read_text()
    assert "<code>steelyard family show router --json</code>" in page
    assert "router@2" in page
    assert ask("family", "dossier", "router", "--output", output).exit_code == 2
    assert ask("family", "dossier", "nobody", "--output", output, "--force").exit_code == 2


def test_numbers_are_switched_and_kept_warm(ask, family):
    on = ask("family", "switch", "router@1", "on")
    assert on.exit_code == 0, on.output
    assert "router@1" in on.output
    warm = json.loads(ask("family", "keep-warm", "router@1", "on", "--json").stdout)
    assert warm["keep_warm"]
    assert ask("family", "delete", "router@1", "--yes").exit_code == 2
    for unknown in ("nobody", "router@9"):
        refused = ask("family", "delete", unknown, stdin="y\n")
        assert (refused.exit_code, "for good?" in refused.output) == (2, False)
    assert json.loads(ask("family", "switch", "router@1", "off", "--json").stdout)["on_at"] is None


def test_keeping_a_family_warm(ask, family):
    warm = ask("family", "keep-warm", "router", "on")
    assert "is kept warm" in warm.output
    assert not json.loads(ask("family", "keep-warm", "router", "off", "--json").stdout)["keep_warm"]


@pytest.mark.slow
def test_rollback_asks_and_names_the_discarded_models(ask, http, worker):
    grow(http, "bee", 2)
    assert ask("family", "rollback", "bee", "bee@9").exit_code == 2
    stopped = ask("family", "rollback", "bee", "bee@1", stdin="n\n")
    assert "Discard bee@2 for good?" in stopped.output
    assert stopped.exit_code == 1
    wrong = ask("family", "rollback", "bee", "bee@1", "--discard", "bee@1", "--yes")
    assert wrong.exit_code == 2
    assert "discard: bee@2" in wrong.output
    back = ask("family", "rollback", "bee", "bee@1", "--yes")
    assert back.exit_code == 0, back.output
    assert "discarded" in back.output


def test_jobs_are_listed_shown_and_followed(ask, family):
    jobs = json.loads(ask("job", "list", "--dataset", family["dataset_id"], "--json").stdout)
    kinds = {job["kind"]: job for job in reversed(jobs)}
    assert kinds.keys() == {"fine_tune", "evaluation"}
    newest, evaluation = kinds["fine_tune"], kinds["evaluation"]
    assert newest["id"] in ask("job", "list", "--status", "succeeded").output
    assert newest["id"] not in ask("job", "list", "--kind", "evaluation").output
    assert "scoring" in ask("job", "follow", evaluation["id"]).output
    shown = ask("job", "show", newest["id"])
    assert "The gate passed it, against the parent" in shown.output
    assert "earlier rows" in shown.output
    followed = ask("job", "follow", newest["id"])
    assert followed.exit_code == 0, followed.output
    assert "joined" in ask("job", "events", newest["id"]).output
    events = json.loads(ask("job", "events", newest["id"], "--json").stdout)
    assert events["data"][0]["type"] == "queued"


def test_a_fine_tune_without_a_model_ends_with_status_1(ask, dataset_id, worker):
    job = json.loads(ask("family", "create", "cat", dataset_id, "--json").stdout)
    cancelled = ask("job", "cancel", job["id"])
    assert cancelled.exit_code == 0, cancelled.output
    followed = ask("job", "follow", job["id"], "--json")
    assert followed.exit_code == 1
    assert json.loads(followed.stdout)["outcome"] == "cancelled"


def test_a_family_is_continued_on_another_base(ask, dataset_id):
    job = json.loads(ask("family", "create", "dog", dataset_id, "--json").stdout)
    assert job["model"] == "hashing"
    ask("job", "cancel", job["id"])
    ask("job", "follow", job["id"])
    told = ask("family", "estimate", "dog", "--base", "double")
    assert told.exit_code == 0, told.output
    made = ask("family", "continue", "dog", "--base", "double", "--json")
    assert made.exit_code == 0, made.output
    job = json.loads(made.stdout)
    assert job["model"] == "double"
    ask("job", "cancel", job["id"])
    ask("job", "follow", job["id"])
    for what in ("estimate", "continue"):
        refused = ask("family", what, "dog", "--base", "nothing")
        assert refused.exit_code == 2
        assert "invalid_reference" in refused.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["family", "show", "nobody"],
        ["family", "estimate", "new", "ds_none"],
        ["family", "estimate", "new", "--from", "hashing"],
        ["family", "estimate", "new", "ds_none", "--base", "double"],
        ["family", "create", "new", "ds_none", "--steps", "1"],
        ["family", "continue", "nobody", "--follow"],
        ["family", "switch", "nobody@1", "on"],
        ["job", "show", "ftj_none"],
        ["job", "follow", "ftj_none"],
        ["job", "list", "--status", "done"],
        ["job", "list", "--kind", "nap"],
    ],
)
def test_what_cannot_be_used(ask, arguments):
    assert ask(*arguments).exit_code == 2


def test_no_server(run):
    for command in (["family", "list"], ["job", "list"]):
        assert run(*command, "--url", "http://127.0.0.1:1").exit_code == 3


def test_a_shadow_scores_what_the_family_answered_and_feedback_says_who_was_right(
    ask, http, family, server
):
    refused = ask("family", "shadow", "router", "router")
    assert (refused.exit_code, "router itself" in refused.stderr) == (2, True), refused.stderr
    assert ask("family", "shadow", "router", "nobody").exit_code == 2
    assert ask("family", "shadow", "nobody", "hashing").exit_code == 2
    assert "There is no shadow" in ask("family", "shadow", "router").stdout
    before = post(http, "/v1/decide", one_request(model="router", store=True))
    set_it = ask("family", "shadow", "router", "hashing", "--share", "1")
    assert set_it.exit_code == 0, set_it.stderr

    given = [one_request(batch, model="router", store=True) for batch in (0, 1)]
    answers = [post(http, "/v1/decide", one) for one in given]
    post(http, "/v1/decide", one_request(model="router", store=False))
    post(http, "/v1/decide", one_request(model="hashing", store=True))
    tops = [one["decisions"]["team"]["top"] for one in answers]
    expected = [
        post(http, "/v1/decide", {**one, "model": "hashing", "store": False})["decisions"]["team"]
        for one in given
    ]

    def compared():
        report = json.loads(ask("family", "shadow", "router", "--json").stdout)
        return report if report["answers"] == 2 else None

    report = wait_until(compared, 30)
    figures = report["decisions"]["team"]
    n_agreed = sum(top == one["top"] for top, one in zip(tops, expected, strict=True))
    assert (figures["n"], figures["agreement"]["value"]) == (2, n_agreed / 2)
    assert figures["observed"] == 0
    post(http, "/v1/feedback", {"decision_id": answers[0]["id"], "outcomes": {"team": tops[0]}})
    post(http, "/v1/feedback", {"decision_id": before["id"], "outcomes": {"team": tops[0]}})
    figures = compared()["decisions"]["team"]
    is_same = expected[0]["top"] == tops[0]
    counted = [figures[name] for name in ("both_right", "family_right", "shadow_right")]
    assert counted == [int(is_same), int(not is_same), 0]
    assert figures["family_accuracy"]["value"] == 1

    shown = ask("family", "shadow", "router").stdout
    assert "hashing beside router: 2 answers" in shown
    assert ask("family", "shadow", "router", "--off").stdout == "Ended.\n"
    assert json.loads(ask("family", "shadow", "router", "--json").stdout)["shadow"] is None
    assert ask("family", "shadow", "router", "hashing", "--off").exit_code == 2
