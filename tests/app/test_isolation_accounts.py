"""Two accounts on one server: neither sees, names or disturbs the other's things.

Every route of the table is walked, so a new route is held to this by being there. A parameter of a
kind that the walk has no thing of must be given one here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, product
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import to_builtins
from sqlalchemy import Connection

from faults.processes import MODEL, ServeProcess, serve_process
from steelyard.accounts.service import KEY_START, AccountService
from steelyard.alarms.store import insert_alarm
from steelyard.alarms.wire import AlarmEvidence, AlarmReference, DecisionsBehind
from steelyard.app.application import ROUTES
from steelyard.billing import applying
from steelyard.http.routing import Access, Route
from steelyard.ids import new_id
from steelyard.serving.connected.declared import ConnectedModel, write_models
from steelyard.storage import open_state
from steelyard.wire.measures import Measure
from support.api.path_parameters import PARAMETERS
from support.models.setup_rows import add_setup

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

CONTEXT = "The parcel of Ms Quillfeather came open."
#: Of the form of a key, and nobody's.
WRONG_KEY = KEY_START + "wrongwrongwrongwrongwrongwrongwrongwrongwro"
DECIDE = {
    "context": CONTEXT,
    "decisions": [{"id": "d", "kind": "binary", "question": "Is it damaged?"}],
}
#: Writes that take an idempotency key: path to a body that is answered 200.
KEYED_WRITES: dict[str, tuple[dict[str, Any], str]] = {
    "/v1/decide": (DECIDE, "context"),
    "/v1/systemone": (
        {
            "model": "jev-latest",
            "state": CONTEXT,
            "questions": {"d": {"type": "noul", "instructions": "Is it damaged?"}},
        },
        "state",
    ),
    "/v1/decisions": (
        {
            "model": MODEL,
            "input": CONTEXT,
            "questions": [{"type": "predicate", "instructions": "Is it damaged?"}],
        },
        "input",
    ),
}
ROWS = [{**DECIDE, "context": f"{CONTEXT} {n}", "targets": {"d": "yes"}} for n in range(10)]
DATASET = {"name": "Quillfeather parcels", "examples": ROWS}
#: Enough to start a family on.
MANY = {
    "name": "Quillfeather family",
    "examples": [
        {**DECIDE, "context": f"{n}: {CONTEXT}", "targets": {"d": ("yes", "no")[n % 2]}}
        for n in range(60)
    ],
}
NDJSON = "application/x-ndjson"
#: Bodies with which a route would answer on a thing of one's own; an empty object elsewhere.
JSON = "application/json"
ANSWER = {"row": 0, "outcomes": {"d": "yes"}, "reviewer": "ann"}
BODIES: dict[str, tuple[str, object]] = {
    "PATCH /v1/datasets/{dataset}": (JSON, {"name": "Taken"}),
    "POST /v1/datasets/{dataset}/versions": (JSON, {"examples": ROWS[:1]}),
    "POST /v1/datasets/{dataset}/versions/upload": (NDJSON, ROWS[0]),
    "POST /v1/datasets/{dataset}/rows/similar": (JSON, {"context": "parcel"}),
    "POST /v1/evaluations/{evaluation}/policy": (JSON, {"decision_id": "d"}),
    "POST /v1/evaluations/{evaluation}/costs": (
        JSON,
        {"decision_id": "d", "false_positive": 1, "false_negative": 2},
    ),
    "POST /v1/families/{family}/switch": (JSON, {"on": True}),
    "POST /v1/families/{family}/keep-warm": (JSON, {"enabled": True}),
    "POST /v1/families/{family}/rollback": (JSON, {"to": "quillfeather@1", "discard": []}),
    "POST /v1/models/{model}/switch": (JSON, {"on": True}),
    "POST /v1/drafts/{draft}/edits": (JSON, {"edits": [{"row": 0, "action": "accept"}]}),
    "POST /v1/drafts/{draft}/bulk": (JSON, {"action": "accept", "expected": 10}),
    "POST /v1/drafts/{draft}/assignments": (JSON, {"reviewers": ["ann"]}),
    "POST /v1/drafts/{draft}/assignments/move": (JSON, {"from": "ann"}),
    "POST /v1/drafts/{draft}/answers": (JSON, ANSWER),
    "POST /v1/drafts/{draft}/answers/import": (JSON, {"answers": [ANSWER]}),
    "POST /v1/drafts/{draft}/outcomes": (JSON, {"decision": "d", "outcomes": {}}),
    "POST /v1/families/{family}/bound": (JSON, {"error": 0.1}),
    "POST /v1/families/{family}/novelty": (JSON, {"false_alarms": 0.05}),
    "POST /v1/drafts/{draft}/seal": (JSON, {"as": "dataset"}),
    "POST /v1/labeling/jobs/{labeling_job}/finalize": (JSON, {"row_indices": [0]}),
    "POST /v1/models/{model}/keep-warm": (JSON, {"enabled": True}),
    "POST /v1/families/{family}/shadow": (JSON, {"model": MODEL}),
    "PATCH /v1/prompt-tuning/jobs/{prompt_tuning_job}": (JSON, {"label_issues_dismissed": True}),
}
BODIES["POST /v1/named-decisions/{named_decision}/versions"] = (
    JSON,
    {"decisions": DECIDE["decisions"]},
)
BODIES["PUT /v1/named-decisions/{named_decision}/growth"] = (JSON, {"policy": "rows"})
BODIES["PUT /v1/named-decisions/{named_decision}/aliases/{alias}"] = (JSON, {"version": 1})
BODIES["PUT /v1/named-decisions/{named_decision}/aliases/{alias}/share"] = (
    JSON,
    {"to": "staging", "share": 0.1},
)
BODIES["POST /v1/evaluations/{evaluation}/threshold"] = (
    JSON,
    {"decision_id": "d", "outcome": "yes", "precision": 0.9},
)
QUERIES = {"GET /v1/maps/{map}/values": {"decision": "d"}}
#: Calls that name a thing elsewhere than in their path: how its id begins, and the call.
REFERENCES: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "POST /v1/feedback": (
        "dec_",
        lambda thing: {"json": {"decision_id": thing, "outcomes": {"d": "yes"}}},
    ),
    "POST /v1/evaluations": (
        "ds_",
        lambda thing: {"json": {"dataset_id": thing, "models": [MODEL]}},
    ),
    "GET /v1/evaluations": ("ds_", lambda thing: {"params": {"dataset_id": thing}}),
    "GET /v1/drafts/agreement": ("ds_", lambda thing: {"params": {"dataset_id": thing}}),
    "GET /v1/evaluations/frontier": ("ds_", lambda thing: {"params": {"dataset": thing}}),
    "POST /v1/labeling/jobs": (
        "src_",
        lambda thing: {"json": {"source_id": thing, "decisions": DECIDE["decisions"]}},
    ),
    "POST /v1/prompt-tuning/jobs": ("ds_", lambda thing: {"json": {"dataset_id": thing}}),
    "GET /v1/prompt-tuning/jobs": ("ds_", lambda thing: {"params": {"dataset_id": thing}}),
    "GET /v1/evaluations/compare": (
        "eval_",
        lambda thing: {"params": {"before": thing, "after": thing}},
    ),
}
REFERENCES.update(
    (
        f"POST {path}",
        ("ds_", lambda thing: {"json": {"family": "new-parcels", "dataset_id": thing}}),
    )
    for start in ("/v1/families", "/v1/fine-tuning/jobs")
    for path in (start, f"{start}/estimate")
)
REFERENCES["POST /v1/drafts"] = ("ds_", lambda thing: {"json": {"dataset_id": thing}})
REFERENCES["GET /v1/drafts"] = ("ds_", lambda thing: {"params": {"dataset_id": thing}})
REFERENCES["GET /v1/fine-tuning/jobs"] = (
    "ds_",
    lambda thing: {"params": {"dataset_id": thing}},
)
#: Routes that answer about what they are told in the query, and list nothing of themselves.
NO_LISTS = {"/v1/evaluations/compare", "/v1/evaluations/frontier"}


@dataclass
class Account:
    """One account, its calls, and its things."""

    name: str
    id: str
    key_ids: list[str]
    secret: str
    http: httpx.Client
    decisions: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    datasets: list[str] = field(default_factory=list)
    evaluations: list[str] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    labeling: list[str] = field(default_factory=list)
    tunings: list[str] = field(default_factory=list)
    purchases: list[str] = field(default_factory=list)
    webhooks: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    maps: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)

    @property
    def things(self) -> list[str]:
        """Ids of all that is the account's."""
        made = [*self.decisions, *self.operations, *self.datasets, *self.evaluations]
        made += [*self.maps, *self.named]
        made += [*self.families, *self.jobs, *self.drafts, *self.labeling, *self.tunings]
        return [
            self.id,
            *self.key_ids,
            *self.purchases,
            *self.webhooks,
            *self.alarms,
            *made,
        ]

    def post(self, path: str, body: object, key: str | None = None) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.http.post(path, json=body, headers=headers)


