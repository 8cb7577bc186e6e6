"""Alarms: changes that were detected, and the watched metrics of each model."""

from __future__ import annotations

import asyncio
from itertools import islice

import panel as pn
from panel.viewable import Viewable

from steelyard.alarms.wire import Alarm
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.views import empty, heading, table
from steelyard_workbench.kit.words import ago, escape_markdown, everyday
from steelyard_workbench.pages.alarms.rules import Rules
from steelyard_workbench.parts.live.alarms import AlarmBand, fetch_alarms
from steelyard_workbench.parts.live.view import AnswerFilter, View, to_text
from steelyard_workbench.parts.named.looking import alarms_about
from steelyard_workbench.parts.named.naming import filter_row, name_of

_MOST_CLEARED = 50
_NONE = (
    "**No alarm is raised.** An alarm is raised when the stored answers of a model are no longer as "
    "they were: other answers, other texts, less often right, or slower."
)


class AlarmsPage(Page):
    """The alarms, and the rules that raise them."""

    slug = "alarms"
    title = "Alarms"
    summary = "What changed in the answers of your models since they were evaluated."
    look_ms = 10_000

    def build(self) -> list[Viewable]:
        """Return the alarms, those that cleared, and the rules."""
        self.raised = Loaded("The alarms", self._fetch_raised, self._show_raised)
        listed = self.client.alarms.list
        cleared = Loaded(
            "The alarms that cleared",
            lambda: list(islice(listed(state="cleared"), _MOST_CLEARED)),
            _show_cleared,
            n_lines=2,
        )
        self.rules = Rules(self.session, self.visit)
        self.rules.on_change = lambda: self.raised.refresh.start(quietly=True)
        row = filter_row(self.session, self.raised.refresh.start)
        shown = [row, self.part(self.raised), self.rules.__panel__(), self.part(cleared)]
        self.parts += self.rules.parts
        return shown

    async def look(self) -> None:
        """See whether an alarm was raised or has cleared."""
        if self.session.is_connected and self.raised.state == "shown":
            known = [(alarm.id, alarm.state) for alarm in self.raised.data or []]
            newest = await asyncio.to_thread(self._fetch_raised)
            if [(alarm.id, alarm.state) for alarm in newest] != known:
                await self.raised.refresh(quietly=True)
                await self.rules.rules.refresh(quietly=True)

    def _fetch_raised(self) -> list[Alarm]:
        name = name_of(self.session)
        return alarms_about(self.client, name) if name else fetch_alarms(self.client)

    def _show_raised(self, alarms: list[Alarm]) -> Viewable:
        if not alarms:
            live = action_button("Look at live answers", lambda _: self.session.open("live"))
            name = name_of(self.session)
            none = f"**No alarm is raised about {escape_markdown(name)}.**" if name else _NONE
            return empty(none, live, is_good=True)
        return stack(
            *(
                AlarmBand(
                    self.client,
                    alarm,
                    open_=self._open_rows,
                    on_known=lambda: self.raised.refresh.start(quietly=True),
                )
                for alarm in alarms
            )
        )

    def _open_rows(self, rows: AnswerFilter) -> None:
        self.session.open("live", query=to_text(View(rows=rows)), decision="")


def _show_cleared(alarms: list[Alarm]) -> Viewable:
    if not alarms:
        return pn.Column(visible=False)
    rows = [
        (
            alarm.version or alarm.model,
            everyday(alarm.message),
            ago(alarm.raised_at),
            ago(alarm.cleared_at),
            (alarm.cleared_reason or "").replace("_", " "),
        )
        for alarm in alarms
    ]
    columns = ("model", "alarm", "raised", "cleared", "because")
    return stack(heading("Cleared"), table(columns, rows, label="Alarms that cleared"))
