"""/v1/datasets: made in every form, listed, renamed, added to, restored, deleted."""

from __future__ import annotations

import gzip
import hashlib
import json

import httpx
import pytest

from steelyard.app.foundation import open_frames
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import set_dataset_archived
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_row_dict, make_rows, to_ndjson
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

PATH = "/v1/datasets"
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def create(client):
    """Make a dataset of rows; give it."""

    def make(rows=None, name="tickets", **fields):
        body = {"name": name, "examples": make_rows(20) if rows is None else rows, **fields}
        response = client.post(PATH, json={k: v for k, v in body.items() if v is not None})
        assert response.status_code == 200, response.text
        return response.json()

    return make


def files_of(**parts):
    return {
        name: (f"{name}.jsonl", to_ndjson(rows), "application/x-ndjson")
        for name, rows in parts.items()
    }


def stored_files(server):
    return open_frames(server.services.settings, "datasets").names()


class TestCreate:
    def test_a_dataset_of_json(self, client):
        body = json.dumps({"name": "tickets", "examples": make_rows(20)}).encode()
        response = client.post(PATH, content=body, headers={"Content-Type": "application/json"})
        made = response.json()
        assert made["name"] == "tickets"
        assert made["id"].startswith("ds_")
        assert (made["version"], made["rows"], made["contexts"]) == (1, 20, 20)
        assert made["method"] == "sft"
        assert made["split"] == {
            "training": 16,
            "evaluation": 4,
            "training_contexts": 16,
            "evaluation_contexts": 4,
        }
        assert made["input"] == {
            "format": "json",
            "sha256": hashlib.sha256(body).hexdigest(),
            "bytes": len(body),
        }
        assert made["archived_at"] is made["used_at"] is None

    def test_the_same_rows_in_every_form_are_the_same_version(self, client, create):
        rows = make_rows(12)
        hashes = {create(rows)["sha256"]}
        fields = {"name": "tickets", "evaluation_fraction": "0.5"}
        form = client.post(PATH, data=fields, files=files_of(examples=rows)).json()
        lines = client.post(
            PATH, params=fields, content=to_ndjson(rows, indent=None), headers=NDJSON
        ).json()
        older = client.post(
            f"{PATH}/upload",
            content=to_ndjson(rows),
            headers={**NDJSON, "X-Dataset-Name": "caf%C3%A9", "X-Evaluation-Fraction": "1"},
        ).json()
        packed = client.post(
            PATH,
            params=fields,
            content=gzip.compress(to_ndjson(rows)),
            headers={**NDJSON, "Content-Encoding": "gzip"},
        ).json()
        hashes |= {made["sha256"] for made in (form, lines, older, packed)}
        assert len(hashes) == 1
        assert [made["input"]["format"] for made in (form, lines, older)] == [
            "multipart",
            "jsonl",
            "jsonl",
        ]
        assert form["input"]["sha256"] == hashlib.sha256(to_ndjson(rows)).hexdigest()
        assert form["evaluation_fraction"] == 0.5
        assert (older["name"], older["evaluation_only"]) == ("café", True)

    def test_sides_by_name(self, client):
        files = files_of(training=make_rows(5), evaluation=make_rows(3, start=5))
        made = client.post(PATH, data={"name": "sides"}, files=files).json()
        assert (made["split"]["training"], made["split"]["evaluation"]) == (5, 3)
        only = client.post(PATH, data={"name": "s"}, files=files_of(evaluation=make_rows(3)))
        assert only.json()["evaluation_only"]

    def test_duplicates_are_left_out_and_counted(self, create):
        made = create([*make_rows(5), *make_rows(5)])
        assert (made["rows"], made["duplicates_removed"]) == (5, 5)

    def test_every_wrong_line_is_reported_and_nothing_is_stored(self, client, server):
        before = stored_files(server), client.get(PATH).json()["data"]
        rows = make_rows(4)
        lines = [
            json.dumps(rows[0]),
            json.dumps({**rows[1], "targets": {"route": "nobody"}}),
            '{"context": 1',
            json.dumps(rows[2]),
        ]
        response = client.post(
            PATH, params={"name": "bad"}, content="\n".join(lines).encode(), headers=NDJSON
        )
        error = assert_canonical_error(response, 422, "invalid_example", message="Line 2")
        assert [detail["path"][:3] for detail in error["details"]] == [
            ["body", "examples", 1],
            ["body", "examples", 2],
        ]
        assert (stored_files(server), client.get(PATH).json()["data"]) == before

    def test_a_hundred_findings_are_listed_and_all_counted(self, client):
        content = b"{}\n" * 150
        response = client.post(PATH, params={"name": "bad"}, content=content, headers=NDJSON)
        error = assert_canonical_error(response, 422, "invalid_example", message="450")
        assert len(error["details"]) == 100

    @pytest.mark.parametrize(
        ("body", "paths"),
        [
            ({}, [["body", "name"], ["body", "examples"]]),
            ({"name": " ", "examples": []}, [["body", "name"]]),
            ({"name": "a", "examples": [], "training": []}, [["body", "examples"]]),
            (
                {"name": "a", "examples": [], "evaluation_fraction": 2, "colour": 1},
                [["body", "evaluation_fraction"], ["body", "colour"]],
            ),
            ({"name": "a", "examples": [], "max_price_usd": "x"}, [["body", "max_price_usd"]]),
        ],
    )
    def test_wrong_fields(self, client, body, paths):
        error = assert_canonical_error(client.post(PATH, json=body), 422, "invalid_request")
        assert [detail["path"] for detail in error["details"]] == paths

    def test_refusals_of_rows(self, client):
        def post(rows):
            return client.post(PATH, json={"name": "n", "examples": rows})

        assert_canonical_error(post([]), 422, "no_rows")
        assert_canonical_error(post(make_rows(1)), 422, "too_few_rows")
        reward = make_row_dict(
            "a",
            targets=...,
            rewards={
                "route": {"billing": 1, "support": 0, "other": 0},
                "refund": {"yes": 1, "no": 0},
            },
        )
        assert_canonical_error(post([*make_rows(2), reward]), 422, "supervision_mismatch")
        sides = {"training": [make_row_dict("a")], "evaluation": [make_row_dict("a")]}
        response = client.post(PATH, json={"name": "n", **sides})
        assert_canonical_error(response, 422, "side_conflict")

    def test_bounds_of_rows_and_bytes(self):
        with live_server(dataset_rows=3, upload_bytes=20_000) as server:
            path = f"{server.url}{PATH}"
            limits = httpx.get(f"{server.url}/v1/capabilities").json()["limits"]
            assert (limits["dataset_rows"], limits["dataset_bytes"]) == (3, 20_000)
            response = httpx.post(path, json={"name": "n", "examples": make_rows(4)})
            assert_canonical_error(response, 413, "too_many_lines")
            files = {"examples": ("e", b" " * 30_000)}
            response = httpx.post(path, data={"name": "n"}, files=files)
            assert_canonical_error(response, 413, "payload_too_large")

    def test_other_content_types_are_refused(self, client):
        response = client.post(PATH, content=b"a,b", headers={"Content-Type": "text/csv"})
        assert_canonical_error(response, 415, "unsupported_media_type", message="ndjson")

    @pytest.mark.parametrize(
        "context", [r'"half \ud83d"', r'{"\udc00": 1}', '{"price": NaN}', "-Infinity", "[1e999]"]
    )
    def test_a_row_that_is_no_strict_json_is_named(self, client, create, context):
        good = to_ndjson(make_rows(1)).decode().strip()
        row = json.dumps({**json.loads(good), "context": None}).replace("null", context, 1)
        rows = f'"examples": [{good}, {row}]'
        for path, name in (
            (PATH, '"name": "n", '),
            (f"{PATH}/check", ""),
            (f"{PATH}/{create()['id']}/versions", ""),
        ):
            body = f"{{{name}{rows}}}".encode()
            response = client.post(path, content=body, headers={"Content-Type": "application/json"})
            if path.endswith("check"):
                told = response.json()
                assert (response.status_code, told["code"]) == (200, "invalid_example")
                assert told["details"][0]["path"][:4] == ["body", "examples", 1, "context"]
            else:
                path_of = ["body", "examples", 1, "context"]
                assert_canonical_error(response, 422, "invalid_example")
                assert response.json()["error"]["details"][0]["path"][:4] == path_of

    def test_fields_of_a_body_are_not_in_the_query_too(self, client):
        body = {"name": "n", "examples": make_rows(3)}
        response = client.post(PATH, params={"name": "m"}, json=body)
        assert_canonical_error(response, 422, "invalid_request", path=["query", "name"])

    @pytest.mark.parametrize(
        ("lines", "line", "path", "type_"),
        [
            (b'{"context": "a', 2, [], "cut"),
            (b"\xff\xfe", 2, [], "invalid_utf8"),
            (b"[]", 2, [], "wrong_type"),
            (b"null", 2, [], "wrong_type"),
            (b'{"context": "\\ud800"}', 2, ["context"], None),
            (b'{"a": 1, "a": 1}', 2, ["a"], "duplicate_key"),
            (b"[" * 100_000, 2, [], None),
            (b'{"context": ' + b"[" * 40 + b"]" * 40 + b"}", 2, None, None),
            (b'{"context": NaN}', 2, ["context"], None),
            (b'{"context": 1e999}', 2, ["context"], None),
            (b'{"context": "a\x00"}', 2, [], "cut"),
        ],
    )
    def test_broken_lines(self, client, server, lines, line, path, type_):
        before = stored_files(server)
        content = to_ndjson(make_rows(1)) + lines
        response = client.post(PATH, params={"name": "b"}, content=content, headers=NDJSON)
        error = assert_canonical_error(response, 422, "invalid_example")
        details = error["details"]
        assert {detail["path"][2] for detail in details} == {line - 1}
        assert all(detail["message"].startswith(f"Line {line}:") for detail in details)
        if path is not None:
            assert path in [detail["path"][3:] for detail in details]
        if type_ is not None:
            assert type_ in {detail["type"] for detail in details}
        assert stored_files(server) == before

    def test_a_body_of_chunks_is_refused_at_its_bound(self):
        with live_server(upload_bytes=20_000) as server:
            headers = {**NDJSON}
            response = httpx.post(
                f"{server.url}{PATH}?name=n",
                content=(b" " * 1000 for _ in range(100)),
                headers=headers,
            )
            assert_canonical_error(response, 413, "payload_too_large")


