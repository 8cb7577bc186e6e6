"""What changes is sent to the browser, also while the browser is still being written to."""

from __future__ import annotations

from typing import Any

from panel.io import document as of_panel

_panel_sends = of_panel._dispatch_msgs


async def _send(document: Any) -> None:
    try:
        await _panel_sends(document)
    finally:
        # What came meanwhile has a task of its own, which does nothing without this mark.
        if document in of_panel._WRITE_MSGS and document not in of_panel._WRITE_BLOCK:
            of_panel._WRITE_BLOCK[document] = True
            of_panel._dispatch_write_task(document, _send, document)


def send_what_comes_meanwhile() -> None:
    """Write to browsers so in this process.

    Panel 1.9 takes its mark that something waits away once it has written, without a look at what
    came meanwhile: that stays unsent until something else on the page changes, which may be never.
    """
    of_panel._dispatch_msgs = _send
