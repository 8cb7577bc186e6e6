"""What changes is sent to the browser, and what the browser only shows stays what was sent last."""

from __future__ import annotations

from typing import Any

from panel.io import document as of_panel
from panel_material_ui.base import MaterialComponent

#: Properties that no component lets a person change.
_ONLY_SHOWN = frozenset({"disabled", "items", "label", "object", "options"})
_panel_sends = of_panel._dispatch_msgs


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


def send_what_comes_meanwhile() -> None:
    """Write to browsers so in this process.

    Panel 1.9 takes its mark that something waits away once it has written, without a look at what
    came meanwhile: that stays unsent until something else on the page changes, which may be never.

    Its components in the browser send each value back once they have drawn it. One that is drawn
    slowly so takes the place of the next, here and there; the next is sent again.
    """
    of_panel._dispatch_msgs = _send
    MaterialComponent._process_events = _take_events
