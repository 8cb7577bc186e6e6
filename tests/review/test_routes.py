"""Drafts over HTTP: begin, edit, look, undo, seal; replays and refusals."""

from __future__ import annotations

import json

import pytest

from steelyard.client import Client
from steelyard.client.options import ClientOptions
from steelyard.client.tables import convert, guess_mapping, read_table, record_answers
from steelyard.errors import DraftConflictError, DraftSealedError, NotFoundError, SteelyardError
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

N_ROWS = 20


@pytest.fixture
def dataset_id(client):
    made = client.post("/v1/datasets", json={"name": "tickets", "examples": make_rows(N_ROWS)})
    assert made.is_success, made.text
    return made.json()["id"]


@pytest.fixture
def draft(client, dataset_id):
    begun = client.post("/v1/drafts", json={"dataset_id": dataset_id})
    assert begun.status_code == 200, begun.text
    return begun.json()


def test_a_review_from_its_beginning_to_its_seal(client, dataset_id, draft):
    assert (draft["name"], draft["rows"], draft["revision"]) == ("tickets", N_ROWS, 0)
    path = f"/v1/drafts/{draft['id']}"
    edits = [
        {"row": 0, "action": "relabel", "decision": "route", "outcome": "other", "seen": 0},
        {"row": 1, "action": "exclude", "note": "spam"},
    ]
    receipt = client.post(f"{path}/edits", json={"edits": edits, "reviewer": "ann"}).json()
    assert (receipt["edits"], receipt["revision"]) == (2, 2)
    assert [row["state"] for row in receipt["rows"]] == ["relabelled", "excluded"]
    bulk = {"action": "accept", "queue": "to_review", "text": "Invoice 7", "expected": 1}
    assert client.post(f"{path}/bulk", json=bulk).json()["edits"] == 1
    undone = client.post(f"{path}/undo", json={}).json()
    assert (undone["undone"], undone["revision"]) == (3, 4)
    assert client.post(f"{path}/redo", json={}).json()["revision"] == 5
    page = client.post(f"{path}/rows", json={"queue": "noted", "reviewer": "ann"}).json()
    assert [(row["row"], row["now"]["note"]) for row in page["data"]] == [(1, "spam")]
    assert page["counts"]["to_review"] == N_ROWS - 3
    history = client.get(f"{path}/edits", params={"row": 1}).json()
    assert [entry["note"] for entry in history["data"]] == ["spam"]
    sealed = client.post(f"{path}/seal", json={"as": "version", "revision": 5}).json()
    assert sealed["sealed"]["version"] == 2
    assert sealed["states"] == {
        "untouched": N_ROWS - 3,
        "accepted": 1,
        "skipped": 0,
        "relabelled": 1,
        "excluded": 1,
    }
    assert client.get(path).json() == sealed
    versions = client.get(f"/v1/datasets/{dataset_id}/versions").json()["data"]
    assert [(one["version"], one["rows"], one["added"]) for one in versions] == [
        (2, N_ROWS - 1, 1),
        (1, N_ROWS, N_ROWS),
    ]
    diff = client.get(f"/v1/datasets/{dataset_id}/diff").json()
    assert (diff["rows"], diff["removed"]) == (1, 2)
    assert client.delete(path).json() == {"id": draft["id"], "deleted": True}
    assert client.get(path).status_code == 404


