"""Where somebody is signed in, and how that is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.people.wire import Session
from steelyard_workbench.components.facts import facts, heading
from steelyard_workbench.components.mark_table import mark_table
from steelyard_workbench.components.numbers import ago, ahead, moment
from steelyard_workbench.components.side_by_side import side_by_side
from steelyard_workbench.loaded import Loaded
from steelyard_workbench.people.personal import Section

_HOW = (
    "You sign in with a code that goes to your address. A session ends after 12 hours without use, "
    "and after 30 days. What is sensitive needs a code given within the last 15 minutes."
)
_SHOWN_AGENT = 60


class Sessions(Section):
    """The sessions of whoever is signed in."""

    def build(self) -> list[Viewable]:
        """Return the sessions, and what ends them."""
        self.sessions: Loaded[list[Session]] = Loaded(
            "Your sessions", lambda: self.client.account.sessions().data, self._show
        )
        return [
            pmui.Typography(_HOW, variant="body2"),
            side_by_side(self.part(self.sessions), self.opened),
            self.button("End all others", self._end_others, "Not ended."),
            self.said,
        ]

    def _show(self, sessions: Sequence[Session]) -> Viewable:
        return mark_table(
            ("from", "with", "began", "last used", "ends by itself"),
            [
                (
                    f"{one.network or 'unknown'}{', this one' if one.is_current else ''}",
                    one.agent[:_SHOWN_AGENT] or "—",
                    ago(one.created_at),
                    ago(one.last_used_at),
                    ahead(min(one.idle_until, one.expires_at)),
                )
                for one in sessions
            ],
            label="Your sessions",
            open_=lambda place: self.open_session(sessions[place]),
            opens="Show the session",
        )

    def open_session(self, session: Session) -> None:
        """Show a session and what ends it."""
        close = pmui.Button(label="Close", variant="text", size="small")
        close.on_click(lambda _: self.close())
        values = {
            "From": session.network or "unknown",
            "With": session.agent or "—",
            "Began": moment(session.created_at),
            "Last code": moment(session.confirmed_at),
            "Ends at the latest": moment(session.expires_at),
        }
        if session.is_current:
            end: Viewable = pmui.Typography(
                "This is the one that you use. *Sign out*, at the top, ends it.", variant="body2"
            )
        else:
            end = self.button("End the session", partial(self._end, session.id), "Not ended.")
        self.open(heading("Session"), facts(values), pn.Row(end, close))

    async def _end(self, session_id: str) -> None:
        await asyncio.to_thread(self.client.account.end_session, session_id)
        self.close()
        await self.sessions.refresh(quietly=True)
        self.tell("The session is ended.")

    async def _end_others(self) -> None:
        ended = await asyncio.to_thread(self.client.account.end_other_sessions)
        self.close()
        await self.sessions.refresh(quietly=True)
        self.tell(f"Other sessions ended: {ended.ended}.")
