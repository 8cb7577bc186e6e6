"""Changes made while the browser draws are shown once it is done."""

from __future__ import annotations

from pathlib import Path

from steelyard_workbench.kit.components.unseen import Unseen


class HeardChanges(Unseen):
    """Sends changes again that happened between the first drawing of a page's parts and their listening.

    Panel 1.9 reads a value when it draws a part and listens to its changes once the part is on the
    screen: changes between the two, under load as much as a tenth of a second, were never shown.
    """

    _esm = Path(__file__).with_suffix(".js")