def test_a_log_goes_with_the_dataset_that_it_is_about(client, dataset_id, draft):
    made = client.post("/v1/datasets", json={"name": "kept", "examples": make_rows(N_ROWS)}).json()
    kept = client.post("/v1/drafts", json={"dataset_id": made["id"]}).json()
    edit = {"row": 1, "action": "exclude", "note": "Ann Smith, 1 High Street"}
    for one in (draft, kept):
        path = f"/v1/drafts/{one['id']}"
        assert client.post(f"{path}/edits", json={"edits": [edit]}).is_success
        assert client.post(f"{path}/seal", json={"as": "dataset", "name": "made"}).is_success
    assert client.delete(f"/v1/datasets/{dataset_id}").is_success
    path = f"/v1/drafts/{draft['id']}"
    history = client.get(f"{path}/edits")
    assert "Ann Smith" not in history.text
    assert (history.json()["data"], history.json()["has_more"]) == ([], False)
    # The draft is listed as before, and answers as whatever is about a deleted dataset.
    listed = client.get("/v1/drafts", params={"dataset_id": dataset_id}).json()["data"]
    assert [(one["id"], one["status"], one["revision"]) for one in listed] == [
        (draft["id"], "sealed", 1)
    ]
    for refused in (client.get(path), client.post(f"{path}/edits", json={"edits": [edit]})):
        assert_canonical_error(refused, 410, "dataset_deleted")
    assert "Ann Smith" in client.get(f"/v1/drafts/{kept['id']}/edits").text
    assert client.delete(path).json()["deleted"]


def test_a_page_of_drafts(client, dataset_id, draft):
    other = client.post("/v1/drafts", json={"dataset_id": dataset_id, "name": "again"}).json()
    listed = client.get("/v1/drafts", params={"dataset_id": dataset_id}).json()["data"]
    assert {one["id"] for one in listed} == {draft["id"], other["id"]}
    sealed = {"dataset_id": dataset_id, "status": "sealed"}
    assert client.get("/v1/drafts", params=sealed).json()["data"] == []
    page = client.get("/v1/drafts", params={"dataset_id": dataset_id, "limit": 1}).json()
    assert page["has_more"]
    after = {"dataset_id": dataset_id, "cursor": page["next_cursor"]}
    rest = client.get("/v1/drafts", params=after).json()["data"]
    assert {page["data"][0]["id"], rest[0]["id"]} == {draft["id"], other["id"]}


def test_writes_replay(client, draft):
    path = f"/v1/drafts/{draft['id']}"
    body = {"edits": [{"row": 3, "action": "exclude"}]}
    calls = [
        ("edits", body),
        ("bulk", {"action": "accept", "expected": N_ROWS}),
        ("undo", {}),
        ("redo", {}),
        ("seal", {"as": "dataset", "name": "copy"}),
    ]
    for name, sent in calls:
        headers = {"Idempotency-Key": f"{draft['id']}-{name}"}
        first = client.post(f"{path}/{name}", json=sent, headers=headers)
        assert first.status_code == 200, first.text
        again = client.post(f"{path}/{name}", json=sent, headers=headers)
        assert again.content == first.content
        assert again.headers["Idempotency-Replayed"] == "true"


def test_every_wrong_field_is_listed(client, draft):
    edits = [{"row": -1, "action": "drop"}, {"row": 0, "action": "relabel", "colour": 1}]
    refused = client.post(f"/v1/drafts/{draft['id']}/edits", json={"edits": edits, "reviewer": ""})
    assert refused.status_code == 422
    paths = {tuple(one["path"]) for one in refused.json()["error"]["details"]}
    assert paths == {
        ("body", "edits", 0, "row"),
        ("body", "edits", 0, "action"),
        ("body", "edits", 1, "colour"),
        ("body", "edits", 1, "decision"),
        ("body", "edits", 1, "outcome"),
        ("body", "reviewer"),
    }
    wrong = {"queue": "mine", "filter": {"type": "nothing"}, "sort": {"by": "label"}, "limit": 0}
    refused = client.post(f"/v1/drafts/{draft['id']}/rows", json=wrong)
    paths = {tuple(one["path"]) for one in refused.json()["error"]["details"]}
    assert paths == {
        ("body", "reviewer"),
        ("body", "filter", "type"),
        ("body", "sort", "decision"),
        ("body", "sort", "outcome"),
        ("body", "limit"),
    }
    refused = client.post(
        f"/v1/drafts/{draft['id']}/seal", json={"as": "version", "name": "n"}
    ).json()
    assert refused["error"]["details"][0]["path"] == ["body", "name"]


