"""Making the parts of a page in less time.

Panel 1.9 looks at every parameter of a component that it draws, and so has a copy of each made for
that component alone: a third of the time that a page takes to make. Those of its class say the same.

Bokeh 3.9 looks for the parts within each part whenever any comes or goes, and makes the defaults of
all that was never set to look into them: an eighth of that time. Few defaults have a part in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from bokeh.core.has_props import HasProps
from bokeh.core.property.descriptors import PropertyDescriptor
from bokeh.document import Document
from bokeh.model import util as of_bokeh
from panel.custom import ReactiveESM
from panel.viewable import is_viewable_param

_panel_gets_properties = ReactiveESM._get_properties
#: By class, the properties that may have a part in them, and whether by default too.
_WITH_PARTS: WeakKeyDictionary[type[HasProps], list[tuple[str, bool]]] = WeakKeyDictionary()


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
