"""Frames in an object store: the same service on a real S3 server as on a directory."""

from __future__ import annotations

import pytest

import steelyard
from steelyard.errors import StorageUnavailableError
from steelyard.storage.frame_store import open_store
from support.datasets.dataset_rows import make_rows
from support.servers.s3_server import KEY, SECRET


def use(home, **settings):
    """Use datasets and evaluations through the store; return the results."""
    with steelyard.embed(home, engine="hashing", dataset_min_rows=1, **settings) as server:
        client = server.client
        made = client.datasets.create(
            "tickets", training=make_rows(30), evaluation=make_rows(40)[30:]
        )
        # On sides that are named: those that are drawn go by the id of the dataset.
        client.datasets.add_rows(made.id, training=make_rows(60)[40:])
        [evaluation] = client.evaluations.create(made.id, ["hashing"]).data
        ended = client.evaluations.wait(evaluation, timeout_s=60, progress=False)
        again = client.datasets.get(made.id)
        return {
            "status": ended.status,
            "metrics": ended.metrics,
            "sha256": again.sha256,
            "first": client.datasets.download(made.id, version=1),
            "rows": client.datasets.rows(made.id, limit=7).data,
            "found": client.datasets.search(made.id, text="invoice", limit=5).data,
        }


def test_a_store_keeps_files_by_their_bytes(bucket):
    names, url = bucket
    store = open_store(url, "datasets")
    sha256 = store.put(b"rows", ".parquet")
    assert store.put(b"rows", ".parquet") == sha256
    assert names() == [f"at/prefix/datasets/{sha256}.parquet"]
    assert store.read(f"{sha256}.parquet") == b"rows"
    assert store.damage_of(f"{sha256}.parquet") is None
    assert store.find("absent.parquet") is None
    with pytest.raises(StorageUnavailableError):
        store.read("absent.parquet")
    assert store.sweep([sha256], older_than_s=0) == []
    assert store.sweep([], older_than_s=0) == [f"{sha256}.parquet"]
    assert names() == []


@pytest.mark.slow
def test_the_service_answers_from_a_bucket_as_from_a_directory(bucket, tmp_path):
    names, url = bucket
    ours, theirs = use(tmp_path / "ours"), use(tmp_path / "theirs", frames_url=url)
    assert theirs == ours
    assert ours["status"] == "succeeded"
    assert {name.split("/")[2] for name in names()} >= {"datasets", "evaluations"}
    assert not (tmp_path / "theirs" / "frames").exists()


@pytest.mark.slow
def test_rows_outlive_the_server(bucket, tmp_path):
    _, url = bucket
    made = None
    for _ in range(2):
        with steelyard.embed(
            tmp_path, engine="hashing", dataset_min_rows=1, frames_url=url
        ) as server:
            made = made or server.client.datasets.create("tickets", make_rows(30))
            assert server.client.datasets.download(made.id)
            assert len(server.client.datasets.rows(made.id, limit=50).data) > 0


def test_a_bucket_that_is_not_there_is_named_and_no_secret_is(s3):
    with pytest.raises(StorageUnavailableError, match="s3://absent-bucket/frames") as raised:
        open_store(f"s3://{KEY}:{SECRET}@absent-bucket/frames?{s3[1]}", "datasets")
    assert SECRET not in str(raised.value)
    assert "bucket" in str(raised.value)