def test_numbers_that_no_row_has_are_refused(client, dataset_id, draft):
    body = {"dataset_id": dataset_id, "version": 2**63}
    edits = {"edits": [{"row": 2**63, "action": "accept"}]}
    path = f"/v1/drafts/{draft['id']}"
    for refused, place in (
        (client.post("/v1/drafts", json=body), ["body", "version"]),
        (client.post(f"{path}/edits", json=edits), ["body", "edits", 0, "row"]),
        (client.get(f"{path}/edits", params={"row": 2**63}), ["query", "row"]),
        (client.get(f"{path}/edits", params={"after": 2**63}), ["query", "after"]),
    ):
        assert_canonical_error(refused, 422, "invalid_request", path=place)


def test_outcomes_are_named_described_and_merged(client, dataset_id, draft):
    path = f"/v1/drafts/{draft['id']}"
    edit = {"row": 0, "action": "relabel", "decision": "route", "outcome": "support"}
    assert client.post(f"{path}/edits", json={"edits": [edit]}).is_success
    changes = {
        "support": {"same_as": "other"},
        "other": {"name": "Other team", "description": "Not money"},
    }
    asked = {"decision": "route", "outcomes": changes, "reviewer": "ann"}
    assert client.post(f"{path}/outcomes", json=asked).json()["revision"] == 2
    listed = client.get(f"{path}/outcomes").json()
    refund, route = listed["data"]
    outcomes = {one["outcome"]: one for one in route["outcomes"]}
    assert (route["decision"], outcomes["support"]["same_as"]) == ("route", "other")
    # Rows are counted before merging: row 0 was billing.
    assert {name: one["rows"] for name, one in outcomes.items()} == {
        "billing": 6,
        "support": 8,
        "other": 6,
    }
    assert outcomes["other"]["name"] == "Other team"
    assert refund["fixed"].startswith("A yes/no decision")
    # Rows show the draft's names, and are edited by them.
    bulk = {
        "action": "relabel",
        "decision": "route",
        "outcome": "Other team",
        "expected": 1,
        "text": "Invoice 3",
    }
    assert client.post(f"{path}/bulk", json=bulk).json()["rows"][0]["state"] == "relabelled"
    same = {"row": 1, "action": "relabel", "decision": "route", "outcome": "Other team"}
    receipt = client.post(f"{path}/edits", json={"edits": [same]}).json()
    assert receipt["rows"][0]["state"] == "accepted"
    rows = client.post(f"{path}/rows", json={}).json()["data"]
    assert list(rows[0]["decisions"][0]["outcomes"]) == ["billing", "Other team"]
    assert [row["now"]["labels"]["route"] for row in rows[:4]] == [{"Other team": 1.0}] * 4
    # Undone, the version's names are back with what was relabelled, and redone, the draft's.
    for step, label in (("undo", "support"), ("redo", "Other team")):
        assert client.post(f"{path}/{step}", json={"reviewer": "ann"}).is_success
        row = client.post(f"{path}/rows", json={"limit": 1}).json()["data"][0]
        assert row["now"]["labels"]["route"] == {label: 1.0}
    assert client.post(f"{path}/seal", json={"as": "version"}).is_success
    page = client.get(f"/v1/datasets/{dataset_id}/rows").json()["data"]
    assert len(page) == N_ROWS
    assert {json.dumps(row["decisions"][0]["outcomes"]) for row in page} == {
        '{"billing": "Money already taken", "Other team": "Not money"}'
    }
    # The decision has one wording: rows of CSV can name it.
    readiness = client.get(f"/v1/datasets/{dataset_id}").json()["prompt_tuning"]["decisions"]
    assert readiness[0]["reason"] != "conflicting_decision"
    csv = "context,route\nInvoice 99 is due.,Other team\n"
    added = client.post(
        f"/v1/datasets/{dataset_id}/versions", content=csv, headers={"Content-Type": "text/csv"}
    )
    assert added.is_success, added.text


