"""A route called by its name: which model decides, its cost, and the report of a failing model."""

from __future__ import annotations

import datetime as dt

import httpx
import pytest

from faults.processes import CREDIT, open_account
from steelyard.app.bootstrap import open_service
from steelyard.app.job_runtime import open_worker
from steelyard.client import Client, ClientOptions
from steelyard.ledger.money import from_usd
from steelyard.serving.connected.declared import (
    FILE,
    ConnectedModel,
    read_file,
    read_models,
    write_models,
    write_routes,
)
from steelyard.serving.connected.declared_route import DeclaredRoute, RouteStep
from steelyard.serving.reader.declaring import reader_model
from steelyard.settings import InvalidSettingError, read_settings
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import ROUTE, make_row_dict, make_rows
from support.models.entailment_models import write_encoder
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until

CLIENT = httpx.Client(timeout=60)
DECISIONS = [
    {"id": f"d{n}", "question": f"Where does number {n} go?", "outcomes": ["refunds", "sales"]}
    for n in range(8)
]
BODY = {"context": "Invoice 118 was paid twice.", "decisions": DECISIONS, "model": "both"}
#: Between the top probabilities that the test double has for these decisions.
THRESHOLD = 0.75


@pytest.fixture(scope="module", autouse=True)
def closing():
    yield
    CLIENT.close()


def systemone(path, body):
    """Answer as a server of the wire ``systemone``, rather sure of the first label."""
    answers = {}
    for name, question in body["questions"].items():
        labels = list(question["criteria"])
        rest = 0.2 / (len(labels) - 1)
        probabilities = {label: 0.8 if label == labels[0] else rest for label in labels}
        answers[name] = {"type": "choice", "choice": labels[0], "probabilities": probabilities}
    return {"answers": answers}


def through(*steps, **given):
    """Return a route: a model and its threshold by turns, the last without one."""
    pairs = zip(steps[::2], [*steps[1::2], 0.0], strict=True)
    return DeclaredRoute(
        steps=tuple(RouteStep(model=model, threshold=threshold) for model, threshold in pairs),
        **given,
    )


BOTH = through("hashing", THRESHOLD, "far")


def open_home(home):
    with open_service(read_settings({"home": str(home), "engine": "hashing"}, environ={})):
        pass


@pytest.fixture
def far():
    with remote_model(systemone) as far:
        yield far


@pytest.fixture
def serve(tmp_path, far):
    def serve(route=BOTH, price_in="0.02", **given):
        home = tmp_path / "home"
        model = ConnectedModel(wire="systemone", url=far.url, price_in=price_in, timeout_s=5)
        write_models(home, {"far": model})
        write_routes(home, {"both": route})
        return live_server(**{"home": str(home), "prices": "hashing=7", **given})

    return serve


def ask(server, path="/v1/decide", headers=None, **changes):
    return CLIENT.post(f"{server.url}{path}", json={**BODY, **changes}, headers=headers)


def test_unsure_decisions_of_the_first_model_go_on_in_one_request(serve, far):
    with serve() as server:
        alone = ask(server, model="hashing").json()["decisions"]
        sure = {one for one, result in alone.items() if result["p_top"] >= THRESHOLD}
        assert 0 < len(sure) < len(DECISIONS)
        answer = ask(server).json()
        assert answer["model"] == "both"
        assert len(far.asked) == 1
        assert len(far.asked[0][1]["questions"]) == len(DECISIONS) - len(sure)
        for one, result in answer["decisions"].items():
            first = {"model": "hashing", "p_top": alone[one]["p_top"]}
            if one in sure:
                assert result == {**alone[one], "route": [first]}
            else:
                assert result["route"] == [first, {"model": "far", "p_top": pytest.approx(0.8)}]
                assert result["probabilities"] == pytest.approx({"refunds": 0.8, "sales": 0.2})
                assert result["p_top"] == result["route"][-1]["p_top"]
        assert "route" not in alone["d0"]


