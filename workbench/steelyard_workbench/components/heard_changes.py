"""What changes while the browser draws it, shown as it then is."""

from __future__ import annotations

from steelyard_workbench.components.unseen import Unseen

_HEAR = """
const NAME = "panel.models.esm.ReactComponent";
const component = window.Bokeh?.Models.get(NAME)?.prototype;
if (component && !Object.hasOwn(component, "steelyard_hears")) {
  component.steelyard_hears = true;
  const { watch } = component;
  // A hook of React, and nothing else, forces; what it is told anew and knows draws nothing.
  component.watch = function (view, prop, told, force = false) {
    watch.call(this, view, prop, told, force);
    if (force && !this.events.includes(prop)) told();
  };
}
export function render() {
  const mark = document.createElement("span");
  mark.hidden = true;
  return mark;
}
"""


class HeardChanges(Unseen):
    """Passes on to the parts of a page what changed between their first drawing and their listening.

    Panel 1.9 reads a value when it draws a part and listens to its changes once the part is on the
    screen: what changes between, under load as much as a tenth of a second, was never shown.
    """

    _esm = _HEAR
