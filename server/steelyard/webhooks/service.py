"""Webhooks of an account: created, changed, tested, and their deliveries."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.ids import new_id
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.outbox.names import EVENTS, TEST, Event
from steelyard.outbox.publishing import encode_event, waiting
from steelyard.storage import State
from steelyard.storage.rows import lock_account
from steelyard.webhooks import store as rows
from steelyard.webhooks import wire
from steelyard.webhooks.signing import new_secret
from steelyard.webhooks.targets import RefusedTargetError, read_target
from steelyard.wire.filling import filled
from steelyard.wire.queries import PageQuery
from steelyard.wire.violations import BODY

MAX_WEBHOOKS = 20
#: Deliveries that wait for a webhook while callers may ask for more.
MAX_WAITING = 100
#: Seconds for which deliveries are signed with the secret before, too.
OLD_SECRET_S = 86_400.0
_BY_OWNER = "Switched off by the account."


class Webhooks:
    """The webhooks of every account; ``allowed`` are the hosts that the operator lists."""

    def __init__(
        self,
        state: State,
        writes: KeyedWrites,
        *,
        allowed: Collection[str],
        wake: Callable[[], None],
    ) -> None:
        self._state = state
        self._writes = writes
        self._allowed = allowed
        self._wake = wake

    async def create(self, write: Write, request: wire.CreateWebhook) -> wire.Webhook:
        """Make a webhook; the answer alone has its secret."""
        self._check_url(request.url)
        account_id, now, secret = write.caller.account_id, time.time(), new_secret()
        webhook_id = new_id("wh")
        values = {
            "id": webhook_id,
            "account_id": account_id,
            "url": request.url,
            "description": request.description,
            "events": _join(request.events),
            "secret": secret,
            "created_at": now,
            "updated_at": now,
        }

        def make(connection: Connection) -> wire.Webhook:
            lock_account(connection, account_id)
            if rows.WEBHOOKS.count(connection, account_id) >= MAX_WEBHOOKS:
                raise errors.WebhookLimitError(
                    f"The account has {MAX_WEBHOOKS} webhooks, and may have no more; remove one."
                )
            rows.WEBHOOKS.insert(connection, values)
            return _to_wire(_find(connection, account_id, webhook_id), secret)

        return await self._writes.once(write, make)

    async def page(self, caller: Caller, query: PageQuery) -> wire.WebhookPage:
        """Return a page of the account's webhooks."""
        page = await self._state.read(
            lambda connection: rows.WEBHOOKS.page(
                connection, caller.account_id, limit=query.limit, cursor=query.cursor
            )
        )
        return page.to_wire(wire.WebhookPage, [_to_wire(row) for row in page.rows])

    async def get(self, caller: Caller, webhook_id: str) -> wire.Webhook:
        """Return a webhook."""
        return await self._state.read(
            lambda connection: _to_wire(_find(connection, caller.account_id, webhook_id))
        )

    async def change(
        self, write: Write, webhook_id: str, request: wire.ChangeWebhook
    ) -> wire.Webhook:
        """Change a webhook; with a new secret, the answer alone has it."""
        if request.url is not None:
            self._check_url(request.url)
        account_id, now = write.caller.account_id, time.time()
        secret = new_secret() if request.rotate_secret else UNSET
        given: dict[str, Any] = {
            "url": request.url,
            "description": request.description,
            "events": None if request.events is None else _join(request.events),
        }
        values = {name: value for name, value in given.items() if value is not None}
        if request.enabled:
            values |= {"disabled_at": None, "disabled_reason": None, "failing_since": None}

        def work(connection: Connection) -> wire.Webhook:
            row = _find(connection, account_id, webhook_id)
            if secret is not UNSET:
                rotated = {"secret": secret, "old_secret": row.secret}
                values.update(rotated, old_until=now + OLD_SECRET_S)
            rows.WEBHOOKS.change(connection, webhook_id, updated_at=now, **values)
            if request.enabled is False and row.disabled_at is None:
                rows.switch_off(connection, webhook_id, _BY_OWNER, now)
            return _to_wire(_find(connection, account_id, webhook_id), secret)

        return await self._writes.once(write, work)

    async def delete(self, write: Write, webhook_id: str) -> wire.DeletedWebhook:
        """Remove a webhook and its deliveries."""
        account_id = write.caller.account_id

        def work(connection: Connection) -> wire.DeletedWebhook:
            _find(connection, account_id, webhook_id)
            rows.WEBHOOKS.delete(connection, webhook_id)
            return wire.DeletedWebhook(id=webhook_id, deleted=True)

        return await self._writes.once(write, work)

    async def deliveries(
        self, caller: Caller, webhook_id: str, query: wire.DeliveriesQuery
    ) -> wire.DeliveryPage:
        """Return a page of a webhook's deliveries."""

        def read(connection: Connection) -> wire.DeliveryPage:
            _find(connection, caller.account_id, webhook_id)
            page = rows.page_of_deliveries(connection, webhook_id, query)
            return page.to_wire(wire.DeliveryPage, [_delivery_to_wire(row) for row in page.rows])

        return await self._state.read(read)

    async def redeliver(self, write: Write, webhook_id: str, delivery_id: str) -> wire.Delivery:
        """Deliver an event once more, after whatever of its subject waits already."""
        account_id, now = write.caller.account_id, time.time()

        def work(connection: Connection) -> wire.Delivery:
            _require_on(_find(connection, account_id, webhook_id))
            row = rows.DELIVERIES.find(connection, webhook_id, delivery_id)
            if row is None:
                raise errors.NotFoundError(
                    f"There is no delivery {delivery_id[:60]!r} to this webhook; see GET "
                    f"/v1/integrations/webhooks/{webhook_id}/deliveries."
                )
            again = waiting(webhook_id, row.event_id, row.event, row.subject, row.body, now)
            return _add(connection, again)

        return await self._send(write, work)

    async def test(self, write: Write, webhook_id: str) -> wire.Delivery:
        """Send a webhook an event that means nothing, in one try."""
        account_id, now = write.caller.account_id, time.time()
        event_id = new_id("evt")
        body = encode_event(TEST, event_id, {"webhook_id": webhook_id}, now)

        def work(connection: Connection) -> wire.Delivery:
            _require_on(_find(connection, account_id, webhook_id))
            # A subject of its own: it waits for no other event.
            return _add(connection, waiting(webhook_id, event_id, TEST, event_id, body, now))

        return await self._send(write, work)

    async def _send(
        self, write: Write, work: Callable[[Connection], wire.Delivery]
    ) -> wire.Delivery:
        added = await self._writes.once(write, work)
        self._wake()
        return added

    def _check_url(self, url: str) -> None:
        try:
            read_target(url, self._allowed)
        except RefusedTargetError as error:
            path = (*BODY, "url")
            raise errors.InvalidRequestError.at(path, str(error), "refused_url") from None