def test_a_request_costs_the_sum_of_its_models(serve, far):
    with serve() as server:
        answer = ask(server).json()
        escalated = [one for one in DECISIONS if len(answer["decisions"][one["id"]]["route"]) == 2]

        def tokens_of(model, decisions):
            return ask(server, model=model, decisions=decisions).json()["usage"]["input_tokens"]

        first, second = tokens_of("hashing", DECISIONS), tokens_of("far", escalated)
        assert second < first
        assert answer["usage"]["input_tokens"] == first
        assert answer["usage"]["prompt_tokens"] == first + second
        assert from_usd(answer["charge"]["amount_usd"]) == 7 * first + 20 * second
        # The most that it may cost is held: every decision asked of every model.
        assert from_usd(answer["charge"]["reserved_usd"]) == 27 * first
        quote = ask(server, "/v1/decide/estimate").json()
        assert from_usd(quote["maximum_charge_usd"]) == 27 * first
        # Before another model or behind one, where that abstains: both as if asked alone.
        unsure = [{**each, "policy": {"abstain_below": 0.99}} for each in DECISIONS[:2]]
        alone = {
            model: from_usd(
                ask(server, model=model, decisions=unsure).json()["charge"]["amount_usd"]
            )
            for model in ("both", "hashing")
        }
        for model, other in (("both", "hashing"), ("hashing", "both")):
            fields = {"model": model, "fallback": [other], "escalate": True}
            further = ask(server, decisions=unsure, **fields).json()
            assert (further["model"], further["fallback"]["reason"]) == (other, "unsure")
            assert from_usd(further["charge"]["amount_usd"]) == sum(alone.values())


def test_an_explanation_follows_the_models_that_answered(serve, far):
    text = "Hello there. Invoice 118 was paid twice."
    with serve() as server:
        plain = ask(server, context=text).json()
        n_asked = [len(result["route"]) for result in plain["decisions"].values()]
        assert {1, 2} == set(n_asked)
        far.asked.clear()
        answer = ask(server, context=text, explain=True).json()
        less = {
            model: [
                ask(server, context=part, model=model).json()
                for part in text.replace(". ", ".|").split("|")[::-1]
            ]
            for model in ("hashing", "far")
        }
    for (name, result), n in zip(plain["decisions"].items(), n_asked, strict=True):
        others = less[("hashing", "far")[n - 1]]
        effects = sorted(answer["explanation"][name], key=lambda effect: effect["start"])
        assert [effect["change"] for effect in effects] == pytest.approx(
            [
                result["p_top"] - other["decisions"][name]["probabilities"][result["top"]]
                for other in others
            ],
            abs=1e-6,
        )
    # The text and its two parts: each model is paid for what it read of them.
    first = plain["usage"]["input_tokens"] + sum(
        other["usage"]["input_tokens"] for other in less["hashing"]
    )
    assert answer["usage"]["input_tokens"] == first
    assert first < answer["usage"]["prompt_tokens"] < 2 * first
    assert [len(body["questions"]) for _, body in far.asked[:3]] == [n_asked.count(2)] * 3


def test_an_account_pays_the_sum_and_nothing_stays_held(serve, tmp_path):
    with serve(accounts="on") as server:
        _, secret = open_account(tmp_path / "home")
        headers = {"Authorization": f"Bearer {secret}"}
        charge = ask(server, headers=headers).json()["charge"]["amount_usd"]
        account = CLIENT.get(f"{server.url}/v1/account", headers=headers).json()
        assert from_usd(account["wallet"]["reserved_usd"]) == 0
        assert from_usd(account["wallet"]["balance_usd"]) == CREDIT - from_usd(charge)


def test_a_repeated_key_asks_and_charges_no_second_time(serve, far):
    with serve() as server:
        key = {"Idempotency-Key": "route-1"}
        first = ask(server, headers=key)
        again = ask(server, headers=key)
        assert again.content == first.content
        assert len(far.asked) == server.scorer.n_requests == 1


@pytest.mark.parametrize(
    ("threshold", "n_asked"), [(0.0, 0), (1.0, len(DECISIONS))], ids=["none", "every one"]
)
def test_a_threshold_lets_none_or_every_decision_go_on(serve, far, threshold, n_asked):
    with serve(through("hashing", threshold, "far")) as server:
        answer = ask(server).json()
        assert sum(len(body["questions"]) for _, body in far.asked) == n_asked
        decided = {result["route"][-1]["model"] for result in answer["decisions"].values()}
        assert decided == {"far" if n_asked else "hashing"}


