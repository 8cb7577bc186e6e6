"""What Panel and Bokeh do otherwise in this process: send what comes meanwhile, make parts quickly.

Panel 1.9 looks at every parameter of a component that it draws, and so has a copy of each made for
that component alone: a third of the time that a page takes to make. Those of its class say the same.

Bokeh 3.9 looks for the parts within each part whenever any comes or goes, and makes the defaults of
all that was never set to look into them: an eighth of that time. Few defaults have a part in them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import panel as pn
from bokeh.core.has_props import HasProps
from bokeh.core.property.descriptors import PropertyDescriptor
from bokeh.document import Document
from bokeh.document.events import MessageSentEvent
from bokeh.model import util as of_bokeh
from panel.custom import ReactiveESM
from panel.io import document as of_panel
from panel.viewable import is_viewable_param
from panel_material_ui.base import MaterialComponent

#: Properties that no component lets a person change.
_ONLY_SHOWN = frozenset({"disabled", "items", "label", "object", "options"})
_panel_sends = of_panel._dispatch_msgs
_panel_drains = of_panel._drain_unconnected_events
_panel_gets_properties = ReactiveESM._get_properties
#: By class, the properties that may have a part in them, and whether by default too.
_WITH_PARTS: WeakKeyDictionary[type[HasProps], list[tuple[str, bool]]] = WeakKeyDictionary()


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


def _get_properties(component: ReactiveESM, document: Document | None) -> dict[str, Any]:
    private = component._param__private
    of_instance = private.params
    private.params = {**component.param.objects(instance=False), **of_instance}
    try:
        properties: dict[str, Any] = _panel_gets_properties(component, document)
    finally:
        private.params = of_instance
    if properties.get("bundle") and (importmap := properties.get("importmap")):
        properties["importmap"] = _mui_alone(importmap)
    return properties


def _mui_alone(importmap: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an import map that a bundle needs: that it has MUI; it imports nothing of it.

    Each component would send, and the browser read, two kilobytes of addresses outside.
    """
    imports = importmap.get("imports", {})
    return {"imports": {name: url for name, url in imports.items() if name == "@mui/material/"}}


def _get_children(
    component: ReactiveESM, _: Any, document: Document, *place: Any
) -> tuple[dict[str, Any], list[Any]]:
    models, models_before = {}, []
    for name, parameter in component.param.objects(instance=False).items():
        if is_viewable_param(parameter) and component._property_mapping.get(name, "") is not None:
            child = getattr(component, name)
            models[name], before = component._get_child_model(child, document, *place)
            models_before += before
    return models, models_before


def _with_parts(value: HasProps) -> list[tuple[str, bool]]:
    with_parts = _WITH_PARTS.get(type(value))
    if with_parts is None:
        with_parts = _WITH_PARTS[type(value)] = [
            (name, _has_parts_by_default(value, name)) for name in value.properties_with_refs()
        ]
    return with_parts


def _has_parts_by_default(value: HasProps, name: str) -> bool:
    descriptor = value.lookup(name)
    if type(descriptor) is not PropertyDescriptor:
        return True  # it has a way of its own to its value
    default = descriptor.class_default(type(value))
    return bool(default) and not isinstance(default, (str, int, float))


def _visit_parts(value: Any, visit: Callable[[Any], None]) -> None:
    look_into = of_bokeh.visit_value_and_its_immediate_references
    if not isinstance(value, HasProps):
        look_into(value, visit)
        return
    ways = (value._property_values, value._unstable_themed_values, value._unstable_default_values)
    for name, has_parts_by_default in _with_parts(value):
        if has_parts_by_default:
            look_into(getattr(value, name), visit)
            continue
        for values in ways:
            if name in values:
                look_into(values[name], visit)
                break


def make_parts_quickly() -> None:
    """Make components so in this process."""
    of_bokeh.visit_immediate_value_references = _visit_parts
    ReactiveESM._get_properties = _get_properties
    ReactiveESM._get_children = _get_children
