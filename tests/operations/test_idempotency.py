"""Keys and hashes, and writes that happen once per key."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from sqlalchemy import Connection, func, insert, select

from steelyard import errors
from steelyard.caller import Caller
from steelyard.http.pipeline import check_idempotency_key
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write, payload_sha256
from steelyard.storage import State
from steelyard.storage.tables import accounts
from support.accounts.operating import LOCAL, Clock
from support.servers.calling import Sent, sent

ROUTE = "POST /v1/feedback"
DAY = 86_400.0


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON_VALUES)
def test_a_payload_is_hashed_in_pieces_as_in_one(value: object) -> None:
    whole = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert payload_sha256(value) == hashlib.sha256(whole.encode()).hexdigest()
    assert payload_sha256(value, is_short=True) == payload_sha256(value)


class Writes:
    """Keyed writes that each make an account, and how many there are."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.clock = Clock()
        self.writes = KeyedWrites(state, now=self.clock)
        self.n_runs = 0
        self.failure: Exception | None = None

    def work(self, connection: Connection) -> Raw:
        self.n_runs += 1
        name = f"made-{self.n_runs}"
        connection.execute(insert(accounts), {"id": name, "name": name, "created_at": 1.0})
        if self.failure is not None:
            raise self.failure
        return Raw(name.encode())

    async def send(
        self, key: str | None, *, payload: str = "p", route: str = ROUTE, caller: Caller = LOCAL
    ) -> Sent:
        write = Write(caller, route, key, payload)
        return await sent(self.writes.once(write, self.work, window_s=600), write)

    def run(self, key: str | None, **given) -> Sent:
        return asyncio.run(self.send(key, **given))

    @property
    def n_made(self) -> int:
        query = select(func.count()).select_from(accounts)
        return self.state.read_now(lambda c: c.execute(query).scalar_one()) - 1


@pytest.fixture
def writes(state: State) -> Writes:
    return Writes(state)


def test_without_a_key_every_call_writes(writes: Writes):
    assert [writes.run(None).body for _ in range(2)] == [b"made-1", b"made-2"]


def test_with_a_key_one_call_writes_and_the_others_replay(writes: Writes):
    assert writes.run("k") == Sent(b"made-1")
    assert writes.run("k") == Sent(b"made-1", is_replay=True)
    with pytest.raises(errors.IdempotencyConflictError):
        writes.run("k", payload="other")
    writes.run("k", route="DELETE /v1/feedback")
    assert writes.n_made == 2


def test_calls_at_once_write_once(writes: Writes):
    async def send_all() -> list[Sent]:
        return await asyncio.gather(*(writes.send("k") for _ in range(20)))

    replies = asyncio.run(send_all())
    assert {reply.body for reply in replies} == {b"made-1"}
    assert sum(reply.is_replay for reply in replies) == 19
    assert writes.n_made == 1


def test_a_refused_write_leaves_nothing_and_the_key_free(writes: Writes):
    writes.failure = errors.NotFoundError("No such decision.")
    with pytest.raises(errors.NotFoundError):
        writes.run("k")
    assert writes.n_made == 0
    writes.failure = None
    assert not writes.run("k", payload="other").is_replay


def test_the_answer_goes_before_the_key(writes: Writes):
    writes.run("k")
    writes.clock.at += 600
    with pytest.raises(errors.IdempotencyResponseExpiredError):
        writes.run("k")
    writes.clock.at += 30 * DAY
    assert not writes.run("k", payload="other").is_replay
    assert writes.n_made == 2


def test_a_key_is_of_its_account(writes: Writes):
    def make(connection: Connection) -> None:
        connection.execute(insert(accounts), {"id": "a", "name": "a", "created_at": 1.0})

    writes.state.write_now(make)
    writes.run("k")
    assert not writes.run("k", caller=Caller("a", None, "full", "")).is_replay


@pytest.mark.parametrize("value", ["", " ", "a b", "é", "a\n", "x" * 256, "\x7f", "\0"])
def test_keys_of_other_forms_are_refused(value: str):
    with pytest.raises(errors.InvalidRequestError) as caught:
        check_idempotency_key(value)
    assert caught.value.details[0]["path"] == ["header", "Idempotency-Key"]


@pytest.mark.parametrize("value", ["a", "!~", "x" * 255])
def test_keys_of_the_form_are_given_back(value: str):
    assert check_idempotency_key(value) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_the_hash_is_of_the_value_and_not_of_its_spelling(value: object):
    spelled = json.dumps(value, indent=3)
    turned = json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(pairs[::-1]))
    assert payload_sha256(json.loads(spelled)) == payload_sha256(turned) == payload_sha256(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": 1}, {"a": "1"}), ([1, 2], [2, 1]), ({"a": None}, {}), (0, False), ("é", "e")],
)
def test_other_values_have_other_hashes(one: object, other: object):
    assert payload_sha256(one) != payload_sha256(other)