def test_three_models_follow_one_another(serve, far):
    route = through("hashing", THRESHOLD, "other", THRESHOLD, "far")
    with serve(route, base_models="other=hashing") as server:
        answer = ask(server).json()
        lengths = set()
        for result in answer["decisions"].values():
            entries = result["route"]
            lengths.add(len(entries))
            assert [one["model"] for one in entries] == ["hashing", "other", "far"][: len(entries)]
            assert all(one["p_top"] < THRESHOLD for one in entries[:-1])
            if len(entries) < 3:
                assert entries[-1]["p_top"] >= THRESHOLD
        assert len(lengths) > 1


def test_a_model_that_carries_weighs_the_answer_before_in(serve):
    steps = (
        RouteStep(model="hashing", threshold=1.0),
        RouteStep(model="far", carries=2.0),
    )
    with serve(DeclaredRoute(steps=steps)) as server:
        alone = ask(server, model="hashing").json()["decisions"]
        for name, result in ask(server).json()["decisions"].items():
            first, second = (p**2 for p in alone[name]["probabilities"].values())
            share = first * 0.8 / (first * 0.8 + second * 0.2)
            expected = {"refunds": share, "sales": 1 - share}
            assert result["probabilities"] == pytest.approx(expected, rel=1e-5)
            assert result["route"][-1] == {"model": "far", "p_top": pytest.approx(result["p_top"])}


def test_likely_unstated_decisions_go_on(serve, far, tmp_path):
    steps = (RouteStep(model="nli", max_unstated=0.4), RouteStep(model="hashing"))
    with serve() as server:
        home = tmp_path / "home"
        far_model = ConnectedModel(wire="systemone", url=far.url)
        nli = reader_model(write_encoder(tmp_path / "nli"))
        write_models(home, {"far": far_model, "nli": nli})
        write_routes(home, {"both": DeclaredRoute(steps=steps)})
        wait_until(lambda: "nli" in str(ask(server).json()), 20)
        questions = [{"id": "d", "kind": "binary", "question": "Is the customer happy?"}]
        for context, models in (
            ("The customer is happy.", ["nli"]),
            ("A parcel came.", ["nli", "hashing"]),
        ):
            answer = ask(server, context=context, decisions=questions).json()["decisions"]["d"]
            assert [step["model"] for step in answer["route"]] == models


def test_the_callers_temperature_changes_no_way(serve):
    with serve() as server:
        plain, soft = ask(server).json(), ask(server, temperature=3).json()
        for one, result in plain["decisions"].items():
            assert soft["decisions"][one]["route"] == result["route"]
            assert soft["decisions"][one]["p_top"] < result["p_top"]


@pytest.mark.parametrize(
    ("policy", "least"),
    [
        ({"policy": {"abstain_below": 0.79}}, 0.79),
        ({"costs": {"refunds": 10, "sales": 10}, "abstain": {"cost": 2.1}}, 0.79),
        ({"policy": {"abstain_below": 0.9}}, 0.9),
    ],
    ids=["unsure", "dear", "to the end"],
)
def test_abstentions_of_a_policy_go_on(serve, policy, least):
    with serve() as server:
        decisions = [{**one, **policy} for one in DECISIONS]
        answers = ask(server, decisions=decisions).json()["decisions"].values()
        for result in answers:
            first, *later = result["route"]
            assert bool(later) == (first["p_top"] < least)
            assert (result["action"] == "abstain") == (result["p_top"] < least)
        assert {len(result["route"]) for result in answers} == {1, 2}


def test_a_later_model_that_fails_is_the_routes_failure(serve, far):
    far.fault = "status 400"
    with serve() as server:
        refused = ask(server, fallback="none")
        assert_canonical_error(refused, 503, "engine_unavailable", retryable=True, message="400")
        stood_in = ask(server, fallback=["hashing"]).json()
        assert (stood_in["model"], stood_in["fallback"]["from"]) == ("hashing", "both")
        assert from_usd(stood_in["charge"]["amount_usd"]) == 7 * stood_in["usage"]["input_tokens"]
        far.fault = ""
        assert ask(server, fallback="none").json()["model"] == "both"


