"""The dataset services: two writers at once, unused files, and processes that die."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from contextlib import closing

import httpx
import pytest

from steelyard import errors
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.datasets import service as service_module
from steelyard.datasets.store import mark_dataset_used
from steelyard.datasets.wire import DatasetsQuery
from steelyard.families.store import dataset_of_family
from steelyard.families.tables import families
from steelyard.operations.write import Write
from support.datasets.dataset_rows import make_row_dict, make_rows, to_ndjson
from support.datasets.opened_datasets import OpenedDatasets
from support.servers.serving import serving

CALLER = Caller(LOCAL_ACCOUNT, None, "full", "127.0.0.1")
ROUTE = "POST /v1/datasets"


@pytest.fixture
def opened(tmp_path):
    with closing(OpenedDatasets(tmp_path)) as opened:
        yield opened


def test_writers_at_once_give_a_version_each(opened):
    made = opened.create(make_rows(10))

    async def send_all():
        sent = (opened.send(made["id"], make_rows(5, 100 * n)) for n in range(1, 9))
        await asyncio.gather(*sent)

    asyncio.run(send_all())
    versions = asyncio.run(opened.datasets.versions(CALLER, made["id"])).data
    assert [version.rows for version in versions] == list(range(50, 9, -5))


def test_rows_are_placed_behind_a_version_made_meanwhile(opened, monkeypatch):
    made = opened.create(make_rows(10))
    write_version = service_module.write_version

    def slow(*given):
        monkeypatch.setattr(service_module, "write_version", write_version)
        opened.add(made["id"], make_rows(1, 50))
        return write_version(*given)

    monkeypatch.setattr(service_module, "write_version", slow)
    opened.add(made["id"], make_rows(1, 60))
    versions = asyncio.run(opened.datasets.versions(CALLER, made["id"])).data
    assert [version.rows for version in versions] == [12, 11, 10]


def test_equal_requests_at_once_add_their_rows_once(opened):
    made = opened.create(make_rows(10))

    async def send_all():
        sent = (opened.send(made["id"], make_rows(5, 100), key="k") for _ in range(4))
        return await asyncio.gather(*sent)

    answers = asyncio.run(send_all())
    assert answers == [answers[0]] * 4
    assert answers[0]["version"] == 2


def test_rows_of_a_family_go_to_the_dataset_that_it_grows_on(opened):
    own, other = (opened.create(make_rows(5, start))["id"] for start in (0, 50))
    router = {
        "account_id": LOCAL_ACCOUNT,
        "name": "router",
        "dataset_id": own,
        "created_at": 1.0,
        "body": b"{}",
    }
    opened.state.write_now(lambda c: c.execute(families.insert(), router))
    opened.datasets.register_families(dataset_of_family)

    def version(dataset_id, rows, family):
        return opened.add(dataset_id, rows, family=family)["version"]

    with pytest.raises(errors.DatasetMismatchError, match=own):
        version(other, make_rows(1, 60), "router")
    assert len(asyncio.run(opened.datasets.versions(CALLER, other)).data) == 1
    assert version(own, make_rows(1, 60), "router") == 2
    assert version(other, make_rows(1, 60), "nobody") == 2
    opened.state.write_now(lambda c: c.execute(families.update().values(deleted_at=2.0)))
    assert version(other, make_rows(1, 70), "router") == 3


def test_a_replay_reads_no_rows_again(opened, monkeypatch):
    first = opened.create(make_rows(3), key="k")
    monkeypatch.setattr(service_module, "write_version", None)
    assert opened.create(make_rows(3), key="k") == first


def test_a_full_disk_makes_no_dataset_and_leaves_the_key_free(opened, monkeypatch):
    def full(*_):
        raise errors.StorageUnavailableError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(opened.store, "adopt", full)
        with pytest.raises(errors.StorageUnavailableError):
            opened.create(make_rows(3), key="k")
    assert opened.create(make_rows(3), key="k")["rows"] == 3


def test_work_reads_a_version_that_does_not_change(opened):
    made = opened.create([make_row_dict({"n": number}) for number in range(20)])
    at = asyncio.run(opened.datasets.dataset_at(CALLER, made["id"]))
    before = list(opened.datasets.evaluation_rows(at))
    assert (at.version, at.sha256, at.method) == (1, made["sha256"], "sft")
    assert len(before) == at.split.evaluation == 4
    assert before[0].targets == {"route": {"billing": 1.0}, "refund": {"yes": 1.0}}
    assert len({row.context_sha256 for row in before}) == 4
    opened.add(made["id"], make_rows(10))
    assert list(opened.datasets.evaluation_rows(at)) == before
    newest = asyncio.run(opened.datasets.dataset_at(CALLER, made["id"]))
    assert newest.evaluation_sha256 != at.evaluation_sha256


def test_work_reads_a_rows_metadata(opened):
    rows = [make_row_dict({"n": number}, metadata={"team": str(number)}) for number in range(5)]
    made = opened.create(rows)
    at = asyncio.run(opened.datasets.dataset_at(CALLER, made["id"]))
    read = [
        row for side in ("training", "evaluation") for row in opened.datasets.side_rows(at, side)
    ]
    assert sorted((row.context["n"], row.metadata) for row in read) == [
        (number, {"team": str(number)}) for number in range(5)
    ]
    with pytest.raises(errors.NotFoundError):
        asyncio.run(opened.datasets.dataset_at(CALLER, made["id"], 3))


def test_used_datasets_come_first(opened):
    ids = [opened.create(make_rows(2, 10 * number))["id"] for number in range(3)]
    opened.state.write_now(lambda c: mark_dataset_used(c, ids[0], time.time()))

    def listed(cursor=None):
        return asyncio.run(opened.datasets.page(CALLER, DatasetsQuery(limit=1, cursor=cursor)))

    walked, page = [], listed()
    while page.has_more:
        walked += page.data
        page = listed(page.next_cursor)
    assert [one.id for one in [*walked, *page.data]] == [ids[0], ids[2], ids[1]]
    assert walked[0].used_at is not None


def test_files_that_no_version_needs_are_removed(opened, monkeypatch):
    kept = opened.create(make_rows(5))
    needed = opened.store.names()
    gone = opened.create(make_rows(5, 50))
    old = time.time() - service_module.ERASE_AFTER_S - 60
    orphan = opened.store.put(b"left behind", ".parquet")
    for name in opened.store.names():
        os.utime(opened.store.path_of(name), (old, old))
    asyncio.run(opened.datasets.delete(Write(CALLER), gone["id"]))
    assert opened.store.names() == needed
    assert f"{orphan}.parquet" not in opened.store.names()
    at = asyncio.run(opened.datasets.dataset_at(CALLER, kept["id"]))
    assert len(list(opened.datasets.side_rows(at, "training"))) == 4
    with pytest.raises(errors.DatasetDeletedError):
        asyncio.run(opened.datasets.dataset_at(CALLER, gone["id"]))


def test_rows_that_two_datasets_share_stay_when_one_goes(opened):
    made = [opened.create(make_rows(5), name=name) for name in "ab"]
    old = time.time() - service_module.ERASE_AFTER_S - 60
    for name in opened.store.names():
        os.utime(opened.store.path_of(name), (old, old))
    asyncio.run(opened.datasets.delete(Write(CALLER), made[0]["id"]))
    at = asyncio.run(opened.datasets.dataset_at(CALLER, made[1]["id"]))
    assert len(list(opened.datasets.side_rows(at, "training"))) == 4


def test_young_files_are_left_alone(opened):
    orphan = opened.store.put(b"on its way", ".parquet")
    assert opened.datasets.sweep() == []
    assert f"{orphan}.parquet" in opened.store.names()


def check_whole(url: str, acknowledged: dict[str, int], *, newest: int = 10_000) -> None:
    """Check that acknowledged datasets are listed, and the newest can be read in whole."""
    with httpx.Client(base_url=url, timeout=30) as client:
        listed: dict[str, dict] = {}
        cursor = ""
        while cursor is not None:
            params = {"cursor": cursor} if cursor else {}
            page = client.get("/v1/datasets", params=params).json()
            listed.update((one["id"], one) for one in page["data"])
            cursor = page["next_cursor"]
        assert acknowledged.keys() <= listed.keys()
        assert all(listed[id_]["version"] >= number for id_, number in acknowledged.items())
        for dataset_id in list(listed)[:newest]:
            for version in client.get(f"/v1/datasets/{dataset_id}/versions").json()["data"]:
                params = {"version": version["version"]}
                lineage = client.get(f"/v1/datasets/{dataset_id}/download", params=params)
                assert len(lineage.content.splitlines()) == version["rows"]


@pytest.mark.parametrize(
    "n_kills",
    [
        pytest.param(3, marks=[pytest.mark.slow, pytest.mark.timeout(300)]),
        pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_kill_9_while_rows_are_uploaded_and_committed(tmp_path, n_kills):
    chance = random.Random(f"kill {n_kills}")
    acknowledged: dict[str, int] = {}
    start = 0
    # Nobody reads the log here, and a pipe that is full would stop the server.
    quiet = {"STEELYARD_LOG_LEVEL": "warning"}
    for _ in range(n_kills):
        with serving(tmp_path, **quiet) as (process, told):
            check_whole(told["url"], acknowledged, newest=5)
            timer = threading.Timer(chance.uniform(0.05, 1.0), process.kill)
            timer.start()
            try:
                while True:
                    start += 400
                    write(told["url"], start, acknowledged)
            except httpx.TransportError:
                pass
            timer.join()
        (tmp_path / "serve.json").unlink(missing_ok=True)
    with serving(tmp_path, **quiet) as (_, told):
        check_whole(told["url"], acknowledged)


def write(url: str, start: int, acknowledged: dict[str, int]) -> None:
    """Make a dataset and add to it; note acknowledged writes."""
    headers = {"Content-Type": "application/x-ndjson"}
    with httpx.Client(base_url=url, timeout=30, headers=headers) as client:
        made = client.post(
            "/v1/datasets", params={"name": "n"}, content=to_ndjson(make_rows(200, start))
        ).json()
        acknowledged[made["id"]] = 1
        path = f"/v1/datasets/{made['id']}/versions"
        added = client.post(path, content=to_ndjson(make_rows(200, start + 200))).json()
        acknowledged[made["id"]] = added["version"]
