"""Findings of the checks of ``steelyard doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One line of the report."""

    check: str
    status: Status
    message: str
    advice: str | None = None


def ok(check: str, message: str, advice: str | None = None) -> CheckFinding:
    """Return that a part is as it should be."""
    return CheckFinding(check, "ok", message, advice)


def warn(check: str, message: str, advice: str | None = None) -> CheckFinding:
    """Return that a part works, and could be better."""
    return CheckFinding(check, "warn", message, advice)


def fail(check: str, message: str, advice: str | None = None) -> CheckFinding:
    """Return that a part does not work."""
    return CheckFinding(check, "fail", message, advice)