def test_a_first_model_that_fails_leaves_the_others_alone(serve, far):
    with serve() as server:
        server.scorer.failure = RuntimeError("made to fail")
        refused = ask(server, fallback="none")
        assert_canonical_error(refused, 503, "engine_unavailable", retryable=True)
        assert far.asked == []


def test_it_stands_in_only_where_it_is_listed(serve, far):
    with serve(prices="hashing=100", price_in="0") as server:
        server.scorer.failure = RuntimeError("made to fail")
        assert ask(server, model="hashing").status_code == 503
        assert far.asked == []
        server.scorer.failure = None
        far.fault = "status 400"
        listed = ask(server, model="far", fallback=["both"])
        assert listed.status_code == 503


def test_who_goes_away_is_given_up_at_the_model_that_is_asked(serve, far):
    far.fault = "hangs"
    with serve() as server:
        model = server.services.models.find("both")
        prepared = model.decide.prepare(BODY)
        future = model.queue.submit(prepared.rendered, 30)
        wait_until(lambda: far.asked)
        assert model.queue.n_waiting == 1
        assert future.cancel()
        wait_until(lambda: model.queue.n_waiting == 0)


def test_it_is_listed_ready_and_in_the_playground_like_a_model(serve):
    with serve() as server:
        listed = {one["id"]: one for one in CLIENT.get(f"{server.url}/v1/models").json()["data"]}
        assert listed["both"]["engine"] == "route"
        assert listed["both"]["decision_price_nano"] == "27"
        assert "hashing where its top probability is 0.75" in listed["both"]["description"]
        assert CLIENT.get(f"{server.url}/v1/ready").json()["parts"]["route:both"] == "ok"
        metrics = CLIENT.get(f"{server.url}/metrics").text
        assert 'steelyard_queue_waiting{model="both"} 0.0' in metrics
        assert ask(server, "/v1/playground/decide").status_code == 422  # it costs
    with serve(prices="", price_in="0") as server:
        assert ask(server, "/v1/playground/decide").json()["model"] == "both"


def test_no_family_starts_from_it(serve):
    with serve() as server, Client(ClientOptions(url=server.url)) as client:
        dataset = client.datasets.create("rows", make_rows(20))
        body = {"family": "grown", "dataset_id": dataset.id, "from": "both"}
        refused = CLIENT.post(f"{server.url}/v1/families", json=body)
        assert_canonical_error(refused, 422, "invalid_request", message="a route")


def test_a_stored_answer_keeps_who_decided(serve):
    with serve() as server, Client(ClientOptions(url=server.url)) as client:
        answer = client.decide(**{**BODY, "store": True})
        stored = client.stored_decision(answer.id)
        assert stored.results == answer.decisions
        assert answer.decisions["d0"].route[0].model == "hashing"
        assert "asked: hashing (0." in answer._repr_html_()


def test_other_clients_ask_it_too(serve):
    questions = {
        "team": {"type": "choice", "instructions": "Which?", "criteria": {"a": "x", "b": "y"}}
    }
    body = {"model": "both", "state": "Paid twice.", "questions": questions}
    with serve() as server:
        answered = CLIENT.post(f"{server.url}/v1/systemone", json=body)
        assert answered.status_code == 200, answered.text
        assert answered.json()["answers"]["team"]["choice"] in {"a", "b"}


def test_a_running_server_follows_the_file(serve, tmp_path, far):
    home = tmp_path / "home"
    with serve() as server:
        key = server.services.models.find("both").evaluation_key
        write_routes(home, {"both": through("far", 0.9, "hashing"), "more": BOTH})
        wait_until(lambda: server.services.models.find("more") is not None)
        assert server.services.models.find("both").evaluation_key != key
        assert ask(server).json()["decisions"]["d0"]["route"][0]["model"] == "far"
        write_routes(home, {})
        wait_until(lambda: server.services.models.find("both") is None)
        assert ask(server).status_code == 404


