"""Whether anybody can see the page: a browser's tab that is behind another is hidden."""

from __future__ import annotations

from pathlib import Path

import param

from steelyard_workbench.kit.components.unseen import Unseen


class Visibility(Unseen):
    """Whether the tab is hidden."""

    is_hidden = param.Boolean(default=False)

    _esm = Path(__file__).with_suffix(".js")