@dataclass
class World:
    """A server with two accounts."""

    server: ServeProcess
    owner: Account
    other: Account


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("isolation") / "home"
    variables = {
        "STEELYARD_PRICES": f"{MODEL}=7",
        "STEELYARD_LOG_LEVEL": "debug",
        "STEELYARD_JOBS": "off",  # what is queued stays as it is
    }
    teacher = ConnectedModel(wire="decide", url="http://127.0.0.1:9", teacher=True)
    write_models(home, {"teacher": teacher})
    with serve_process(home, "--accounts", "on", **variables) as server:
        owner, other = make_accounts(home, server.url)
        server.start()
        with owner.http, other.http:
            for account in name_decisions(owner, other):
                answer = account.post("/v1/decide", DECIDE, "shared").json()
                account.decisions.append(answer["id"])
                account.operations.append(answer["charge"]["operation_id"])
                made = account.post("/v1/datasets", DATASET)
                assert made.status_code in {200, 201}, made.text
                account.datasets.append(made.json()["id"])
                hook = {"url": "https://hooks.example/q", "events": ["job.succeeded"]}
                made = account.post("/v1/integrations/webhooks", hook)
                assert made.is_success, made.text
                account.webhooks.append(made.json()["id"])
            wanted = {"dataset_id": owner.datasets[0], "models": [MODEL]}
            begun = owner.post("/v1/evaluations", wanted)
            assert begun.is_success, begun.text
            owner.evaluations.append(begun.json()["data"][0]["id"])
            grown_on = owner.post("/v1/datasets", MANY).json()["id"]
            owner.datasets.insert(0, grown_on)
            wanted = {"family": "quillfeather", "dataset_id": grown_on}
            queued = owner.post("/v1/families", wanted)
            assert queued.is_success, queued.text
            owner.families.append("quillfeather")
            owner.jobs.append(queued.json()["id"])
            queued = owner.post("/v1/maps", {"dataset_id": owner.datasets[-1]})
            assert queued.is_success, queued.text
            owner.maps.append(queued.json()["id"])
            begun = owner.post("/v1/drafts", {"dataset_id": owner.datasets[-1]})
            assert begun.is_success, begun.text
            owner.drafts.append(begun.json()["id"])
            source = owner.http.post(
                "/v1/labeling/sources?name=Quillfeather",
                content=json.dumps({"context": CONTEXT, "decisions": DECIDE["decisions"]}),
                headers={"Content-Type": NDJSON},
            ).json()["id"]
            queued = owner.post("/v1/labeling/jobs", {"source_id": source})
            assert queued.is_success, queued.text
            owner.labeling += [source, queued.json()["id"]]
            queued = owner.post("/v1/prompt-tuning/jobs", {"dataset_id": grown_on})
            assert queued.is_success, queued.text
            owner.tunings.append(queued.json()["id"])
            report = {"decision_id": owner.decisions[0], "outcomes": {"d": "yes"}}
            assert owner.post("/v1/feedback", report).status_code == 200
            kept = referring_columns(owner)
            yield World(server, owner, other)
            assert referring_columns(owner) == kept  # whatever the other account tried