class TestForms:
    """Multipart bodies that are broken in some way; nothing of them is kept."""

    HEAD = (
        b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\ntickets\r\n--b\r\n'
        b'Content-Disposition: form-data; name="examples"; filename="e"\r\n\r\n'
    )

    def post(self, client, body, boundary="b"):
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return client.post(PATH, content=body, headers=headers)

    def test_a_form_by_hand(self, client):
        body = self.HEAD + to_ndjson(make_rows(3)) + b"\r\n--b--\r\n"
        assert self.post(client, body).json()["rows"] == 3

    @pytest.mark.parametrize(
        ("body", "type_", "path"),
        [
            (HEAD + b"{}", "invalid_multipart", ["body"]),
            (b"", "invalid_multipart", ["body"]),
            (b"no form", "invalid_multipart", ["body"]),
            (b"--b\r\n" + b"X: y\r\n" * 20 + b"\r\nx\r\n--b--", "invalid_multipart", ["body"]),
            (
                b"--b\r\nX-Long: " + b"y" * 10_000 + b"\r\n\r\nx\r\n--b--",
                "invalid_multipart",
                ["body"],
            ),
            (
                b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n\xff\r\n--b--',
                "invalid_utf8",
                ["body", "name"],
            ),
            (
                b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n'
                + b"n" * 20_000
                + b"\r\n--b--",
                "too_long",
                ["body", "name"],
            ),
            (HEAD + b"\r\n" + HEAD + b"\r\n--b--", "duplicate", ["body", "name"]),
            (
                b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n' * 40 + b"--b--",
                "duplicate",
                ["body", "x"],
            ),
        ],
    )
    def test_a_broken_form(self, client, body, type_, path):
        error = assert_canonical_error(self.post(client, body), 422, "invalid_request", path=path)
        assert error["details"][0]["type"] == type_

    def test_a_form_without_a_boundary(self, client):
        headers = {"Content-Type": "multipart/form-data"}
        response = client.post(PATH, content=b"--b--", headers=headers)
        assert_canonical_error(response, 422, "invalid_request", path=["body"])

    def test_a_boundary_that_is_not_utf_8(self, client):
        headers = {"Content-Type": b'multipart/form-data; boundary="b\xff"'}
        response = client.post(PATH, content=b"--b\xff--", headers=headers)
        error = assert_canonical_error(response, 422, "invalid_request", path=["body"])
        assert error["details"][0]["type"] == "invalid_multipart"
        assert "UTF-8" in error["message"]

    def test_fields_that_no_form_has(self, client):
        files = files_of(examples=make_rows(3))
        data = {"name": "n", "colour": "red", "evaluation_fraction": "half"}
        response = client.post(PATH, data=data, files=files)
        error = assert_canonical_error(response, 422, "invalid_request")
        assert {detail["path"][1] for detail in error["details"]} == {
            "colour",
            "evaluation_fraction",
        }


