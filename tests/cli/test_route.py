"""``steelyard route``: fitted on a dataset, shown, called by its name, and removed."""

from __future__ import annotations

import json

import httpx
import pytest

from steelyard.serving.connected.declarations import declared_in
from steelyard.serving.connected.declared import ConnectedModel, write_models
from support.datasets.dataset_rows import ROUTE, make_row_dict
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until

N = 40
LABELS = ["billing", "support", "other"]


def label_of(context):
    """Return the label that a context is sure to have."""
    return LABELS[int(context.split()[1]) % 3]


def knowing(path, body):
    """Answer as a server of the wire ``systemone`` that knows the label."""
    answers = {}
    for name, question in body["questions"].items():
        right = label_of(body["state"])
        shares = {one: 0.9 if one == right else 0.05 for one in question["criteria"]}
        answers[name] = {"type": "choice", "choice": right, "probabilities": shares}
    return {"answers": answers}


@pytest.fixture
def far():
    with remote_model(knowing) as far:
        yield far


@pytest.fixture
def served(tmp_path, far):
    """A server with a model that guesses, one that knows, and rows of a dataset."""
    home = tmp_path / "home"
    write_models(home, {"far": ConnectedModel(wire="systemone", url=far.url, price_in="0.02")})
    with live_server(home=str(home), prices="hashing=1") as server:
        rows = []
        for n in range(2 * N):
            context = f"Invoice {n} was paid twice."
            targets = {"route": label_of(context)}
            rows.append(make_row_dict(context, decisions=[ROUTE], targets=targets))
        sides = {"training": rows[:N], "evaluation": rows[N:]}
        made = httpx.post(f"{server.url}/v1/datasets", json={"name": "rows", **sides}, timeout=60)
        yield server, made.json()["id"], home


@pytest.fixture
def ask(run, served):
    _, _, home = served
    return lambda *words: run("route", *words, "--home", str(home))


@pytest.fixture
def fit(ask, served):
    server, dataset, _ = served

    def fit(*words, name="both", models="hashing,far"):
        return ask("fit", name, dataset, "--models", models, "--url", server.url, *words)

    return fit


@pytest.mark.slow
def test_a_route_is_fitted_called_shown_and_removed(fit, ask, served, run):
    server, dataset, home = served
    fitted = fit("--min-accuracy", "0.8", "--json")
    assert fitted.exit_code == 0, fitted.stderr
    report = json.loads(fitted.stdout)
    training, held_out = report["training"], {one["name"]: one for one in report["held_out"]}
    assert list(held_out) == ["both", "hashing", "far"]
    assert training["accuracy"]["value"] >= 0.8
    assert report["certified"] == {"accuracy": 0.8, "confidence": 0.95}
    assert held_out["far"]["accuracy"]["value"] == 1
    both = held_out["both"]
    assert both["accuracy"]["low"] <= both["accuracy"]["value"] <= both["accuracy"]["high"]
    assert 0 < both["share_escalated"]["value"] < 1
    assert held_out["far"]["price_usd_per_1000"]["value"] == pytest.approx(
        20 * held_out["hashing"]["price_usd_per_1000"]["value"]
    )
    # Each pays for the first model, and for the second where it is asked.
    assert both["price_usd_per_1000"]["value"] == pytest.approx(
        held_out["hashing"]["price_usd_per_1000"]["value"]
        + both["share_escalated"]["value"] * held_out["far"]["price_usd_per_1000"]["value"],
        rel=0.01,
    )
    threshold = report["route"]["steps"][0]["threshold"]
    assert declared_in(server.services.settings).routes["both"].steps[0].threshold == threshold
    wait_until(lambda: server.services.models.find("both") is not None)
    request = {"context": f"Invoice {N} was paid twice.", "decisions": [ROUTE], "model": "both"}
    answer = httpx.post(f"{server.url}/v1/decide", json=request).json()
    assert answer["decisions"]["route"]["route"][0]["model"] == "hashing"

    assert json.loads(ask("list", "--json").stdout)["both"]["dataset"] == dataset
    assert "hashing, far" in ask("list").stdout
    shown = ask("show", "both")
    assert f"{threshold:.4f}" in shown.stdout
    assert f"{dataset}, version 1" in shown.stdout
    assert json.loads(ask("show", "both", "--json").stdout) == report["route"]
    refused = run("model", "remove", "far", "--home", str(home))
    assert refused.exit_code == 2
    assert "steelyard route remove both" in refused.stderr
    assert ask("remove", "both").exit_code == 0
    assert ask("remove", "both").exit_code == 2
    assert ask("show", "both").exit_code == 2
    assert json.loads(ask("list", "--json").stdout) == {}
    assert run("model", "remove", "far", "--home", str(home)).exit_code == 0