def name_decisions(owner: Account, other: Account) -> tuple[Account, Account]:
    """Make a named decision of each, and return them."""
    for account, name in ((owner, "quillfeather-desk"), (other, "medlar-desk")):
        named = {"name": name, "decisions": DECIDE["decisions"]}
        assert account.post("/v1/named-decisions", named).is_success
        account.named.append(name)
        other_question = {"decisions": [{**DECIDE["decisions"][0], "question": "Was it open?"}]}
        assert account.post(f"/v1/named-decisions/{name}/versions", other_question).is_success
        comparison = account.post("/v1/named-comparisons", {"decision": name, "version": 2})
        assert comparison.is_success, comparison.text
        account.named.append(comparison.json()["id"])
    return owner, other


def referring_columns(account: Account) -> list[object]:
    """Return the columns that no test here changes."""
    listed = account.http.get("/v1/datasets").json()["data"]
    rows = [account.http.get(f"/v1/datasets/{one}/rows").json() for one in account.datasets]
    return [[(dataset["id"], dataset["name"]) for dataset in listed], rows]


def make_accounts(home: Path, url: str) -> list[Account]:
    state = open_state(f"sqlite:///{home / 'state.sqlite'}")
    try:
        accounts = AccountService(state, accounts_enabled=True)
        made = []
        for name in ("Quince Traders", "Medlar Works"):
            account = accounts.create_account(name)
            accounts.add_credit(account.id, 10**12)
            keys = [accounts.create_key(account=account.id, name=f"{name} {n}") for n in "123"]
            http = httpx.Client(
                base_url=url, headers={"Authorization": f"Bearer {keys[0].secret}"}, timeout=60
            )
            key_ids = [key.key.id for key in keys]
            made.append(Account(name, account.id, key_ids, keys[0].secret, http))
            made[-1].purchases.append(new_id("pur"))
            begin = partial(
                applying.begin,
                purchase_id=made[-1].purchases[0],
                account_id=account.id,
                provider="manual",
                amount_nano=10**10,
                now=account.created_at,
                lifetime_s=1e9,
            )
            state.write_now(begin)
            made[-1].alarms.append(new_id("alarm"))
            state.write_now(partial(raise_alarm, alarm_id=made[-1].alarms[0], account=account))
            made[-1].jobs.append(add_setup(state, account))
    finally:
        state.close()
    return made