class TestKeys:
    def test_a_repeated_key_makes_one_dataset_with_any_boundary(self, client):
        rows = make_rows(5)
        headers = {"Idempotency-Key": "ds-1"}
        answers = [
            client.post(PATH, data={"name": "n"}, files=files_of(examples=rows), headers=headers)
            for _ in range(2)
        ]
        assert answers[0].content == answers[1].content
        assert answers[1].headers["Idempotency-Replayed"] == "true"
        other = client.post(
            PATH, data={"name": "m"}, files=files_of(examples=rows), headers=headers
        )
        assert_canonical_error(other, 409, "idempotency_conflict")

    def test_a_refused_upload_leaves_its_key_free(self, client):
        headers = {"Idempotency-Key": "ds-2"}
        assert client.post(PATH, json={"name": "n", "examples": []}, headers=headers).is_error
        body = {"name": "n", "examples": make_rows(3)}
        assert client.post(PATH, json=body, headers=headers).status_code == 200

    def test_added_rows_are_replayed_after_more_were_added(self, client, create):
        path = f"{PATH}/{create()['id']}/versions"
        headers = {"Idempotency-Key": "ds-3"}
        first = client.post(path, json={"examples": make_rows(5, 20)}, headers=headers)
        client.post(path, json={"examples": make_rows(5, 30)})
        again = client.post(path, json={"examples": make_rows(5, 20)}, headers=headers)
        assert again.content == first.content
        assert first.json()["version"] == 2

    def test_keys_of_other_writes(self, client, create):
        path = f"{PATH}/{create()['id']}"
        for method, target, body in (
            ("PATCH", path, {"name": "new"}),
            ("POST", f"{path}/archive", {}),
            ("POST", f"{path}/restore", {}),
            ("DELETE", path, None),
        ):
            headers = {"Idempotency-Key": f"ds-4-{method}"}
            first, again = (
                client.request(method, target, json=body, headers=headers) for _ in range(2)
            )
            assert first.status_code == 200
            assert first.content == again.content


