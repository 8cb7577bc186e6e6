"""What a part of a page of the workbench shows, without a browser."""

from __future__ import annotations

from typing import Any


def texts(shown: Any) -> str:
    """Everything that a part of a page says."""
    parts = shown.select(lambda one: isinstance(getattr(one, "object", None), str))
    return "\n".join(one.object for one in parts)


def texts_of(shown: Any) -> str:
    """The same, with what else is written there: tables and figures as they write themselves."""
    found = [shown] if hasattr(shown, "object") else []
    if hasattr(shown, "select"):
        found = shown.select(lambda one: hasattr(one, "object"))
    return " ".join(str(one.object) for one in found)


def named(shown: Any, label: str) -> list[Any]:
    """The buttons and fields of a label."""
    return shown.select(lambda part: getattr(part, "label", None) == label)


def buttons(shown: Any) -> dict[str, Any]:
    """The buttons by their labels."""
    return {one.label: one for one in shown.select(lambda one: hasattr(one, "clicks"))}
