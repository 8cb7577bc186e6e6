"""Webhooks: events of the account that are sent to programs of yours."""

from __future__ import annotations

from panel.viewable import Viewable

from steelyard_workbench.kit.page import Page
from steelyard_workbench.pages.webhooks.listing import WebhookListing


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
