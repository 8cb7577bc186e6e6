"""Components that are code alone, each with its script beside this file: they take no room on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent

#: JavaScript for the ``_esm`` of a component: ``whenFramed(mark, use)`` calls ``use`` with the root
#: that the page's frame stands in, once ``mark`` is in it, and gives a function that calls it off.
WHEN_FRAMED = """
const whenFramed = (mark, use) => {
  let isOff = false;
  const look = () => {
    if (isOff) return;
    let root = mark.getRootNode();
    while (root.host && !root.querySelector("nav")) root = root.host.getRootNode();
    if (root.host) use(root);
    else setTimeout(look, 100);
  };
  look();
  return () => { isOff = true; };
};
"""


def _script(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.js")


class Unseen(JSComponent):
    """The invisible scripts of a page."""

    __abstract = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **options})


class BrowserSession(Unseen):
    """Sends the ticket of ``asked``, and ``{"is_stored"}`` to ``on_msg`` where it does not reload."""

    # One value: separate ones need not come to the browser in that order.
    asked = param.List(default=[], doc="A ticket, and whether to load the page again after it.")

    _esm = _script("browser_session")


class Finder(Unseen):
    """Sends typed text: ``{"text", "n"}`` of ``on_msg``; ``{"chosen", "n"}`` is the answer."""

    opened = param.Integer(default=0, doc="How often a button opened it.")
    answer = param.Dict(default={}, doc="The number of what was asked, what was found, and a note.")

    _esm = _script("finder")


class FirstField(Unseen):
    """Moves the focus into the first field of the dialog that it stands in, or else of the part."""

    _esm = _script("first_field")


class FrameRoles(Unseen):
    """Names the parts of the page's frame: its menu, its bar of progress, and its resizer."""

    _esm = WHEN_FRAMED + _script("frame_roles").read_text(encoding="utf-8")


class HeardChanges(Unseen):
    """Sends changes again that happened between the first drawing of a page's parts and their listening.

    Panel 1.9 reads a value when it draws a part and listens to its changes once the part is on the
    screen: changes between the two, under load as much as a tenth of a second, were never shown.
    """

    _esm = _script("heard_changes")


class IdentityVisit(Unseen):
    """Goes with each of ``visits``; sends ``{"message"}`` to ``on_msg`` where that fails."""

    visits = param.Integer(default=0)

    _esm = _script("identity_visit")


class IntoView(Unseen):
    """Scrolls to the part after it once that is shown, where it would be out of sight; and by ``bring``."""

    n = param.Integer(default=0)

    _esm = _script("into_view")

    def bring(self) -> None:
        """Scroll to the part."""
        self.n += 1


class KeyCapture(Unseen):
    """Sends which keys are pressed: each is a message to ``on_msg``, ``{"key"}``."""

    watched = param.List(default=[], item_type=str)
    # Panel loses changes by a key on a page that is still being drawn.
    is_ready = param.Boolean(default=False)

    _esm = _script("key_capture")


class PageHistory(Unseen):
    """Makes an entry of the browser's history of each page alone, and shows one gone back to."""

    #: What the browser's tab, its history and its bookmarks call the page.
    title = param.String()

    _esm = _script("page_history")


class SelectKeys(Unseen):
    """Opens every field with choices by Enter, space and arrows, and goes through them by arrows.

    Where choices can be searched, the focus is in the words at first; the down arrow leaves them.
    """

    _esm = _script("select_keys")


class SkipLink(Unseen):
    """Puts ``Skip to content`` before the frame of the page."""

    _esm = WHEN_FRAMED + _script("skip_link").read_text(encoding="utf-8")


class StepNames(Unseen):
    """Names the buttons beside a number, which panel-material-ui 0.16 draws as icons alone."""

    n = param.Integer(default=0, doc="How many fields of numbers stand beside it.")

    _esm = _script("step_names")


class TabMemory(Unseen):
    """Keeps a text in the storage of the tab: it is there again after a reload, for this tab only."""

    key = param.String(default="", doc="Its name in the storage.")
    is_lasting = param.Boolean(default=False, doc="Whether every tab has it, and the next visit.")
    text = param.String(default="", doc="What is remembered; empty forgets it.")

    _esm = _script("tab_memory")


class Visibility(Unseen):
    """Whether the tab is hidden."""

    is_hidden = param.Boolean(default=False)

    _esm = _script("visibility")