class TestCatalogue:
    def test_get_has_the_tunable_decisions(self, client, create):
        made = create(make_rows(100))
        found = client.get(f"{PATH}/{made['id']}").json()
        assert found["storage_window"] is None
        assert found["labels_to_check"] == 0
        by_id = {one["decision"]["id"]: one for one in found["prompt_tuning"]["decisions"]}
        assert by_id.keys() == {"route", "refund"}
        assert by_id["refund"]["reason"] is None
        assert by_id["route"]["rows"] == 80
        rest = {name: found[name] for name in made}
        assert rest == made

    def test_a_page_names_the_next(self, client, create):
        ids = [create()["id"] for _ in range(3)]
        first = client.get(PATH, params={"limit": 2}).json()
        assert [dataset["id"] for dataset in first["data"]] == ids[:0:-1]
        assert first["has_more"]
        second = client.get(PATH, params={"limit": 1, "cursor": first["next_cursor"]}).json()
        assert second["data"][0]["id"] == ids[0]
        response = client.get(PATH, params={"cursor": "ds_nothing"})
        assert_canonical_error(response, 422, "invalid_request", path=["query", "cursor"])

    def test_a_name_is_changed_and_nothing_else(self, client, create):
        made = create()
        renamed = client.patch(f"{PATH}/{made['id']}", json={"name": "new"}).json()
        assert renamed == {**made, "name": "new"}
        response = client.patch(f"{PATH}/{made['id']}", json={"name": " "})
        assert_canonical_error(response, 422, "invalid_request", path=["body", "name"])

    def test_an_archived_dataset_is_read_and_takes_no_rows(self, client, create, server):
        made = create()
        path = f"{PATH}/{made['id']}"
        server.services.state.write_now(
            lambda connection: set_dataset_archived(connection, made["id"], 5.0)
        )
        assert made["id"] not in {one["id"] for one in client.get(PATH).json()["data"]}
        archived = client.get(PATH, params={"archived": "true"}).json()["data"]
        # Other tests archive datasets of the same server.
        assert {row["id"]: row["archived_at"] for row in archived}[made["id"]] == 5.0
        assert client.get(f"{path}/download").status_code == 200
        response = client.post(f"{path}/versions", json={"examples": make_rows(5, 20)})
        assert_canonical_error(response, 409, "dataset_archived")
        assert client.post(f"{path}/archive").json()["archived_at"] == 5.0
        assert client.post(f"{path}/restore", json={}).json() == made
        assert client.post(f"{path}/restore").json() == made

    def test_a_deleted_dataset_is_gone_with_its_rows(self, client, create, server):
        made = create(make_rows(7, start=9000))
        path = f"{PATH}/{made['id']}"
        assert client.delete(path).json() == {"id": made["id"], "deleted": True}
        for method, target in (
            ("GET", path),
            ("GET", f"{path}/rows"),
            ("GET", f"{path}/versions"),
            ("GET", f"{path}/download"),
            ("GET", f"{path}/labels-to-check"),
            ("DELETE", path),
        ):
            assert_canonical_error(client.request(method, target), 410, "dataset_deleted")
        response = client.post(f"{path}/versions", json={"examples": make_rows(2)})
        assert_canonical_error(response, 410, "dataset_deleted")
        assert made["id"] not in {one["id"] for one in client.get(PATH).json()["data"]}

    def test_a_dataset_that_is_read_is_not_deleted(self, client, create, server, monkeypatch):
        monkeypatch.setattr(server.services.get(DatasetService), "_readers", [])
        busy, free = create(), create()
        server.services.get(DatasetService).register_reader(
            lambda _, dataset_id: "the evaluation ev_1" if dataset_id == busy["id"] else None
        )
        response = client.delete(f"{PATH}/{busy['id']}")
        assert_canonical_error(response, 409, "version_in_use", message="ev_1")
        assert client.get(f"{PATH}/{busy['id']}").status_code == 200
        assert client.delete(f"{PATH}/{free['id']}").status_code == 200

    def test_no_labels_to_check(self, client, create):
        assert client.get(f"{PATH}/{create()['id']}/labels-to-check").json() == {"data": []}

    def test_datasets_of_others_are_not_found(self):
        with live_server(accounts="on") as server:
            accounts = server.services.accounts
            keys = [
                accounts.create_key(account=accounts.create_account(name).id, scope="full").secret
                for name in ("one", "two")
            ]
            mine, theirs = ({"Authorization": f"Bearer {key}"} for key in keys)
            path = f"{server.url}{PATH}"
            body = {"name": "n", "examples": make_rows(3)}
            made = httpx.post(path, json=body, headers=mine).json()
            for method in ("GET", "DELETE"):
                response = httpx.request(method, f"{path}/{made['id']}", headers=theirs)
                assert_canonical_error(response, 404, "not_found")
            assert httpx.get(path, headers=theirs).json()["data"] == []


