"""The servers that conformance is tested on."""

from __future__ import annotations

import pytest

from support.servers.live_server import live_server


def pytest_ignore_collect(collection_path, config):
    """Leave long runs alone unless asked for: their requests are made when they are collected."""
    is_long = collection_path.name.endswith("_at_length.py")
    return True if is_long and "not slow" in config.option.markexpr else None


@pytest.fixture(scope="module")
def open_server():
    with live_server() as server:
        yield server


@pytest.fixture(scope="module")
def keyed_server():
    with live_server(accounts="on", prices="hashing=1") as server:
        yield server


@pytest.fixture(scope="module")
def key(keyed_server):
    accounts = keyed_server.services.accounts
    account = accounts.create_account("conformance").id
    accounts.add_credit(account, 10**15)
    return accounts.create_key(account=account).secret
