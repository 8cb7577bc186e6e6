"""Keys of fields with choices: panel-material-ui opens them by a click alone, this by keys too."""

from __future__ import annotations

from pathlib import Path

from steelyard_workbench.kit.components.unseen import Unseen


class SelectKeys(Unseen):
    """Opens every field with choices by Enter, space and arrows, and goes through them by arrows.

    Where choices can be searched, the focus is in the words at first; the down arrow leaves them.
    """

    _esm = Path(__file__).with_suffix(".js")