class TestVersions:
    def test_added_rows_are_the_next_version(self, client, create):
        made = create(make_rows(10))
        path = f"{PATH}/{made['id']}"
        before = client.get(f"{path}/download").content
        added = client.post(
            f"{path}/versions",
            data={"family": "router"},
            files=files_of(examples=[*make_rows(10), *make_rows(10, 10)]),
        ).json()
        assert (added["version"], added["rows"], added["duplicates_removed"]) == (2, 20, 10)
        versions = client.get(f"{path}/versions").json()["data"]
        assert [version["version"] for version in versions] == [2, 1]
        assert [version["added"] for version in versions] == [10, 10]
        assert [version["added_via"] for version in versions] == ["jsonl", "api"]
        assert [version["added_from"] for version in versions] == ["router", None]
        assert versions[1]["sha256"] == made["sha256"] != versions[0]["sha256"]
        again = client.get(f"{path}/download", params={"version": 1})
        assert again.content == before
        assert again.headers["content-type"] == "application/x-ndjson"

    def test_a_table(self, client, create):
        path = f"{PATH}/{create(make_rows(10))['id']}/versions"
        table = b"context,refund,route\nNew one,yes,\nOther one,,billing\n"
        headers = {"Content-Type": "text/csv", "X-Family": "router"}
        for target in (f"{path}/upload", path):
            response = client.post(target, content=table, headers=headers)
            table = table.replace(b"one", b"two")
            assert response.json()["rows"] in {12, 14}
        newest = client.get(path).json()["data"][0]
        assert (newest["added_via"], newest["added_from"]) == ("csv", "router")
        bad = b"context,refund\nNew one,perhaps\n"
        response = client.post(path, content=bad, headers=headers)
        assert_canonical_error(response, 422, "invalid_csv", path=["body", "examples", 1, "refund"])

    @pytest.mark.parametrize(
        ("field", "word"), [("targets", "more than one"), ("rewards", "has re")]
    )
    def test_a_table_that_csv_cannot_have_is_refused_with_a_reason(
        self, client, create, field, word
    ):
        rows = [json.loads(line) for line in to_ndjson(make_rows(10)).splitlines()]
        if field == "targets":
            rows[0]["decisions"][1]["question"] = "Worded otherwise?"
        else:
            for row in rows:
                del row["targets"]
                row["rewards"] = {"refund": {"yes": 1.0, "no": 0.0}}
                row["decisions"] = [row["decisions"][1]]
        path = f"{PATH}/{create(rows)['id']}/versions"
        table = b"context,refund\nNew one,yes\n"
        response = client.post(path, content=table, headers={"Content-Type": "text/csv"})
        assert_canonical_error(response, 422, "invalid_csv", path=["body", "examples", 0, 1])
        assert word in response.json()["error"]["message"]

    def test_refusals(self, client, create):
        path = f"{PATH}/{create(make_rows(10))['id']}/versions"

        def post(**body):
            return client.post(path, json=body)

        assert_canonical_error(post(examples=make_rows(10)), 422, "no_new_rows")
        other = {**make_row_dict()["decisions"][0], "question": "Who?"}
        row = make_row_dict("new", decisions=[other], targets={"route": "billing"})
        assert_canonical_error(post(examples=[row]), 422, "task_mismatch")
        assert_canonical_error(post(name="n", examples=[row]), 422, "invalid_request")
        held = client.get(f"{PATH}/{path.split('/')[3]}/rows?partition=training").json()["data"][0]
        relabelled = {**held, "targets": {"route": "support"}}
        response = post(evaluation=[relabelled])
        assert_canonical_error(response, 422, "side_conflict")
        response = client.post(f"{PATH}/ds_nothing/versions", json={"examples": [row]})
        assert_canonical_error(response, 404, "not_found")

    def test_an_evaluation_only_dataset_takes_no_training_rows(self, client, create):
        path = f"{PATH}/{create(evaluation_fraction=1)['id']}/versions"
        response = client.post(path, json={"training": make_rows(2, 20)})
        assert_canonical_error(response, 422, "evaluation_only")
        added = client.post(path, json={"examples": make_rows(2, 20)}).json()
        assert added["split"]["training"] == 0


