"""``steelyard webhook``: an account's events, delivered to endpoints of other programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.failures import FAILED
from steelyard.cli.local_state import show_table, show_time
from steelyard.cli.terminal import printable
from steelyard.outbox.names import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.outbox.names import Event
    from steelyard.webhooks.wire import DeletedWebhook, Delivery, Webhook

#: Seconds that ``test`` waits for what became of it, and between two looks.
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


@click.group("webhook", epilog=_EPILOG)
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


@command.command("add", epilog=_EPILOG)
@click.argument("address", metavar="URL")
@_event_option
@click.option("--description", help="For people.")
@server_options
def add(
    *, address: str, events: tuple[Event, ...], description: str | None, server: Server
) -> None:
    """Send events, all of them by default, to URL; its secret is shown once."""
    with server.connected() as client:
        made = client.webhooks.create(address, events or EVENTS, description=description)
    server.show(made, _show_made)


@command.command("list", epilog=_EPILOG)
@server_options
def list_webhooks(*, server: Server) -> None:
    """List the account's webhooks, the newest first."""
    with server.connected() as client:
        webhooks = list(client.webhooks.list())
    server.show(webhooks, _show_webhooks)


@command.command("change", epilog=_EPILOG)
@click.argument("webhook")
@click.option("--to", metavar="URL", help="Another address.")
@_event_option
@click.option("--description", help="For people.")
@click.option("--on/--off", "enabled", default=None, help="Switch it on or off.")
@click.option(
    "--rotate-secret", is_flag=True, help="Make a new secret; the old one signs a day more."
)
@server_options
def change(
    *,
    webhook: str,
    to: str | None,
    events: tuple[Event, ...],
    description: str | None,
    enabled: bool | None,
    rotate_secret: bool,
    server: Server,
) -> None:
    """Change WEBHOOK; fields left out stay."""
    with server.connected() as client:
        changed = client.webhooks.change(
            webhook,
            url=to,
            events=events or None,
            description=description,
            enabled=enabled,
            rotate_secret=rotate_secret,
        )
    server.show(changed, _show_made)


@command.command("remove", epilog=_EPILOG)
@click.argument("webhook")
@server_options
def remove(*, webhook: str, server: Server) -> None:
    """Remove WEBHOOK and its deliveries."""
    with server.connected() as client:
        removed = client.webhooks.delete(webhook)
    server.show(removed, _show_removed)


@command.command("deliveries", epilog=_EPILOG)
@click.argument("webhook")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(("waiting", "delivered", "failed")),
    help="Only these; may be repeated.",
)
@server_options
def deliveries(*, webhook: str, statuses: tuple[str, ...], server: Server) -> None:
    """List the deliveries to WEBHOOK of the last 30 days, the newest first."""
    with server.connected() as client:
        listed = list(client.webhooks.deliveries(webhook, status=statuses))
    server.show(listed, _show_deliveries)


@command.command("redeliver", epilog=_EPILOG)
@click.argument("webhook")
@click.argument("delivery")
@server_options
def redeliver(*, webhook: str, delivery: str, server: Server) -> None:
    """Deliver the event of DELIVERY to WEBHOOK once more."""
    with server.connected() as client:
        answer = client.webhooks.redeliver(webhook, delivery)
    server.show(answer, _show_delivery)


@command.command("test", epilog=_EPILOG)
@click.argument("webhook")
@server_options
def test(*, webhook: str, server: Server) -> None:
    """Send WEBHOOK the event webhook.test, and wait for its delivery."""
    from itertools import islice

    with server.connected() as client:
        sent = client.webhooks.test(webhook)
        until = time.monotonic() + _WAIT_S
        while sent.status == "waiting" and time.monotonic() < until:
            time.sleep(_POLL_S)
            newest = islice(client.webhooks.deliveries(webhook, page_size=_LOOKED), _LOOKED)
            sent = next((delivery for delivery in newest if delivery.id == sent.id), sent)
    server.show(sent, _show_delivery)
    if sent.status != "delivered":
        raise click.exceptions.Exit(FAILED)


def _show_made(webhook: Webhook) -> None:
    _show_webhooks([webhook])
    if isinstance(webhook.secret, str):
        click.echo(f"\nSecret, shown once: {webhook.secret}")


def _show_webhooks(webhooks: Sequence[Webhook]) -> None:
    show_table(
        ("ID", "URL", "EVENTS", "ON", "FAILING SINCE"),
        [
            (
                webhook.id,
                webhook.url,
                "all" if len(webhook.events) == len(EVENTS) else ", ".join(webhook.events),
                "yes" if webhook.enabled else "no",
                show_time(webhook.failing_since),
            )
            for webhook in webhooks
        ],
    )
    for webhook in webhooks:
        if webhook.disabled_reason is not None:
            click.echo(printable(f"{webhook.id} is off: {webhook.disabled_reason}"))


def _show_removed(removed: DeletedWebhook) -> None:
    click.echo(f"Removed {printable(removed.id)}.")


def _show_deliveries(listed: Sequence[Delivery]) -> None:
    show_table(
        ("ID", "EVENT", "SUBJECT", "STATUS", "TRIES", "ANSWER", "MADE", "NEXT TRY"),
        [
            (
                delivery.id,
                delivery.event,
                delivery.subject,
                delivery.status,
                delivery.attempts,
                delivery.response_status,
                show_time(delivery.created_at),
                show_time(delivery.next_try_at),
            )
            for delivery in listed
        ],
    )


def _show_delivery(delivery: Delivery) -> None:
    _show_deliveries([delivery])
    if delivery.error is not None:
        click.echo(printable(delivery.error))
