"""Whether anybody can see the page: a browser's tab that is behind another is hidden."""

from __future__ import annotations

import param

from steelyard_workbench.components.unseen import Unseen

_WATCH = """
export function render({ model }) {
  const tell = () => { model.is_hidden = document.hidden; };
  document.addEventListener("visibilitychange", tell);
  model.on("remove", () => document.removeEventListener("visibilitychange", tell));
  tell();
  const mark = document.createElement("span");
  mark.hidden = true;
  return mark;
}
"""


class Visibility(Unseen):
    """Whether the tab is hidden."""

    is_hidden = param.Boolean(default=False)

    _esm = _WATCH
