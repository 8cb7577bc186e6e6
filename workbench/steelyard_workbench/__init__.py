"""The Steelyard workbench: review, evaluate and promote in a browser or in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard_workbench.notebook import Workbench

__all__ = ["Workbench"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        # Panel takes seconds to import: only where the workbench is shown.
        from steelyard_workbench import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
