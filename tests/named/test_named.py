"""Named decisions over HTTP, by the client: made, answered, moved, rolled back and archived."""

from __future__ import annotations

import httpx
import pytest

import steelyard
from steelyard import errors
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TEXT = "Invoice 118 was paid twice; please send the money back."
TEAM = {"id": "team", "question": "Who is it for?", "outcomes": ["billing", "shipping"]}
REFUND = {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}


@pytest.fixture(scope="module")
def client():
    with live_server() as server, steelyard.connect(server.url) as connected:
        yield connected


def test_a_version_answers_as_the_same_request_in_full_does(client):
    client.named_decisions.create("triage", [{**TEAM, "abstain": {"min_probability": 1}}])
    in_full = client.decide(TEXT, [{**TEAM, "abstain": {"min_probability": 1}}])
    answer = client.decision("triage").decide(TEXT, metadata={"ticket": 7})
    assert answer.decisions == in_full.decisions
    assert answer.decisions["team"].action == "abstain"
    assert (answer.decision.reference, answer.decision.alias) == ("triage@1", "production")
    assert in_full.decision is steelyard.client.calls.UNSET
    stored = client.stored_decision(answer.id)
    assert (stored.named, stored.metadata) == (answer.decision, {"ticket": 7})
    assert [stored.id for stored in client.decision_log(named="triage").data] == [answer.id]
    assert client.decision_log(named="triage@2").data == []
    assert client.decision_summary(named="triage@1").answers == 1
    estimate = {"decision": "triage@1", "context": TEXT}
    assert httpx.post(f"{client.url}/v1/decide/estimate", json=estimate).status_code == 200


def test_an_alias_points_to_the_version_that_it_was_moved_to(client):
    named = client.named_decisions
    named.create("route", [TEAM], owner="ann")
    second = named.add_version("route", [TEAM, REFUND], note="asks for refunds too")
    assert (second.version, named.add_version("route", [TEAM, REFUND])) == (2, second)
    assert named.move("route", "staging", 2).latest == 2
    staged = client.decision("route@staging").decide(TEXT)
    assert (staged.decision.version, list(staged.decisions)) == (2, ["team", "refund"])
    assert client.decision("route").decide(TEXT).decision.version == 1
    with pytest.raises(errors.AliasChangedError, match="points to version 1, not to version 2"):
        named.move("route", "production", 2, expected=2)
    why = {"reason": "it was right more often", "overrule": "nothing is labelled yet"}
    moved = named.move("route", "production", 2, expected=1, **why)
    assert {alias.alias: alias.version for alias in moved.aliases} == {
        "production": 2,
        "staging": 2,
    }
    assert client.decision("route").decide(TEXT).decision.version == 2
    named.roll_back("route", reason="too dear")
    assert client.decision("route").decide(TEXT).decision.version == 1
    assert client.decision("route@2").decide(TEXT).decision.alias is None
    steps = [(move.alias, move.from_version, move.to_version) for move in named.history("route")]
    assert steps == [
        ("production", 2, 1),
        ("production", 1, 2),
        ("staging", None, 2),
        ("production", None, 1),
    ]
    assert [move.reason for move in named.history("route")][:2] == [
        "too dear",
        "it was right more often",
    ]
    assert next(iter(named.history("route"))).moved_by == "local"
    assert [version.version for version in named.versions("route", page_size=1)] == [2, 1]
    assert named.version("route", "production").decisions == [TEAM]
    assert named.change("route", owner="", description="for the desk").owner is None
    with pytest.raises(errors.NothingToRollBackError):
        named.roll_back("route", "staging")


def test_an_archived_decision_answers_no_requests_until_it_is_back(client):
    named = client.named_decisions
    named.create("old", [TEAM])
    before = client.decision("old").decide(TEXT, idempotency_key="once")
    assert named.archive("old").archived_at is not None
    with pytest.raises(errors.NamedDecisionArchivedError, match="bring it back"):
        client.decision("old@1").decide(TEXT)
    assert client.decision("old").decide(TEXT, idempotency_key="once") == before
    assert [old.name for old in named.list(archived=True)] == ["old"]
    assert "old" not in {listed.name for listed in named.list()}
    named.archive("old", archived=False)
    assert client.decision("old").decide(TEXT).decision.version == 1


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ({"decision": "triage", "decisions": [TEAM]}, "decisions", "decision or decisions"),
        ({"decision": "triage", "model": "router"}, "model", "version of a named decision has it"),
        ({"decision": "triage@"}, "decision", "give a name such as support_triage"),
        ({"decision": ["triage"]}, "decision", "give a text"),
    ],
)
def test_fields_beside_a_named_decision_are_refused(client, body, path, message):
    answer = httpx.post(f"{client.url}/v1/decide", json={"context": TEXT, **body})
    assert answer.status_code == 422
    (violation,) = answer.json()["error"]["details"]
    assert violation["path"] == ["body", path]
    assert message in violation["message"]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"name": "a\n"}, ["name"]),
        ({"owner": "Mia\0"}, ["owner"]),
        ({"description": "For\0"}, ["description"]),
        ({"note": "\0"}, ["note"]),
        ({"model": "decision:triage"}, ["model"]),
        ({"fallback": ["hashing", "decision:triage"]}, ["fallback", 1]),
    ],
)
def test_invalid_versions_are_refused_with_the_place(client, changed, path):
    body = {"name": "refused", "decisions": [TEAM], **changed}
    answer = httpx.post(f"{client.url}/v1/named-decisions", json=body)
    assert_canonical_error(answer, 422, "invalid_request", path=["body", *path])
    assert "refused" not in {listed.name for listed in client.named_decisions.list()}


