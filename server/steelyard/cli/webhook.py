"""``steelyard webhook``: an account's events, delivered to endpoints of other programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_rows, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.terminal import printable
from steelyard.outbox.names import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.client import Client
    from steelyard.outbox.names import Event
    from steelyard.webhooks.wire import Delivery, Webhook

#: Seconds that ``test`` waits for its delivery, and between two looks.
_WAIT_S, _POLL_S = 30.0, 0.1
#: The newest deliveries that ``test`` looks through for its own.
_LOOKED = 50

_EPILOG = """\b
Examples:
  steelyard webhook add https://hooks.example.com/steelyard --event job.succeeded --event job.failed
  steelyard webhook test wh_01k…
  steelyard webhook deliveries wh_01k… --status failed
  steelyard webhook redeliver wh_01k… whd_01k…
"""


@click.group("webhook", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Deliver events of an account to endpoints of other programs, signed and in order.

    Exit status: 1 when a test was not delivered.
    """


_event_option = click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice(EVENTS),
    help="An event that it is sent; repeated for more.",
)


@command.asks("add")
@click.argument("address", metavar="URL")
@_event_option
@click.option("--description", help="For people.")
def add(
    client: Client, *, address: str, events: tuple[Event, ...], description: str | None
) -> Shown:
    """Send events, all of them by default, to URL; its secret is shown once."""
    made = client.webhooks.create(address, events or EVENTS, description=description)
    return made, _show_made


@command.asks("list")
def list_webhooks(client: Client) -> Shown:
    """List the account's webhooks, the newest first."""
    return list(client.webhooks.list()), _show_webhooks


@command.asks("change", "webhook")
@click.option("--to", metavar="URL", help="Another address.")
@_event_option
@click.option("--description", help="For people.")
@click.option("--on/--off", "enabled", default=None, help="Switch it on or off.")
@click.option(
    "--rotate-secret", is_flag=True, help="Make a new secret; the old one signs a day more."
)
def change(
    client: Client, webhook: str, to: str | None, events: tuple[Event, ...], **fields: Any
) -> Shown:
    """Change WEBHOOK; fields left out stay."""
    changed = client.webhooks.change(webhook, url=to, events=events or None, **fields)
    return changed, _show_made


@command.asks("remove", "webhook")
def remove(client: Client, webhook: str) -> Shown:
    """Remove WEBHOOK and its deliveries."""
    removed = client.webhooks.delete(webhook)
    return removed, f"Removed {printable(removed.id)}."


@command.asks("deliveries", "webhook")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(("waiting", "delivered", "failed")),
    help="Only these; may be repeated.",
)
def deliveries(client: Client, webhook: str, statuses: tuple[str, ...]) -> Shown:
    """List the deliveries to WEBHOOK of the last 30 days, the newest first."""
    return list(client.webhooks.deliveries(webhook, status=statuses)), _show_deliveries


@command.asks("redeliver", "webhook", "delivery")
def redeliver(client: Client, webhook: str, delivery: str) -> Shown:
    """Deliver the event of DELIVERY to WEBHOOK once more."""
    return client.webhooks.redeliver(webhook, delivery), _show_delivery


@command.asks("test", "webhook")
def test(client: Client, webhook: str) -> Shown:
    """Send WEBHOOK the event webhook.test, and wait for its delivery."""
    from itertools import islice

    sent = client.webhooks.test(webhook)
    until = time.monotonic() + _WAIT_S
    while sent.status == "waiting" and time.monotonic() < until:
        time.sleep(_POLL_S)
        newest = islice(client.webhooks.deliveries(webhook, page_size=_LOOKED), _LOOKED)
        sent = next((delivery for delivery in newest if delivery.id == sent.id), sent)
    return sent, _show_delivery, sent.status != "delivered"


def _show_made(webhook: Webhook) -> None:
    _show_webhooks([webhook])
    if isinstance(webhook.secret, str):
        click.echo(f"\nSecret, shown once: {webhook.secret}")


def _show_webhooks(webhooks: Sequence[Webhook]) -> None:
    show_rows(
        webhooks,
        "ID:id, URL:url, EVENTS:events, ON:enabled, FAILING SINCE:failing_since",
        events=lambda each: "all" if len(each.events) == len(EVENTS) else ", ".join(each.events),
    )
    for webhook in webhooks:
        if webhook.disabled_reason is not None:
            click.echo(printable(f"{webhook.id} is off: {webhook.disabled_reason}"))


_show_deliveries = table_of(
    "ID:id, EVENT:event, SUBJECT:subject, STATUS:status, TRIES:attempts, ANSWER:response_status, "
    "MADE:created_at, NEXT TRY:next_try_at"
)


def _show_delivery(delivery: Delivery) -> None:
    _show_deliveries(delivery)
    if delivery.error is not None:
        click.echo(printable(delivery.error))
