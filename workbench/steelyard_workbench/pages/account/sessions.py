"""A user's sessions, which can be ended, and passkeys."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import panel as pn
from panel.viewable import Viewable

from steelyard.people.wire import Session
from steelyard_workbench.kit.basics import small_text
from steelyard_workbench.kit.components.facts import facts, heading
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.numbers import ago, ahead, moment
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.parts.passkeys import PasskeyPanel

_HOW = (
    "You sign in with a code that goes to your address. A session ends after 12 hours without use, "
    "and after 30 days. What is sensitive needs a code given within the last 15 minutes."
)
_SHOWN_AGENT = 60
#: Words of an agent with the names of browsers and systems; of several, the first here is meant.
_BROWSERS = {"Edg/": "Edge", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


class SessionSection(Section):
    """The sessions of the signed-in user."""

    def build(self) -> list[Viewable]:
        """Return the sessions, and how to end them."""
        self.sessions = Loaded(
            "Your sessions", lambda: self.client.account.sessions().data, self._show
        )
        passkeys = PasskeyPanel(self.client, self.session.confirm)
        self.part(passkeys.listed)
        return [
            small_text(_HOW),
            side_by_side(self.part(self.sessions), self.opened),
            self.button("End all others", self._end_others, "Not ended."),
            self.said,
            heading("Your passkeys"),
            passkeys,
        ]

    def _show(self, sessions: Sequence[Session]) -> Viewable:
        return mark_table(
            ("from", "with", "began", "last used", "ends by itself"),
            [
                (
                    f"{session.network or 'unknown'}{', this one' if session.is_current else ''}",
                    agent_text(session.agent),
                    ago(session.created_at),
                    ago(session.last_used_at),
                    ahead(min(session.idle_until, session.expires_at)),
                )
                for session in sessions
            ],
            label="Your sessions",
            open_=lambda place: self.open_session(sessions[place]),
            opens="Show the session",
        )

    def open_session(self, session: Session) -> None:
        """Show a session and the button that ends it."""
        values = {
            "From": session.network or "unknown",
            "With": session.agent or "—",
            "Began": moment(session.created_at),
            "Last code": moment(session.confirmed_at),
            "Ends at the latest": moment(session.expires_at),
        }
        if session.is_current:
            end: Viewable = small_text(
                "This is the one that you use. *Sign out*, at the top, ends it."
            )
        else:
            end = self.button("End the session", partial(self._end, session.id), "Not ended.")
        self.open(heading("Session"), facts(values), pn.Row(end, self.close_button()))

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


def agent_text(agent: str) -> str:
    """Return the browser and system that an agent names, or how it begins.

    >>> agent_text("Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0")
    'Firefox on Linux'
    >>> agent_text("curl/8.14.1")
    'curl/8.14.1'
    """
    browser = next((name for word, name in _BROWSERS.items() if word in agent), "")
    system = next((name for word, name in _SYSTEMS.items() if word in agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return agent[:_SHOWN_AGENT] or "—"
