"""Rows of datasets: pages, downloads, searches, differences, likeness, exports."""

from __future__ import annotations

import io
import json

import httpx
import numpy as np
import polars as pl
import pytest

from steelyard.datasets.row_service import DatasetRows
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_row_dict, make_rows, to_ndjson

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

PATH = "/v1/datasets"
#: A number that no database column takes.
TOO_LARGE = 2**63


@pytest.fixture(scope="module")
def dataset(running_server):
    """A dataset of 40 rows in two versions: its path."""
    with httpx.Client(base_url=running_server.url, timeout=30) as client:
        body = {"name": "rows", "examples": make_rows(30)}
        made = client.post(PATH, json=body).json()
        path = f"{PATH}/{made['id']}"
        relabelled = make_row_dict("Invoice 3 was paid twice.", targets={"route": "other"})
        added = [*make_rows(9, 30), relabelled]
        assert client.post(f"{path}/versions", json={"examples": added}).json()["rows"] == 40
    return path


def contexts(page):
    return [row["context"] for row in page["data"]]


class TestPages:
    def test_the_first_page(self, client, dataset):
        page = client.get(f"{dataset}/rows").json()
        assert len(page["data"]) == page["total"] == 40
        assert (page["offset"], page["limit"], page["has_more"], page["version"]) == (
            0,
            100,
            False,
            2,
        )
        assert page["data"][0] == {
            **make_rows(1)[0],
            "targets": {"route": {"billing": 1.0}, "refund": {"yes": 1.0}},
        }

    def test_pages_of_sides_and_versions(self, client, dataset):
        walked = []
        while len(walked) < 24:
            params = {"partition": "training", "version": 1, "limit": 10, "offset": len(walked)}
            page = client.get(f"{dataset}/rows", params=params).json()
            assert page["total"] == 24
            walked += contexts(page)
            assert page["has_more"] == (len(walked) < 24)
        download = client.get(
            f"{dataset}/download", params={"partition": "training", "version": 1}
        ).text
        assert walked == [json.loads(line)["context"] for line in download.splitlines()]

    @pytest.mark.parametrize(
        ("params", "name"),
        [
            ({"limit": 0}, "limit"),
            ({"limit": 501}, "limit"),
            ({"offset": -1}, "offset"),
            ({"partition": "half"}, "partition"),
            ({"version": 0}, "version"),
            ({"version": TOO_LARGE}, "version"),
            ({"offset": TOO_LARGE}, "offset"),
            ({"colour": 1}, "colour"),
        ],
    )
    def test_queries_that_cannot_be(self, client, dataset, params, name):
        response = client.get(f"{dataset}/rows", params=params)
        assert_canonical_error(response, 422, "invalid_request", path=["query", name])

    def test_an_unknown_version(self, client, dataset):
        for path in ("rows", "download", "export", "facets"):
            response = client.get(f"{dataset}/{path}", params={"version": 9})
            assert_canonical_error(response, 404, "not_found", message="version 9")


class TestDownloads:
    def test_a_download_makes_the_same_dataset(self, client, dataset):
        lines = client.get(f"{dataset}/download", params={"version": 1}).content
        made = client.post(
            PATH,
            params={"name": "copy"},
            content=lines,
            headers={"Content-Type": "application/x-ndjson"},
        ).json()
        assert made["sha256"] == client.get(f"{dataset}/versions").json()["data"][1]["sha256"]
        assert client.get(f"{PATH}/{made['id']}/download").content == lines

    def test_a_download_longer_than_a_piece(self, client):
        rows = [make_row_dict(f"{number} " + "x" * 2000) for number in range(1000)]
        made = client.post(
            PATH,
            params={"name": "long"},
            content=to_ndjson(rows),
            headers={"Content-Type": "application/x-ndjson"},
        ).json()
        head = client.head(f"{PATH}/{made['id']}/download")
        assert (head.status_code, head.headers["Content-Type"]) == (200, "application/x-ndjson")
        lines = client.get(f"{PATH}/{made['id']}/download").text.splitlines()
        assert [json.loads(line)["context"] for line in lines] == [row["context"] for row in rows]
        assert_canonical_error(client.get(f"{PATH}/ds_no/download"), 404, "not_found")

    def test_a_parquet_file(self, client, dataset):
        response = client.get(f"{dataset}/export")
        assert response.headers["content-type"] == "application/vnd.apache.parquet"
        frame = pl.read_parquet(io.BytesIO(response.content))
        assert frame["index"].to_list() == list(range(40))
        assert set(frame["side"]) == {"training", "evaluation"}
        assert frame["targets"][0].to_list() == [
            {"decision": "route", "outcome": "billing", "value": 1.0},
            {"decision": "refund", "outcome": "yes", "value": 1.0},
        ]
        one = client.get(f"{dataset}/export", params={"partition": "evaluation", "version": 1})
        assert pl.read_parquet(io.BytesIO(one.content))["side"].unique().to_list() == ["evaluation"]


