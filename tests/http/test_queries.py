"""Queries: read by type, refused with every violation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Literal
from urllib.parse import parse_qsl

import msgspec
import pytest
from msgspec import Meta

from steelyard.errors import InvalidRequestError
from steelyard.http.queries import read_query

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


class Query(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=200)] = 200
    cursor: Annotated[str, Meta(max_length=4)] | None = None
    archived: bool | None = None
    status: list[Literal["queued", "running"]] = []  # a struct copies it
    side: Literal["all", "training"] = "all"


def read(text: str) -> Query:
    def arguments(*, keep_blank_values: bool) -> list[tuple[str, str]]:
        return parse_qsl(text, keep_blank_values=keep_blank_values)

    return read_query(SimpleNamespace(query_string=text, get_query_args=arguments), Query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", Query()),
        ("limit=5&archived=true", Query(limit=5, archived=True)),
        ("archived=false&cursor=a%20b", Query(archived=False, cursor="a b")),
        ("status=queued&status=running", Query(status=["queued", "running"])),
        ("status=queued", Query(status=["queued"])),
        ("status=queued,%20running", Query(status=["queued", "running"])),
        ("cursor=null", Query(cursor="null")),
    ],
)
def test_a_query_is_read(text, query):
    assert read(text) == query


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("limit=0", ["limit"]),
        ("limit=201", ["limit"]),
        ("limit=many", ["limit"]),
        ("limit=", ["limit"]),
        ("limit=1.5", ["limit"]),
        ("cursor=abcde", ["cursor"]),
        ("archived=perhaps", ["archived"]),
        ("archived=null", ["archived"]),
        ("limit=1&limit=2", ["limit"]),
        ("colour=red", ["colour"]),
        ("side=left", ["side"]),
        ("status=zzz,running&limit=0", ["status", "limit"]),
        ("limit=0&colour=red&cursor=abcde", ["limit", "colour", "cursor"]),
    ],
)
def test_every_violation_is_told(text, names):
    with pytest.raises(InvalidRequestError) as refused:
        read(text)
    assert [violation.path for violation in refused.value.violations] == [
        ("query", name) for name in names
    ]
