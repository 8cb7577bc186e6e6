"""Clients of HTTP are opened in one place, bounded and without the environment's settings."""

from __future__ import annotations

import re

from steelyard.http_clients import open_async_http, open_http
from support.tree.repository import PACKAGE, ROOT, python_files

_OPENED = re.compile(r"\bhttpx\.(?:(?:Async)?Client|get|post|put|delete|request|stream)\(")


def test_clients_are_opened_in_one_place_and_go_nowhere_by_themselves() -> None:
    opening = {
        path.name
        for path in python_files(PACKAGE, ROOT / "workbench")
        if _OPENED.search(path.read_text(encoding="utf-8"))
    }
    assert opening == {"http_clients.py"}
    for client in (open_http(timeout=2.0), open_async_http(timeout=2.0)):
        assert (client.follow_redirects, client.trust_env, client.timeout.read) == (False, False, 2)
    with open_http(timeout=None, follow_redirects=True, trust_env=True) as client:
        assert (client.follow_redirects, client.trust_env) == (True, True)