class TestSearches:
    def test_a_filter_an_order_and_facets(self, client, dataset):
        search = {
            "where": {"type": "expected", "decision": "refund", "outcome": "yes"},
            "text": "invoice",
            "order": {"by": "index", "descending": True},
            "limit": 3,
            "facets": True,
            "version": 1,
        }
        found = client.post(f"{dataset}/rows/search", json=search).json()
        assert found["total"] == 15
        assert found["indexes"] == [28, 26, 24]
        assert contexts(found)[0] == "Invoice 28 was paid twice."
        assert found["has_more"]
        assert found["facets"]["expected"]["refund"] == {"yes": 15}
        assert sum(found["facets"]["sides"].values()) == 15

    def test_every_problem_is_reported(self, client, dataset):
        search = {
            "where": {"type": "any", "filters": [{"type": "contains"}]},
            "order": {"by": "label"},
            "limit": 0,
            "colour": 1,
        }
        response = client.post(f"{dataset}/rows/search", json=search)
        error = assert_canonical_error(response, 422, "invalid_request")
        assert {tuple(detail["path"]) for detail in error["details"]} == {
            ("body", "limit"),
            ("body", "colour"),
            ("body", "where", "filters", 0, "text"),
            ("body", "order", "decision"),
            ("body", "order", "outcome"),
        }

    @pytest.mark.parametrize("name", ["version", "offset"])
    def test_numbers_that_no_row_has_are_refused(self, client, dataset, name):
        response = client.post(f"{dataset}/rows/search", json={name: TOO_LARGE})
        error = assert_canonical_error(response, 422, "invalid_request", path=["body", name])
        assert "the largest allowed is 2147483647" in error["details"][0]["message"]

    def test_a_filters_number_that_no_row_has_is_refused(self, client, dataset):
        search = {"where": {"type": "characters", "op": "lt", "value": 10**40}}
        response = client.post(f"{dataset}/rows/search", json=search)
        assert_canonical_error(response, 422, "invalid_request", path=["body", "where", "value"])

    def test_nothing_asked_is_everything(self, client, dataset):
        found = client.post(f"{dataset}/rows/search", json={}).json()
        assert found["total"] == 40
        assert "facets" not in found

    def test_facets(self, client, dataset):
        counted = client.get(f"{dataset}/facets", params={"version": 1}).json()
        assert counted["rows"] == 30
        assert counted["expected"]["route"] == {"billing": 10, "support": 10, "other": 10}


class TestDifferences:
    def test_the_additions_of_a_version_are_listed(self, client, dataset):
        found = client.get(f"{dataset}/diff").json()
        assert (found["from"], found["to"], found["rows"], found["first"]) == (1, 2, 10, 30)
        assert found["contexts"] == 9
        assert sum(found["sides"].values()) == 10
        assert found["asked"] == {"refund": 10, "route": 10}
        assert found["relabelled"] == [
            {"decision": "route", "before": "billing", "after": "other", "contexts": 1, "both": 1}
        ]

    def test_a_version_and_itself(self, client, dataset):
        found = client.get(f"{dataset}/diff", params={"from": 2, "to": 2}).json()
        assert (found["rows"], found["first"], found["relabelled"]) == (0, None, [])

    def test_the_older_one_comes_first(self, client, dataset):
        response = client.get(f"{dataset}/diff", params={"from": 2, "to": 1})
        assert_canonical_error(response, 422, "invalid_request", path=["query", "from"])
        response = client.get(f"{dataset}/diff", params={"to": TOO_LARGE})
        assert_canonical_error(response, 422, "invalid_request", path=["query", "to"])


class TestLikeness:
    @pytest.fixture
    def embedded(self, server, monkeypatch):
        """An engine whose vectors are the counts of letters; gives the number of texts it read."""
        read = []

        def embed(texts):
            read.extend(texts)
            letters = "abcdefghijklmnopqrstuvwxyz0123456789"
            counts = np.array([[text.lower().count(x) for x in letters] for text in texts], "f4")
            return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)

        monkeypatch.setattr(server.services.get(DatasetRows), "_embed", embed)
        return read

    def test_rows_like_a_row_and_like_a_context(self, client, dataset, embedded):
        path = f"{dataset}/rows/similar"
        found = client.post(path, json={"row": 12, "limit": 2}).json()
        assert [row["index"] for row in found["data"]] == [21, 1]
        assert found["data"][0]["row"]["context"] == "Invoice 21 was paid twice."
        assert found["data"][0]["similarity"] == pytest.approx(1, abs=1e-3)
        assert len(embedded) == 41
        found = client.post(path, json={"context": {"text": "Invoice 7"}, "limit": 1}).json()
        assert len(found["data"]) == 1
        assert len(embedded) == 42  # the vectors of the rows were kept
        assert_canonical_error(client.post(path, json={"row": 99}), 404, "not_found")

    def test_more_rows_than_are_compared(self, client, dataset, embedded, monkeypatch):
        monkeypatch.setattr("steelyard.datasets.row_service.MAX_COMPARED", 20)
        response = client.post(f"{dataset}/rows/similar", json={"row": 1, "version": 1})
        assert_canonical_error(response, 413, "too_many_rows", message="30 rows")
        assert embedded == []
        asked = {"row": 1, "version": 1, "partition": "evaluation"}
        assert client.post(f"{dataset}/rows/similar", json=asked).is_success

    def test_one_of_row_and_context_is_needed(self, client, dataset):
        for body in ({}, {"row": 1, "context": "a"}, {"row": TOO_LARGE}):
            response = client.post(f"{dataset}/rows/similar", json=body)
            assert_canonical_error(response, 422, "invalid_request", path=["body", "row"])

    def test_an_engine_without_vectors(self, server, client, dataset, monkeypatch):
        monkeypatch.setattr(server.services.get(DatasetRows), "_embed", None)
        response = client.post(f"{dataset}/rows/similar", json={"row": 1})
        assert_canonical_error(
            response, 503, "engine_unavailable", message="vectors", retryable=True
        )