def test_a_seal_leaves_out_outcomes_without_rows(client, dataset_id, draft):
    path = f"/v1/drafts/{draft['id']}"
    bulk = {
        "action": "exclude",
        "expected": 7,
        "filter": {"type": "expected", "decision": "route", "outcome": "support"},
    }
    assert client.post(f"{path}/bulk", json=bulk).is_success
    sealed = {"as": "dataset", "name": "two", "drop_outcomes": True}
    made = client.post(f"{path}/seal", json=sealed).json()["sealed"]["dataset_id"]
    row = client.get(f"/v1/datasets/{made}/rows", params={"limit": 1}).json()["data"][0]
    assert list(row["decisions"][0]["outcomes"]) == ["billing", "other"]


def test_a_guideline_is_that_of_all_rows_and_the_next_version_carries_it(client, dataset_id, draft):
    path = f"/v1/drafts/{draft['id']}"

    def guidelines(decision, rows):
        return {row["decisions"][decision].get("guideline") for row in rows}

    def rows_of_version():
        return client.post(f"/v1/datasets/{dataset_id}/rows/search", json={"limit": 100}).json()

    before = rows_of_version()
    text = "# Money\n\nA *voucher* is **no** money."
    asked = {"decision": "refund", "guideline": text, "reviewer": "ann"}
    assert client.post(f"{path}/outcomes", json=asked).is_success
    for step, expected in (("undo", None), ("redo", text)):
        assert client.post(f"{path}/{step}", json={"reviewer": "ann"}).is_success
        assert guidelines(1, client.post(f"{path}/rows", json={}).json()["data"]) == {expected}
    # Outcomes and a guideline are changed one without the other.
    asked = {"decision": "route", "guideline": "Ask Ann."}
    assert client.post(f"{path}/outcomes", json=asked).is_success
    for changes in ({"other": {"name": "rest"}}, {}):
        asked = {"decision": "route", "outcomes": changes}
        assert client.post(f"{path}/outcomes", json=asked).is_success
    listed = {one["decision"]: one for one in client.get(f"{path}/outcomes").json()["data"]}
    assert (listed["refund"]["guideline"], listed["refund"]["has_new_guideline"]) == (text, True)
    assert listed["route"]["guideline"] == "Ask Ann."
    assert client.post(f"{path}/seal", json={"as": "version"}).is_success
    after = rows_of_version()
    assert guidelines(0, after["data"]) == {"Ask Ann."}
    assert guidelines(1, after["data"]) == {text}
    # They are the rows of before, for families too, and rows to come have it.
    assert (after["version"], after["indexes"]) == (2, before["indexes"])
    assert [row["context"] for row in after["data"]] == [row["context"] for row in before["data"]]
    csv = "context,refund\nInvoice 99 is due.,yes\n"
    kind = {"Content-Type": "text/csv"}
    added = client.post(f"/v1/datasets/{dataset_id}/versions", content=csv, headers=kind)
    assert added.json()["version"] == 3
    assert rows_of_version()["data"][-1]["decisions"][0]["guideline"] == text

    begun = client.post("/v1/drafts", json={"dataset_id": dataset_id}).json()
    path = f"/v1/drafts/{begun['id']}"
    edits = [{"row": 0, "action": "relabel", "decision": "route", "outcome": "support"}]
    assert client.post(f"{path}/edits", json={"edits": edits}).is_success
    asked = {"decision": "route", "guideline": ""}
    assert client.post(f"{path}/outcomes", json=asked).is_success
    assert client.post(f"{path}/seal", json={"as": "version"}).is_success
    rows = rows_of_version()
    assert guidelines(0, [*rows["data"][:-2], rows["data"][-1]]) == {None}
    assert rows["indexes"] == [*range(1, N_ROWS + 2)]


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"decision": "route"}, "outcomes"),
        ({"decision": "route", "guideline": " \n"}, "guideline"),
        ({"decision": "route", "guideline": "a\0"}, "guideline"),
        ({"decision": "team", "guideline": "Ask Ann."}, "decision"),
    ],
)
def test_a_guideline_that_cannot_be_is_refused(client, draft, request_, place):
    refused = client.post(f"/v1/drafts/{draft['id']}/outcomes", json=request_)
    assert_canonical_error(refused, 422, "invalid_request", path=["body", place])


