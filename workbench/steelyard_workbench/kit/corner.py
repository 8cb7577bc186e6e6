"""Messages in a corner of the window, over any page."""

from __future__ import annotations

import panel as pn

#: Milliseconds that a message stays; a failure stays for longer.
_DONE_MS, _FAILED_MS = 6000, 20_000


def say(text: str) -> None:
    """Show that an action is done."""
    if pn.state.notifications is not None:
        pn.state.notifications.success(text, _DONE_MS)


def say_failure(text: str) -> None:
    """Show a failure, for longer."""
    if pn.state.notifications is not None:
        pn.state.notifications.error(text, _FAILED_MS)
