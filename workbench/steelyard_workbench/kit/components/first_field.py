"""The focus goes to the first field of a dialog, or of another part, once that is drawn."""

from __future__ import annotations

from pathlib import Path

from steelyard_workbench.kit.components.unseen import Unseen


class FirstField(Unseen):
    """Moves the focus into the first field of the dialog that it stands in, or else of the part."""

    _esm = Path(__file__).with_suffix(".js")
