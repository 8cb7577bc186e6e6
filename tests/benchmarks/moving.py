"""Time the move of a made-up home to PostgreSQL and an S3 server of this machine, and back.

    python tests/benchmarks/moving.py --mb 1000 --decisions 100000

Needs PostgreSQL and ``pip install 'steelyard[test-s3]'``. Its S3 server is moto, in this process: it is
slower than any real store.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import moto.server
from machine import describe_machine
from pyarrow import fs
from sqlalchemy import NullPool, create_engine, select

import steelyard
from steelyard.app.moving import move_home
from steelyard.datasets.tables import dataset_versions
from steelyard.decision_log.tables import decisions
from steelyard.settings import Settings, read_settings
from steelyard.storage.frame_store import open_store
from steelyard.storage.home import sqlite_url

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.servers.postgres_server import postgres_server

QUESTION = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}
#: Bytes of a file.
FILE = 10_000_000


def make_home(home: Path, mb: int, n_decisions: int) -> None:
    """Make a dataset whose version names files of chance bytes, and stored decisions."""
    rows = [
        {"context": f"Parcel {number} is late.", "decisions": [QUESTION]} for number in range(10)
    ]
    targets = {"targets": {"team": {"shipping": 1.0}}}
    with steelyard.embed(home, engine="hashing", jobs="off", dataset_min_rows=1) as server:
        server.client.datasets.create("made", [{**row, **targets} for row in rows])
        server.client.decide("Parcel 7 was paid twice. " * 40, [QUESTION], store=True)
    store = open_store(home / "frames", "datasets")
    engine = create_engine(sqlite_url(home / "state.sqlite"), poolclass=NullPool)
    with engine.begin() as connection:
        column = dataset_versions.c.manifest
        manifest = json.loads(connection.execute(select(column)).scalar_one())
        for _ in range(mb * 1_000_000 // FILE):
            sha256 = store.put(os.urandom(FILE), ".parquet")
            manifest["parts"].append({**manifest["parts"][0], "sha256": sha256, "bytes": FILE})
        connection.execute(dataset_versions.update().values(manifest=json.dumps(manifest).encode()))
        row = dict(connection.execute(decisions.select()).mappings().one())
        stored = [{**row, "id": f"{row['id'][:-8]}{number:08}"} for number in range(n_decisions)]
        connection.execute(decisions.insert(), stored)


def show(name: str, source: Settings, target: Settings) -> None:
    """Move, and print the sizes and times; the CPU seconds are those of the S3 server too."""
    began, used = time.perf_counter(), time.process_time()
    moved = move_home(source, target)
    took, used = time.perf_counter() - began, time.process_time() - used
    what = f"{moved.n_files} | {moved.n_bytes / 1e6:.0f} | {moved.n_rows}"
    print(f"| {name} | {what} | {took:.1f} | {used:.1f} |", flush=True)


def main() -> None:
    """Print a table of the moves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--decisions", type=int, default=20_000)
    options = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    print("\n".join(describe_machine()))
    s3 = moto.server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    s3.start()
    endpoint = f"127.0.0.1:{s3.get_host_and_port()[1]}"
    bucket = fs.S3FileSystem(
        access_key="k",
        secret_key="s",
        endpoint_override=endpoint,
        scheme="http",
        allow_bucket_creation=True,
    )
    bucket.create_dir("steelyard")
    with tempfile.TemporaryDirectory() as folder, postgres_server(syncs=True) as postgres:
        home = Path(folder) / "home"
        make_home(home, options.mb, options.decisions)
        print("| move | files | MB | rows | seconds | CPU seconds |\n|---|---|---|---|---|---|")
        one = read_settings({"home": str(home)}, environ={})
        address = endpoint.replace(":", "%3A")
        several = read_settings(
            {
                "home": folder,
                "state_url": postgres.new_database(),
                "frames_url": f"s3://k:s@steelyard/frames?endpoint_override={address}&scheme=http",
            },
            environ={},
        )
        show("to PostgreSQL and S3", one, several)
        again = read_settings(
            {
                "home": folder,
                "state_url": postgres.new_database(),
                "frames_url": several.frames_url,
            },
            environ={},
        )
        show("again, where the files are there", one, again)
        show("back", several, read_settings({"home": f"{folder}/back"}, environ={}))
    s3.stop()


if __name__ == "__main__":
    with mock.patch.dict(os.environ, {"AWS_EC2_METADATA_DISABLED": "true"}):
        main()