def raise_alarm(connection: Connection, alarm_id: str, account: Any) -> None:
    evidence = AlarmEvidence(
        figure="failed",
        estimate=Measure(value=0.5, low=0.4, high=0.6, n=100),
        reference=AlarmReference(kind="window"),
        reference_value=0.0,
        reference_n=1000,
        since=0.0,
        until=1.0,
        decisions=DecisionsBehind(since=0.0, until=1.0, model=MODEL),
    )
    values = {
        "id": alarm_id,
        "account_id": account.id,
        "model": MODEL,
        "version": "",
        "decision": "",
        "watch": "errors",
        "message": f"{account.name}: half failed.",
        "created_at": 1.0,
        "evidence": json.dumps(to_builtins(evidence)).encode(),
    }
    insert_alarm(connection, values)


KEYED = [
    route for route in ROUTES if route.access in {Access.KEYED, Access.OPERATOR} or route.takes_keys
]


def parameters_of(route: Route) -> list[str]:
    return re.findall(r"{(\w+)}", route.path)


def test_every_parameter_of_a_path_is_walked() -> None:
    named = {parameter for route in ROUTES for parameter in parameters_of(route)}
    assert named <= PARAMETERS.keys(), (
        "give the owner's account a thing of each kind, and name it here"
    )


def unknown_like(thing: str) -> str:
    """Return an unused name of the same form; a family's is free to choose."""
    return new_id(thing.partition("_")[0]) if "_" in thing else "nobody"


def refusal(response: httpx.Response, thing: str) -> tuple[int, Any]:
    """Return a refusal without its request's own ids."""
    error = response.json().get("error") or response.json()
    shown = {name: error[name] for name in error if name not in {"request_id", "requestId"}}
    return response.status_code, json.loads(json.dumps(shown).replace(thing, "THING"))


def body_of(route: Route) -> dict[str, Any]:
    if not route.is_write:
        return {"params": QUERIES.get(f"{route.method} {route.path}", {})}
    media_type, body = BODIES.get(f"{route.method} {route.path}", (JSON, {}))
    return {"content": json.dumps(body), "headers": {"Content-Type": media_type}}


