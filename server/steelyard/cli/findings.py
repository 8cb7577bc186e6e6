"""Findings of the checks of ``steelyard doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    check: str
    status: Status
    message: str
    advice: str | None = None


def ok(check: str, message: str, advice: str | None = None) -> Finding:
    """Return that a part is as it should be."""
    return Finding(check, "ok", message, advice)


def warn(check: str, message: str, advice: str | None = None) -> Finding:
    """Return that a part works, and could be better."""
    return Finding(check, "warn", message, advice)


def fail(check: str, message: str, advice: str | None = None) -> Finding:
    """Return that a part does not work."""
    return Finding(check, "fail", message, advice)
