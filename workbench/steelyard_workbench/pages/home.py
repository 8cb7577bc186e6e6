"""Home: what needs somebody, and what happened last."""

from __future__ import annotations

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.loaded import Loaded
from steelyard_workbench.page import Page


class HomePage(Page):
    """What needs me."""

    slug = "home"
    title = "Home"

    def build(self) -> list[Viewable]:
        """Give the parts."""
        return [self.part(Loaded("The server", self.client.ready, lambda r: pmui.Markdown(f"{r}")))]