@pytest.mark.parametrize(
    "route",
    [route for route in KEYED if parameters_of(route)],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_a_path_to_a_foreign_thing_is_as_one_to_nothing(world: World, route: Route) -> None:
    for foreign in world.owner.things:
        unknown = unknown_like(foreign)
        refusals = []
        for thing in (foreign, unknown):
            path = re.sub(r"{\w+}", thing, route.path)
            response = world.other.http.request(route.method, path, **body_of(route))
            assert response.status_code >= 400, response.text
            refusals.append(refusal(response, thing))
        assert refusals[0] == refusals[1]
        if all(foreign.startswith(PARAMETERS[name]) for name in parameters_of(route)):
            expected = 403 if route.for_operators else 422 if is_by_number(route) else 404
            assert refusals[0][0] == expected, refusals


def is_by_number(route: Route) -> bool:
    """Whether a route takes a family's model alone, whose form no id has."""
    return route.is_write and "{model}" in route.path


@pytest.mark.parametrize(
    "route",
    [route for route in KEYED if "{model}" in route.path],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_a_number_of_a_foreign_family_is_as_one_of_none(world: World, route: Route) -> None:
    refusals = []
    for thing in (*world.owner.families, "nobody"):
        path = route.path.replace("{model}", f"{thing}%401")
        response = world.other.http.request(route.method, path, **body_of(route))
        assert response.status_code == 404, response.text
        refusals.append(refusal(response, thing))
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize("call", REFERENCES)
def test_a_call_that_names_a_foreign_thing_is_as_one_that_names_nothing(
    world: World, call: str
) -> None:
    prefix, arguments = REFERENCES[call]
    method, path = call.split(" ")
    named = [thing for thing in world.owner.things if thing.startswith(prefix)]
    assert named
    for foreign in named:
        answers = []
        for thing in (foreign, unknown_like(foreign)):
            response = world.other.http.request(method, path, **arguments(thing))
            answers.append(refusal(response, thing))
        assert answers[0] == answers[1]
        status, body = answers[0]
        assert status == 404 or (status == 200 and body["data"] == [])


def test_feedback_does_not_reveal_a_foreign_decision(world: World) -> None:
    refusals = []
    for thing in (world.owner.decisions[0], new_id("dec")):
        for outcomes in ({"d": "yes"}, {"d": "no outcome"}, {"no decision": "yes"}):
            body = {"decision_id": thing, "outcomes": outcomes}
            response = world.other.post("/v1/feedback", body)
            assert response.status_code == 404
            refusals.append(refusal(response, thing))
    assert len({json.dumps(shown) for shown in refusals}) == 1


def query_of(world: World, route: Route) -> dict[str, str]:
    """Return the query that a list needs, of the account that calls."""
    known = () if route.query is None else route.query.__annotations__
    return {name: world.other.datasets[0] for name in ("dataset_id", "dataset") if name in known}


@pytest.mark.parametrize(
    "route",
    [
        route
        for route in KEYED
        if route.query is not None and "cursor" in route.query.__annotations__
    ],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_a_foreign_cursor_is_as_an_unknown_one(world: World, route: Route) -> None:
    for foreign in world.owner.things:
        refusals = []
        for thing in (foreign, unknown_like(foreign)):
            path = route.path.replace("{webhook}", world.other.webhooks[0])
            path = path.replace("{named_decision}", world.other.named[0])
            response = world.other.http.get(
                path, params={**query_of(world, route), "cursor": thing}
            )
            assert response.status_code == 422, response.text
            assert response.json()["error"]["details"][0]["path"] == ["query", "cursor"]
            refusals.append(refusal(response, thing))
        assert refusals[0] == refusals[1]


@pytest.mark.parametrize(
    "route",
    [
        route
        for route in KEYED
        if route.method == "GET" and not parameters_of(route) and route.path not in NO_LISTS
    ],
    ids=lambda route: route.path,
)
def test_nothing_foreign_is_listed(world: World, route: Route) -> None:
    response = world.other.http.get(route.path, params=query_of(world, route))
    assert response.status_code == (403 if route.for_operators else 200), response.text
    for word in (*world.owner.things, world.owner.name):
        assert word not in response.text


def test_each_account_sees_its_own(world: World) -> None:
    for account in (world.owner, world.other):
        summary = account.http.get("/v1/account").json()
        assert (summary["user"]["id"], summary["user"]["name"]) == (account.id, account.name)
        listed = account.http.get("/v1/account/keys").json()["data"]
        assert {key["id"] for key in listed} == set(account.key_ids)


def test_a_page_goes_on_with_the_accounts_own(world: World) -> None:
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = world.other.http.get("/v1/account/keys", params={"limit": "1", **cursor}).json()
        seen += [key["id"] for key in page["data"]]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert sorted(seen) == sorted(world.other.key_ids)


@pytest.mark.parametrize("path", KEYED_WRITES)
def test_an_idempotency_key_is_the_accounts_own(world: World, path: str) -> None:
    body, text = KEYED_WRITES[path]
    key = f"order-118{path.replace('/', '-')}"
    mine = world.owner.post(path, body, key)
    assert mine.status_code == 200, mine.text
    # The same request and another one: with a foreign key, both are new.
    same = world.other.post(path, body, key)
    assert same.status_code == 200
    assert "Idempotency-Replayed" not in same.headers
    assert same.headers["X-Operation-ID"] != mine.headers["X-Operation-ID"]
    changed = {**body, text: "Something else."}
    assert world.other.post(path, changed, key).status_code == 409
    assert world.owner.post(path, changed, f"{key}-2").status_code == 200
    assert world.other.post(path, body, f"{key}-2").status_code == 200
    again = world.owner.post(path, body, key)
    assert again.content == mine.content
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_key_of_a_report_is_the_accounts_own(world: World) -> None:
    answers = []
    for account in (world.owner, world.other):
        body = {"decision_id": account.decisions[0], "outcomes": {"d": "no"}}
        answers.append(account.post("/v1/feedback", body, "the-same"))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].json()["decision_id"] == world.other.decisions[0]


def test_the_key_of_a_dataset_is_the_accounts_own(world: World) -> None:
    first, second = (world.other.post("/v1/datasets", DATASET, key) for key in ("a", "b"))
    assert first.status_code in {200, 201}, first.text
    assert first.json()["id"] != second.json()["id"]
    assert world.other.post("/v1/datasets", DATASET, "a").json() == first.json()
    listed = world.owner.http.get("/v1/datasets").json()["data"]
    assert [dataset["id"] for dataset in listed] == world.owner.datasets


def test_one_accounts_work_costs_the_other_nothing(world: World) -> None:
    before = world.other.http.get("/v1/account").json()["wallet"]
    assert world.owner.post("/v1/decide", DECIDE).json()["charge"]["amount_usd"] != "0"
    assert world.other.http.get("/v1/account").json()["wallet"] == before


def test_secrets_are_nowhere(world: World) -> None:
    """Log at debug level, error bodies, figures, and the bytes of every file of the home."""
    secrets = [world.owner.secret, world.other.secret, WRONG_KEY]
    told = []
    http = httpx.Client(base_url=world.server.url, timeout=60)
    forms = cycle(("Bearer {}", "Basic {}", "{}", "Bearer {}x"))
    for route, secret in product(ROUTES, secrets):
        path = re.sub(r"{\w+}", "nothing", route.path)
        body = b"{" if route.is_write else None
        headers = {"Authorization": next(forms).format(secret)}
        response = http.request(route.method, path, content=body, headers=headers)
        told.append(f"{response.headers} {response.text}")
    http.close()
    assert any("invalid_api_key" in text for text in told)
    text = "\n".join([*told, world.server.logged])
    assert '"level":"INFO"' in world.server.logged
    files = [path for path in world.server.home.rglob("*") if path.is_file()]
    assert {"state.sqlite", "state.sqlite-wal"} <= {path.name for path in files}
    stored = b"".join(path.read_bytes() for path in files)
    for secret in secrets:
        hidden = secret[len(KEY_START) + 8 :]
        assert hidden not in text
        assert hidden.encode() not in stored
    # The context is stored for feedback, in the database and nowhere else.
    assert "Quillfeather" not in world.server.logged
    assert b"Quillfeather" in stored