def test_several_labels_of_a_context_are_warned_of_in_every_answer(client, create):
    dataset = create()
    assert "warnings" not in dataset
    row = make_row_dict("Invoice 3 was paid twice.", targets={"route": "other"})
    added = client.post(f"{PATH}/{dataset['id']}/versions", json={"examples": [row]}).json()
    assert (added["rows"], [one["code"] for one in added["warnings"]]) == (21, ["several_labels"])
    assert client.get(f"{PATH}/{dataset['id']}").json()["warnings"] == added["warnings"]
    [moved] = client.get(f"{PATH}/{dataset['id']}/diff").json()["relabelled"]
    assert (moved["before"], moved["after"]) == ("billing", "other")
    assert (moved["contexts"], moved["both"]) == (1, 1)


def test_rows_are_checked_and_nothing_is_stored(client, server):
    before = stored_files(server)
    good = client.post(f"{PATH}/check", json={"examples": make_rows(3)}).json()
    assert (good["rows"], good["method"], good["problems"], good["code"]) == (3, "sft", 0, None)
    lines = to_ndjson(make_rows(2)) + b"{}\n"
    bad = client.post(f"{PATH}/check", content=lines, headers=NDJSON).json()
    assert (bad["rows"], bad["lines"], bad["problems"]) == (2, 3, 3)
    assert bad["code"] == "invalid_example"
    assert {detail["path"][2] for detail in bad["details"]} == {2}
    assert stored_files(server) == before