@pytest.mark.slow
def test_a_fit_has_exactly_the_servers_figures(fit, served):
    server = served[0]
    report = json.loads(fit("--max-share", "0.4", "--json").stdout)
    wait_until(lambda: server.services.models.find("both") is not None)
    n_right = n_escalated = 0
    for n in range(N, 2 * N):
        context = f"Invoice {n} was paid twice."
        request = {"context": context, "decisions": [ROUTE], "model": "both"}
        result = httpx.post(f"{server.url}/v1/decide", json=request).json()["decisions"]["route"]
        n_right += result["top"] == label_of(context)
        n_escalated += len(result["route"]) == 2
    measured = report["held_out"][0]
    assert measured["accuracy"]["value"] == pytest.approx(n_right / N)
    assert measured["share_escalated"]["value"] == pytest.approx(n_escalated / N)


@pytest.mark.slow
def test_a_price_bounds_it_and_the_text_has_the_figures(fit):
    alone = json.loads(fit("--max-share", "0", "--json").stdout)["held_out"][1]
    most = str(alone["price_usd_per_1000"]["value"] * 8)
    assert "--replace" in fit("--max-cost", most).stderr
    fitted = fit("--max-cost", most, "--replace")
    assert fitted.exit_code == 0, fitted.stderr
    assert "USD PER 1,000" in fitted.stdout
    assert "steelyard decide request.json --model both" in fitted.stdout


@pytest.mark.parametrize(
    ("words", "given", "match"),
    [
        ([], {}, "Give one of"),
        (["--min-accuracy", "0.5", "--max-share", "0.5"], {}, "Give one of"),
        (["--max-share", "0.5"], {"models": "hashing"}, "two to 4 models"),
        (["--max-share", "0.5"], {"models": "hashing,hashing"}, "each once"),
        (["--max-share", "0.5"], {"models": "hashing,nobody"}, "'nobody' is no base"),
        (["--max-share", "0.5"], {"name": "hashing"}, "choose another name"),
        (["--max-share", "0.5"], {"name": "far"}, "choose another name"),
        (["--max-share", "0.5"], {"name": "a b"}, "cannot be a model's name"),
        (["--max-share", "0.5", "--rows", "5"], {}, "there are 5; add rows"),
        (["--max-cost", "0"], {}, "the first model alone costs"),
    ],
)
def test_routes_that_cannot_be_fitted_are_reported_and_not_kept(fit, served, words, given, match):
    refused = fit(*words, **given)
    assert refused.exit_code == 2, refused.stderr
    assert match in " ".join(refused.stderr.split())
    assert declared_in(served[0].services.settings).routes == {}


@pytest.mark.slow
def test_an_accuracy_that_rows_cannot_certify_is_kept_on_demand_alone(fit, served):
    # 40 right answers of 40 certify .928 at most.
    refused = fit("--min-accuracy", "0.95")
    assert refused.exit_code == 1, refused.stderr
    words = " ".join(refused.stderr.split())
    assert (
        "40 evaluation rows cannot certify an accuracy of 0.95 with a confidence of 0.95" in words
    )
    assert "19 more evaluation rows would certify it" in words
    assert declared_in(served[0].services.settings).routes == {}
    uncertified = fit("--min-accuracy", "0.95", "--anyway", "--json")
    assert uncertified.exit_code == 0, uncertified.stderr
    assert json.loads(uncertified.stdout)["certified"] is None
    assert "Not certified" in uncertified.stderr
    assert list(declared_in(served[0].services.settings).routes) == ["both"]


@pytest.mark.slow
def test_unanswered_rows_are_reported(fit, far):
    far.fault = "status 400"
    failed = fit("--max-share", "0.5")
    assert failed.exit_code == 2
    assert "status 400" in failed.stderr


@pytest.mark.slow
def test_a_model_is_asked_under_pressure(served, run):
    server, dataset, home = served
    words = ("model", "stress", "hashing", dataset, "--rows", "3", "--url", server.url)
    refused = run(*words, "--home", str(home), stdin="n\n")
    assert refused.exit_code != 0
    assert "39 requests of 3 rows" in refused.output
    assert "cost about 0.0" in refused.output
    done = run(*words, "--home", str(home), "--yes", "--json")
    assert done.exit_code == 0, done.output
    shares = {line["pressure"]: line["flipped"] for line in json.loads(done.stdout)["lines"]}
    assert shares["repeated call"]["value"] == 0
    listed = httpx.get(f"{server.url}/v1/models/hashing").json()
    assert listed["stress"]["contexts"] == 3
