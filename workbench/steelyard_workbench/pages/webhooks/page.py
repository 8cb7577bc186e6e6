"""Webhooks: events of the account that are sent to programs of yours."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from msgspec import UNSET
from panel.viewable import Viewable

from steelyard.outbox.names import EVENTS
from steelyard.webhooks.wire import Delivery, Webhook
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed, typed
from steelyard_workbench.kit.views import Details, empty, facts, heading, table
from steelyard_workbench.kit.words import ago, everyday

_MOST, _MOST_DELIVERIES = 200, 50
_NONE = (
    "**No webhooks yet.** A webhook sends events, such as a fine-tune that ended or an alarm that was "
    "raised, to a program of yours. Name its address below."
)
_ONCE = "Copy its secret now: it is not shown again. Your program checks signatures with it."
#: What a new webhook is sent, unless something else is chosen.
_USUAL = ["job.succeeded", "job.failed", "alarm.raised"]
#: Events whose codes say little even without their dots.
_WORDS = {
    "decision.moved": "decision has another version in use",
    "decision.share_ended": "share of a decision's traffic ended",
    "labeling.review_ready": "labels can be reviewed",
}


class WebhooksPage(Page):
    """The webhooks of the account."""

    slug = "webhooks"
    title = "Webhooks"
    summary = "Sends signed events to your programs as they happen."

    def build(self) -> list[Viewable]:
        """Return the list, the webhook that is open, and the form of a new one."""
        self.section = WebhookListing(self.session, self.visit)
        self.parts += self.section.parts
        return [self.section.__panel__()]


class WebhookListing(Section):
    """The list, the webhook that is open beside it, and the form of a new one."""

    def build(self) -> list[Viewable]:
        """Return the list and the form."""
        self.opened.width = 560
        listed = self.client.webhooks.list
        self.webhooks: Loaded[list[Webhook]] = Loaded(
            "The webhooks", lambda: list(islice(listed(), _MOST)), self._show
        )
        self.url = pmui.TextInput(
            label="Address", placeholder="https://example.com/steelyard", width=340
        )
        self.events = pmui.MultiChoice(
            label="Events",
            options={_words(event): event for event in EVENTS},
            value=_USUAL,
            sizing_mode="stretch_width",
            max_width=520,
        )
        self.about = pmui.TextInput(label="Note, for people", max_length=200, width=260)
        add = self.button(
            "Add a webhook",
            self._add,
            "No webhook was added.",
            variant="contained",
            fields={"url": self.url, "events": self.events, "description": self.about},
        )
        return [
            side_by_side(self.part(self.webhooks), self.opened),
            heading("Add a webhook"),
            pn.FlexBox(self.url, self.about),
            self.events,
            add,
            self.said,
            self.question,
        ]

    def _show(self, webhooks: Sequence[Webhook]) -> Viewable:
        if not webhooks:
            return empty(_NONE)
        return mark_table(
            ("address", "events", "state", "note"),
            [
                (
                    webhook.url,
                    ", ".join(map(_words, webhook.events)),
                    _state_of(webhook),
                    webhook.description,
                )
                for webhook in webhooks
            ],
            label="Webhooks",
            open_=lambda place: self.open_webhook(webhooks[place]),
            opens="Show its deliveries, and change it",
        )

    def open_webhook(self, webhook: Webhook) -> None:
        """Show a webhook, its deliveries, and its editable fields."""
        deliveries = Loaded(
            "The deliveries",
            lambda: list(islice(self.client.webhooks.deliveries(webhook.id), _MOST_DELIVERIES)),
            partial(self._show_deliveries, webhook),
        )
        deliveries.refresh.scope = self.scope
        self.deliveries = deliveries
        switch = "Switch off" if webhook.enabled else "Switch on"
        remove = self.harmful(
            "Remove …",
            "Remove the webhook?",
            "It gets no more events, and the list of its deliveries is deleted.",
            "Remove it",
            partial(self._remove, webhook),
            "Not removed.",
        )
        values = {"State": _state_of(webhook), "Made": ago(webhook.created_at)}
        exact = {"Id": webhook.id, "Events": ", ".join(webhook.events)}
        self.open(
            heading(webhook.description or webhook.url),
            facts(values),
            pn.FlexBox(
                self.button("Send a test", partial(self._test, webhook), "Not sent."),
                self.button(
                    switch,
                    partial(self._change, webhook, enabled=not webhook.enabled),
                    "Not changed.",
                ),
                self.button(
                    "Make a new secret",
                    partial(self._change, webhook, rotate_secret=True),
                    "No secret was made.",
                ),
                remove,
                self.close_button(),
            ),
            heading("Deliveries", 3),
            deliveries,
            Details(lambda: [facts(exact)], "its id, codes of events"),
        )
        deliveries.start()

    def _show_deliveries(self, webhook: Webhook, deliveries: Sequence[Delivery]) -> Viewable:
        if not deliveries:
            return empty("Nothing was sent yet.")
        failures = [delivery for delivery in deliveries if delivery.status == "failed"]
        views: list[Viewable] = [
            table(
                ("event", "status", "tries", "answer", "when"),
                [
                    (
                        _words(delivery.event),
                        delivery.status,
                        str(delivery.attempts),
                        delivery.error or str(delivery.response_status or ""),
                        ago(delivery.created_at).replace(" ", "\N{NO-BREAK SPACE}"),
                    )
                    for delivery in deliveries
                ],
                label="Deliveries",
                numbers=(2,),
            )
        ]
        if failures:
            label = "Send the last failed one again"
            again = self.button(label, partial(self._redeliver, webhook, failures[0]), "Not sent.")
            views.append(again)
        return stack(*views)

    async def _add(self) -> None:
        url = needed(self.url, "Write the address of your program.")
        webhook = await asyncio.to_thread(
            self.client.webhooks.create,
            url,
            list(self.events.value),
            description=typed(self.about) or None,
        )
        self.url.param.update(value="", value_input="")
        self._tell_secret("The webhook is added.", webhook)
        await self.webhooks.refresh(quietly=True)

    async def _change(self, webhook: Webhook, **changes: Any) -> None:
        changed = await asyncio.to_thread(self.client.webhooks.change, webhook.id, **changes)
        await self.webhooks.refresh(quietly=True)
        self.open_webhook(changed)
        self._tell_secret("The webhook is changed.", changed)

    def _tell_secret(self, text: str, webhook: Webhook) -> None:
        if webhook.secret is UNSET:
            self.tell(text)
        else:
            self.tell(f"{text} {_ONCE}", CopyText(str(webhook.secret), "the secret"))

    async def _test(self, webhook: Webhook) -> None:
        sent = await asyncio.to_thread(self.client.webhooks.test, webhook.id)
        await self.deliveries.refresh(quietly=True)
        self.tell(f"A test is on its way: {sent.status}.")

    async def _redeliver(self, webhook: Webhook, delivery: Delivery) -> None:
        await asyncio.to_thread(self.client.webhooks.redeliver, webhook.id, delivery.id)
        await self.deliveries.refresh(quietly=True)
        self.tell(f"“{_words(delivery.event)}” is sent again.")

    async def _remove(self, webhook: Webhook) -> None:
        await asyncio.to_thread(self.client.webhooks.delete, webhook.id)
        await self.done("The webhook is removed.", self.webhooks)


def _words(event: str) -> str:
    return _WORDS.get(event) or everyday(event.replace(".", " ").replace("_", " "))


def _state_of(webhook: Webhook) -> str:
    if not webhook.enabled:
        return f"off: {webhook.disabled_reason or 'switched off'}"
    if webhook.failing_since is not None:
        return f"failing since {ago(webhook.failing_since)}"
    return "on"
