"""Making the parts of a page in less time.

Panel 1.9 looks at every parameter of a component that it draws, and so has a copy of each made for
that component alone: a third of the time that a page takes to make. Those of its class say the same.
"""

from __future__ import annotations

from typing import Any

from bokeh.document import Document
from panel.custom import ReactiveESM
from panel.viewable import is_viewable_param

_panel_gets_properties = ReactiveESM._get_properties


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
    """Return what a bundle needs of an import map: that it has MUI; it imports nothing of it.

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


def make_parts_quickly() -> None:
    """Make components so in this process."""
    ReactiveESM._get_properties = _get_properties
    ReactiveESM._get_children = _get_children
