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
    name: Annotated[str, Meta(pattern="^[a-z]+$")] | None = None
    share: Annotated[float, Meta(gt=0, lt=1)] | None = None
    ids: Annotated[list[str], Meta(max_length=2)] = []


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
    ("text", "messages"),
    [
        ("cursor=a%00", ["cursor has the character NUL (U+0000); send it without."]),
        ("limit=0", ["limit is 0; the smallest allowed is 1."]),
        ("limit=201", ["limit is 201; the largest allowed is 200."]),
        ("limit=many", ['limit is "many"; give a whole number.']),
        ("limit=", ['limit is ""; give a whole number.']),
        ("limit=1.5", ['limit is "1.5"; give a whole number.']),
        ("limit=99999999999999999999", [f"limit is {10**20 - 1}; the largest allowed is 200."]),
        ("cursor=abcde", ["cursor has 5 characters; give at most 4."]),
        ("name=A", ["name does not match ^[a-z]+$; correct it."]),
        ("share=1", ["share is 1.0; give less than 1."]),
        ("share=nan", ["share is NaN; give more than 0."]),
        ("archived=perhaps", ['archived is "perhaps"; give true or false.']),
        (
            "archived=null",
            ["archived cannot be null in an address; give a value, or leave it out."],
        ),
        ("limit=1&limit=2", ["limit is given 2 times; give it once."]),
        ("colour=red", ["colour is not a parameter here; remove it."]),
        ("side=left", ['side has "left"; use all, training.']),
        ("ids=a,b,c", ["ids has 3 entries; give at most 2."]),
        (
            "status=zzz,running&limit=0",
            ['status has "zzz"; use queued, running.', "limit is 0; the smallest allowed is 1."],
        ),
        (
            "limit=0&colour=red",
            [
                "limit is 0; the smallest allowed is 1.",
                "colour is not a parameter here; remove it.",
            ],
        ),
    ],
)
def test_every_violation_is_reported(text, messages):
    with pytest.raises(InvalidRequestError) as refused:
        read(text)
    found = refused.value.violations
    assert [violation.message for violation in found] == messages
    assert [violation.path for violation in found] == [
        ("query", message.partition(" ")[0]) for message in messages
    ]