@pytest.mark.parametrize(
    ("alias", "body", "path"),
    [
        ("production", {"version": 1, "overrule": "  \n"}, ["body", "overrule"]),
        ("production", {"version": 1, "reason": "\0"}, ["body", "reason"]),
        ("staging%40", {"version": 1}, ["path", "alias"]),
        ("staging/share", {"to": "b\n", "share": 0.5}, ["body", "to"]),
        ("production/share", {"to": "proposed", "share": 0.5}, ["body", "to"]),
    ],
)
def test_a_move_that_cannot_be_says_where_it_is_wrong(client, alias, body, path):
    named = client.named_decisions
    if "moved" not in {listed.name for listed in named.list()}:
        named.create("moved", [TEAM])
        named.move("moved", "proposed", 1)
    answer = httpx.put(f"{client.url}/v1/named-decisions/moved/aliases/{alias}", json=body)
    assert_canonical_error(answer, 422, answer.json()["error"]["code"], path=path)


def test_unknown_or_invalid_names_are_refused(client):
    named = client.named_decisions
    named.create("sound", [TEAM])
    for reference, problem in (
        ("nothing", "no named decision"),
        ("sound@9", "no version 9"),
        ("sound@canary", "no alias 'canary'"),
    ):
        with pytest.raises(errors.NotFoundError, match=problem):
            client.decision(reference).decide(TEXT)
    with pytest.raises(errors.NamedDecisionExistsError, match="add a version"):
        named.create("sound", [TEAM])
    with pytest.raises(errors.InvalidRequestError, match="blank"):
        named.add_version("sound", [{**TEAM, "question": " "}])
    with pytest.raises(errors.InvalidReferenceError, match="name of an alias"):
        named.move("sound", "7", 1)
    with pytest.raises(errors.NotFoundError):
        named.move("sound", "staging", 2)


DESK = {"id": "desk", "question": "What is wanted?", "outcomes": ["refund", "exchange"]}
AMOUNT = {"amount": {"type": "decimal"}, "country": {"type": "text", "optional": True}}
RULES = [{"when": "p.refund > 0 and amount < 50", "action": "refund"}]


def test_rules_of_a_version_act_on_its_fields_and_are_stored_with_the_answer(client):
    named = client.named_decisions
    named.create("refunds", [DESK])
    ruled = named.add_version("refunds", [DESK], fields=AMOUNT, rules=RULES, otherwise="person")
    assert (ruled.fields, ruled.rules, ruled.otherwise) == (AMOUNT, RULES, "person")
    assert named.add_version("refunds", [DESK]).version == 1  # its hash is what it was
    refunds = client.decision("refunds@2")
    given = {"amount": "49.90", "country": "AT"}
    answer = refunds.decide(TEXT, fields=given, idempotency_key="one")
    assert (answer.rule.action, answer.rule.number) == ("refund", 1)
    assert answer.rule.why == "refund above 0 and amount below 50"
    assert refunds.decide(TEXT, fields=given, idempotency_key="one") == answer
    with pytest.raises(errors.IdempotencyConflictError):
        refunds.decide(TEXT, fields={"amount": 1}, idempotency_key="one")
    stored = client.stored_decision(answer.id)
    assert (stored.rule, stored.request["fields"]) == (answer.rule, given)
    without_text = refunds.decide(TEXT, fields=given | {"amount": 50}, store="features")
    assert (without_text.rule.action, without_text.rule.number) == ("person", None)
    stored = client.stored_decision(without_text.id)
    assert (stored.rule, stored.request["fields"]) == (without_text.rule, {"amount": 50})
    n_answers = client.decision_summary(named="refunds").answers
    with pytest.raises(
        errors.InvalidRequestError, match=r"fields.amount is missing; refunds@2 needs"
    ):
        refunds.decide(TEXT)
    with pytest.raises(errors.InvalidRequestError, match=r"fields.amount is no field of refunds@1"):
        client.decision("refunds@1").decide(TEXT, fields=given)
    with pytest.raises(errors.InvalidRequestError, match=r"rules\[0\].when names amnt.*column 1"):
        named.add_version(
            "refunds", [DESK], rules=[{"when": "amnt < 5", "action": "a"}], otherwise="b"
        )
    assert client.decision_summary(named="refunds").answers == n_answers
    assert client.decision("refunds").decide(TEXT).rule is steelyard.client.calls.UNSET