@pytest.mark.parametrize(
    ("decision", "changes", "place", "message"),
    [
        ("route", {"biling": {"name": "Billing"}}, "biling", "not an outcome"),
        ("route", {"billing": {"same_as": "biling"}}, "same_as", "not an outcome"),
        ("route", {"billing": {"name": " "}}, "name", "blank"),
        ("route", {"billing": {"same_as": "billing"}}, "same_as", "merged into this one"),
        (
            "route",
            {"billing": {"same_as": "other"}, "support": {"same_as": "other"}},
            "outcomes",
            "keep two apart",
        ),
        ("route", {"billing": {"name": "abstain"}}, "outcomes", "abstain"),
        ("refund", {"yes": {"name": "Yes"}}, "decision", "yes/no"),
        ("team", {}, "decision", "no row of the version asks"),
    ],
)
def test_outcomes_that_cannot_be_are_refused(client, draft, decision, changes, place, message):
    asked = {"decision": decision, "outcomes": changes}
    answer = client.post(f"/v1/drafts/{draft['id']}/outcomes", json=asked)
    (violation,) = assert_canonical_error(answer, 422, "invalid_request")["details"]
    assert violation["path"][-1] == place
    assert message in violation["message"]


def test_rows_with_rewards_are_relabelled_with_rewards(client):
    rows = make_rows(N_ROWS)
    for row in rows:
        del row["targets"]
        row["rewards"] = {"refund": {"yes": 1, "no": -1}}
    made = client.post("/v1/datasets", json={"name": "rewards", "examples": rows}).json()
    draft = client.post("/v1/drafts", json={"dataset_id": made["id"]}).json()
    path = f"/v1/drafts/{draft['id']}"
    edit = {"row": 0, "action": "relabel", "decision": "refund"}
    right = {**edit, "rewards": {"yes": 0, "no": 2}}
    receipt = client.post(f"{path}/edits", json={"edits": [right]})
    assert receipt.json()["rows"][0]["labels"]["refund"] == {"yes": 0.0, "no": 2.0}
    for wrong in ({"outcome": "no"}, {"rewards": {"yes": 0}}):
        refused = client.post(f"{path}/edits", json={"edits": [{**edit, **wrong}]})
        assert refused.status_code == 422
    bulk = {"action": "relabel", "expected": N_ROWS, "decision": "refund", "outcome": "no"}
    refused = client.post(f"{path}/bulk", json=bulk).json()
    assert refused["error"]["code"] == "supervision_mismatch"
    assert refused["error"]["details"][0]["path"] == ["body", "outcome"]
    sealed = client.post(f"{path}/seal", json={"as": "version"}).json()
    found = client.get(f"/v1/datasets/{sealed['dataset_id']}/rows").json()["data"]
    assert found[-1]["rewards"] == {"refund": {"yes": 0.0, "no": 2.0}}


def test_bulk_relabelling_of_rows_that_do_not_ask_is_refused(client):
    rows = make_rows(N_ROWS)
    rows[4]["decisions"], rows[4]["targets"] = rows[4]["decisions"][:1], {"route": "other"}
    made = client.post("/v1/datasets", json={"name": "mixed", "examples": rows}).json()
    draft = client.post("/v1/drafts", json={"dataset_id": made["id"]}).json()
    bulk = {"action": "relabel", "expected": N_ROWS, "decision": "refund", "outcome": "no"}
    refused = client.post(f"/v1/drafts/{draft['id']}/bulk", json=bulk).json()["error"]
    assert refused["details"][0]["path"] == ["body", "decision"]
    asking = {"type": "asks", "decision": "refund"}
    bulk.update(filter=asking, expected=N_ROWS - 1)
    done = client.post(f"/v1/drafts/{draft['id']}/bulk", json=bulk)
    assert done.json()["edits"] == N_ROWS - 1
    bulk.update(outcome="perhaps")
    refused = client.post(f"/v1/drafts/{draft['id']}/bulk", json=bulk).json()["error"]
    assert refused["details"][0]["path"] == ["body", "outcome"]


