"""What every page is: a heading, parts that load by themselves, and keys of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard_workbench.loaded import Loaded
from steelyard_workbench.session import Session


class Page(Viewer):
    """A page of the workbench.

    Parameters
    ----------
    session : Session
        What the browser looks at.

    Attributes
    ----------
    slug, title : str
        Its place in the address, and its heading.
    summary : str
        One sentence under the heading.
    """

    slug: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str] = ""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.client = session.client
        self.parts: list[Loaded[Any]] = []
        self._box = pn.Column(sizing_mode="stretch_width", name=self.title)

    def __panel__(self) -> Viewable:
        return self._box

    def open(self) -> None:
        """Show the page; called each time that somebody goes to it."""
        for part in self.parts:
            part.drop()
        self.parts = []
        heading: list[Viewable] = [pmui.Typography(self.title, variant="h1", sx=_HEADING)]
        if self.summary:
            heading.append(pmui.Typography(self.summary, variant="body2"))
        self._box[:] = [*heading, *self.build()]
        for part in list(self.parts):
            part.start()

    def close(self) -> None:
        """Leave the page: what polls for it stops."""

    def reconnect(self) -> None:
        """See the server again: parts that failed are fetched anew, the others stay."""
        for part in list(self.parts):
            if part.state == "failed":
                part.start()

    def answered(self) -> None:
        """Take in that the server answers; told of every few seconds, shown or not."""

    def build(self) -> list[Viewable]:
        """Give what is under the heading; parts made with ``part`` load once it is shown."""
        raise NotImplementedError

    def part(self, part: Loaded[Any]) -> Viewable:
        """Add a part that loads when the page is shown."""
        self.parts.append(part)
        return part.__panel__()

    def on_key(self, action: str, number: int) -> bool:
        """Do what a key is for; give whether the page has a use for it."""
        del action, number
        return False


_HEADING = {"fontSize": "1.6rem", "fontWeight": 600}