def _find(connection: Connection, account_id: str, webhook_id: str) -> Row[Any]:
    row = rows.WEBHOOKS.find(connection, account_id, webhook_id)
    if row is None:
        raise errors.NotFoundError(
            f"There is no webhook {webhook_id[:60]!r}; see GET /v1/integrations/webhooks."
        )
    return row


def _require_on(row: Row[Any]) -> None:
    if row.disabled_at is not None:
        raise errors.WebhookOffError(
            f"The webhook is switched off: {row.disabled_reason} Switch it on with PATCH "
            f"/v1/integrations/webhooks/{row.id} and enabled: true."
        )


def _add(connection: Connection, values: dict[str, Any]) -> wire.Delivery:
    n_waiting = rows.count_waiting(connection, values["webhook_id"])
    if n_waiting >= MAX_WAITING:
        raise errors.WebhookLimitError(
            f"{n_waiting} deliveries wait for this webhook; ask again when fewer than {MAX_WAITING} "
            f"do, and see GET /v1/integrations/webhooks/{values['webhook_id']}/deliveries for why."
        )
    rows.DELIVERIES.insert(connection, values)
    row = rows.DELIVERIES.find(connection, values["webhook_id"], values["id"])
    assert row is not None  # noqa: S101  it was just written
    return _delivery_to_wire(row)


def _join(events: list[Event]) -> str:
    return " ".join(event for event in EVENTS if event in events)


def _to_wire(row: Row[Any], secret: str | UnsetType = UNSET) -> wire.Webhook:
    return filled(
        wire.Webhook,
        row,
        events=cast("list[Event]", row.events.split()),
        enabled=row.disabled_at is None,
        secret=secret,
    )


def _delivery_to_wire(row: Row[Any]) -> wire.Delivery:
    return filled(
        wire.Delivery,
        row,
        next_try_at=row.next_at if row.status == "waiting" else None,
        payload=msgspec.json.decode(row.body),
    )