def test_the_client_reviews(server, dataset_id):
    with Client(ClientOptions(server.url)) as ours:
        draft = ours.drafts.create(dataset_id, name="ours")
        row = ours.drafts.rows(draft.id, "to_review", limit=1).data[0]
        edit = {"row": row.row, "action": "exclude", "seen": row.now.edit}
        assert ours.drafts.edit(draft.id, [edit], "ann").rows[0].state == "excluded"
        with pytest.raises(DraftConflictError) as refusal:
            ours.drafts.edit(draft.id, [edit], "bob")
        assert refusal.value.details[0]["row"] == row.row
        assert ours.drafts.bulk(draft.id, "accept", N_ROWS - 1, queue="to_review").edits == 19
        assert ours.drafts.undo(draft.id).undone == 2
        assert ours.drafts.redo(draft.id).undone == 2
        assert [one.action for one in ours.drafts.history(draft.id).data][-1] == "exclude"
        assert [one.id for one in ours.drafts.list(dataset_id=dataset_id).data] == [draft.id]
        sealed = ours.drafts.seal(draft.id, "dataset", "new")
        assert ours.datasets.get(sealed.sealed.dataset_id).rows == N_ROWS - 1
        assert ours.drafts.get(draft.id).status == "sealed"
        with pytest.raises(DraftSealedError):
            ours.drafts.undo(draft.id, "ann")
        ours.drafts.delete(draft.id)
        with pytest.raises(NotFoundError):
            ours.drafts.get(draft.id)


def test_answers_of_an_import_are_in_a_draft(server):
    """Records of Argilla: the second one is disputed, and the fourth is the first again."""
    said = [["a"], ["a", "b"], ["b", "b", "b"], ["a"]]
    records = [
        {
            "fields": {"text": f"text {place % 3}"},
            "responses": {"team": [{"value": v, "user_id": f"u{n}"} for n, v in enumerate(values)]},
        }
        for place, values in enumerate(said)
    ]
    table = read_table(json.dumps(records).encode())
    made = convert(table, guess_mapping(table))
    with Client(ClientOptions(server.url)) as ours:
        dataset = ours.datasets.create("argilla", made.parts)
        recorded = record_answers(ours, dataset, made)
        counts = (recorded.n_rows, recorded.n_several, recorded.n_disputed)
        assert (dataset.rows, counts) == (3, (3, 2, 1))
        [row] = ours.drafts.rows(recorded.draft_id, "disagreement").data
        assert [(one.reviewer, one.outcomes) for one in row.blind.answers] == [
            ("u0", {"team": "a"}),
            ("u1", {"team": "b"}),
        ]
        assert ours.drafts.agreement(recorded.draft_id).decisions[0].agreement.value == 0.5
        sealed = ours.drafts.seal(recorded.draft_id, "dataset", "agreed").sealed
        for id_, version in ((dataset.id, 1), (dataset.id, None), (sealed.dataset_id, 1)):
            people = ours.drafts.people_agreement(id_, version)
            assert (people.rows, people.decisions) == (2, {"team": people.agreement})
            assert (people.agreement.value, people.agreement.n) == (0.5, 2)
        # What cannot be recorded says that the rows are there.
        ours.datasets.archive(dataset.id)
        with pytest.raises(SteelyardError) as refusal:
            record_answers(ours, dataset, made)
        assert dataset.id in refusal.value.__notes__[0]


def test_reviewed_contexts_are_not_logged(client, draft, caplog):
    body = {"edits": [{"row": 0, "action": "note", "note": "quillfeather"}]}
    client.post(f"/v1/drafts/{draft['id']}/edits", json=body)
    logged = json.dumps([record.getMessage() for record in caplog.records])
    assert "quillfeather" not in logged
