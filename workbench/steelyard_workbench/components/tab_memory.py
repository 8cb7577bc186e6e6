"""What a tab of the browser remembers when its page is loaded again."""

from __future__ import annotations

import param

from steelyard_workbench.components.unseen import Unseen

_REMEMBER = """
export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const read = () => {
    try { return sessionStorage.getItem(model.key) || ""; } catch { return ""; }
  };
  const stored = read();
  if (stored && !model.text) model.text = stored;
  model.on("text", () => {
    try {
      if (model.text) sessionStorage.setItem(model.key, model.text);
      else sessionStorage.removeItem(model.key);
    } catch { /* A browser without storage forgets. */ }
  });
  return mark;
}
"""


class TabMemory(Unseen):
    """Keeps a text in the storage of the tab: it is there again after a reload, and for nobody else."""

    key = param.String(default="", doc="Its name in the storage.")
    text = param.String(default="", doc="What is remembered; empty forgets it.")

    _esm = _REMEMBER
