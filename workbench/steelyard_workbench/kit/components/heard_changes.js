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
