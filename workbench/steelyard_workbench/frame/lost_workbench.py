"""A page that lost its workbench says so and offers to load again, with the typed text."""

from __future__ import annotations

from pathlib import Path

from bokeh.document import Document
from bokeh.models import CustomJS

from steelyard_workbench.kit.components.unseen import Unseen

#: What a document tells its page when its connection is gone.
_LOST = 'window.dispatchEvent(new Event("steelyard-lost"));'


class LostWorkbench(Unseen):
    """Waits for a workbench that went away, and puts the typed text back into its fields."""

    _esm = Path(__file__).with_suffix(".js")


def tell_when_lost(document: Document) -> None:
    """Make a page hear that the connection to its workbench is gone."""
    document.js_on_event("connection_lost", CustomJS(code=_LOST))
