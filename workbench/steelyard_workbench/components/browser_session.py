"""Has the browser keep a session, or forget it: no page writes a cookie that scripts cannot read."""

from __future__ import annotations

import param

from steelyard_workbench.components.unseen import Unseen

_SEND = """
export function render({ model }) {
  const mark = document.createElement("span");
  mark.hidden = true;
  const send = async () => {
    if (!model.asked.length) return;
    const [ticket, reloads] = model.asked;
    let answer = null;
    try {
      answer = await fetch(new URL("session", location.href), {
        method: "POST", headers: { "X-Steelyard-Console": "1" }, body: ticket,
      });
    } catch { /* told below */ }
    if (answer && answer.ok && reloads) location.reload();
    else model.send_msg({ is_kept: Boolean(answer && answer.ok) });
  };
  model.on("asked", send);
  return mark;
}
"""


class BrowserSession(Unseen):
    """Sends the ticket of ``asked``, and ``{"is_kept"}`` to ``on_msg`` where it does not reload."""

    # One value: what is set apart need not come to the browser in that order.
    asked = param.List(default=[], doc="A ticket, and whether to load the page again after it.")

    _esm = _SEND
