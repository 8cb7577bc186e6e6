"""A bar of progress that has a name, as screen readers need; panel-material-ui's has none (0.16)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import param
from panel.custom import JSComponent

from steelyard_workbench.kit.look import with_tokens

_STYLE = with_tokens("""
.track { height: 4px; border-radius: 2px; overflow: hidden; background: var(--line); }
.track i { display: block; height: 100%; background: var(--accent); transition: width 0.2s; }
.track:not([aria-valuenow]) i { width: 40%; animation: moving 1.6s ease-in-out infinite alternate; }
@keyframes moving { to { transform: translateX(150%); } }
@media (prefers-reduced-motion: reduce) { .track i { animation: none !important; } }
""")


class ProgressBar(JSComponent):
    """How far work is, ``value`` of 100, or below 0 where that is not known."""

    label = param.String(default="Progress")
    value = param.Number(default=0)

    _stylesheets: ClassVar[list[str]] = [_STYLE]
    _esm = Path(__file__).with_suffix(".js")

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"margin": (5, 10), **options})
