"""Changes are sent to the browser; unchanged parts keep their last value."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import panel as pn
from bokeh.document.events import MessageSentEvent
from panel.io import document as of_panel
from panel_material_ui.base import MaterialComponent

#: Properties that no component lets a person change.
_ONLY_SHOWN = frozenset({"disabled", "items", "label", "object", "options"})
_panel_sends = of_panel._dispatch_msgs
_panel_drains = of_panel._drain_unconnected_events


async def _send(document: Any) -> None:
    try:
        await _panel_sends(document)
    finally:
        # What came meanwhile has a task of its own, which does nothing without this mark.
        if document in of_panel._WRITE_MSGS and document not in of_panel._WRITE_BLOCK:
            of_panel._WRITE_BLOCK[document] = True
            of_panel._dispatch_write_task(document, _send, document)


def _take_events(component: MaterialComponent, events: dict[str, Any]) -> None:
    sent_back = {name: events.pop(name) for name in _ONLY_SHOWN & events.keys()}
    if events:
        super(MaterialComponent, component)._process_events(events)
    if sent_back:
        component.param.trigger(*component._process_property_change(sent_back))


def _drain(document: Any, lock: threading.Lock) -> list[Any]:
    """Send the changes gathered while the browser drew the page."""
    session = getattr(document.session_context, "session", None)
    if session is None or session.connection_count == 0:
        return _panel_drains(document, lock)
    with lock:
        events = list(document.callbacks._held_events)
        later = [event for event in events if isinstance(event, MessageSentEvent)]
        of_panel._UNCONNECTED_EVENTS.setdefault(document, []).extend(later)
        document.callbacks._held_events = [event for event in events if event not in later]
        if pn.state._current_thread == pn.state._thread_id:
            document.unhold()
        else:
            # Not gathered by the hold that it ends.
            policy, document.callbacks._hold = document.callbacks._hold, None
            document.add_next_tick_callback(partial(_unhold, document, lock))
            document.callbacks._hold = policy
    return []


def _unhold(document: Any, lock: threading.Lock) -> None:
    with lock:
        document.unhold()


def send_what_comes_meanwhile() -> None:
    """Write to browsers so in this process.

    Panel 1.9 takes its mark that something waits away once it has written, without a look at newer
    changes: those stay unsent until something else on the page changes, which may be never.

    It drops changes under a hold until the browser has drawn the page, as if the browser took the page
    only then. It has taken it before: a link pressed meanwhile would do nothing, and later messages
    would refer to parts that the browser never got.

    Its components in the browser send each value back once they have drawn it. One that is drawn
    slowly so takes the place of the next, here and there; the next is sent again.
    """
    of_panel._dispatch_msgs = _send
    of_panel._drain_unconnected_events = _drain
    MaterialComponent._process_events = _take_events
