"""The focus of an opening dialog goes to its first field."""

from __future__ import annotations

from pathlib import Path

from steelyard_workbench.kit.components.unseen import Unseen


class FirstField(Unseen):
    """Moves the focus into the first field of the dialog that it stands in."""

    _esm = Path(__file__).with_suffix(".js")
