"""A throw-away S3 server for tests, and buckets of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from pyarrow import fs

KEY, SECRET = "the-key", "the-secret"


@pytest.fixture(scope="session")
def s3() -> Iterator[tuple[fs.FileSystem, str]]:
    """An S3 server of our own: its files, and the options of its addresses."""
    moto = pytest.importorskip(
        "moto.server", reason="needs an S3 server: pip install steelyard[test-s3]"
    )
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield (
        fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            endpoint_override=f"127.0.0.1:{port}",
            scheme="http",
            region="eu-west-1",
            allow_bucket_creation=True,
        ),
        f"endpoint_override=127.0.0.1%3A{port}&scheme=http&region=eu-west-1",
    )
    server.stop()


@pytest.fixture
def bucket(s3: tuple[fs.FileSystem, str]) -> tuple[Callable[[], list[str]], str]:
    """An empty bucket: its files, and its address with a prefix."""
    filesystem, options = s3
    name = f"steelyard-{uuid.uuid4().hex[:12]}"
    filesystem.create_dir(name)

    def names() -> list[str]:
        found = filesystem.get_file_info(fs.FileSelector(name, recursive=True))
        return sorted(one.path.partition("/")[2] for one in found if one.is_file)

    return names, f"s3://{KEY}:{SECRET}@{name}/at/prefix?{options}"