def test_it_is_evaluated_beside_its_models(serve, tmp_path):
    with (
        serve(jobs="off") as server,
        open_worker(server.services.settings),
        Client(ClientOptions(url=server.url)) as client,
    ):
        rows = [
            make_row_dict(f"Invoice {n} was paid twice.", decisions=[ROUTE], targets=target)
            for n, target in enumerate([{"route": "billing"}, {"route": "other"}] * 15)
        ]
        # All of them: of a few that were drawn, none may be one that goes on.
        dataset = client.datasets.create("rows", evaluation=rows)
        made = client.evaluations.create(dataset.id, ["hashing", "far", "both"]).data
        ended = [client.evaluations.wait(one) for one in made]
        assert [one.status for one in ended] == ["succeeded"] * 3
        assert [one.model_label for one in ended] == ["hashing", "far", "both"]
        losses = [one.metrics.loss for one in ended]
        assert losses[2] not in losses[:2]
        details = [client.evaluations.detail(one.id) for one in ended]
        # A route's rows wait in several queues, some of which share passes.
        assert details[2].latency_ms is None
        first, second, both = (detail.input_tokens for detail in details)
        prices = client.evaluations.frontier(dataset.id).data
        paid = {one.model: float(one.price_usd_per_1000) for one in prices}
        assert first == second
        # As many tokens at 27 nano-dollars as cost 7 each for all and 20 for those that went on.
        assert first * 7 / 27 < both < first
        assert paid["hashing"] < paid["both"] < paid["hashing"] + paid["far"]


class TestDeclared:
    """``models.toml`` on routes."""

    def test_written_files_are_read_and_each_kind_leaves_the_other(self, tmp_path):
        models = {"far": ConnectedModel(wire="chat", url="http://127.0.0.1:1")}
        routes = {
            "both": through(
                "a", 0.8125, "far", dataset="ds_1", version=2, added=dt.date(2026, 1, 2)
            )
        }
        write_models(tmp_path, models)
        write_routes(tmp_path, routes)
        write_models(tmp_path, models)
        assert (read_models(tmp_path), read_file(tmp_path).routes) == (models, routes)
        write_routes(tmp_path, {})
        assert read_models(tmp_path) == models

    @pytest.mark.parametrize(
        ("routes", "match"),
        [
            ({"a b": BOTH}, "a b"),
            ({"jev-1": BOTH}, "jev-1"),
            ({"both": through("far", 0.5, "far")}, "once"),
            ({"both": DeclaredRoute(steps=(RouteStep(model="a", threshold=0.5),) * 2)}, "once"),
            (
                {
                    "both": DeclaredRoute(
                        steps=(RouteStep(model="a"), RouteStep(model="b", threshold=0.5))
                    )
                },
                "stands",
            ),
            ({"far": BOTH}, "a connected model and a route"),
            ({"both": BOTH, "more": through("both", 0.5, "far")}, "route itself"),
        ],
    )
    def test_routes_that_cannot_be_walked_are_refused(self, tmp_path, routes, match):
        write_models(tmp_path, {"far": ConnectedModel(wire="chat", url="http://127.0.0.1:1")})
        with pytest.raises(InvalidSettingError, match=match):
            write_routes(tmp_path, routes)
        assert read_file(tmp_path).routes == {}

    @pytest.mark.parametrize(
        "text",
        [
            "[[routes.a.steps]]\nmodel = 'b'",
            "[[routes.a.steps]]\nmodel = 'b'\nthreshold = 1.5\n[[routes.a.steps]]\nmodel = 'c'",
            "[routes.a]\nsteps = []",
        ],
        ids=["one model", "no probability", "none"],
    )
    def test_a_file_that_cannot_be_used_is_told(self, tmp_path, text):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(InvalidSettingError, match=FILE):
            read_file(tmp_path)

    def test_a_missing_model_is_reported_and_keeps_the_running_route(self, serve, tmp_path):
        home = tmp_path / "home"
        with serve() as server:
            write_routes(home, {"both": through("hashing", 0.5, "gone")})
            write_models(home, {**read_models(home), "more": read_models(home)["far"]})
            wait_until(lambda: server.services.models.find("both") is not None)
            assert ask(server).json()["model"] == "both"
        with pytest.raises(InvalidSettingError, match="gone"):
            open_home(home)

    def test_a_name_of_the_servers_own_is_refused(self, tmp_path):
        write_routes(tmp_path, {"hashing": through("a", 0.5, "b")})
        with pytest.raises(InvalidSettingError, match="'hashing' names a model of this server"):
            open_home(tmp_path)
