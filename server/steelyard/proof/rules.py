"""Verdicts by rules: each rule says why a candidate does not pass, or says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Case = TypeVar("Case")


@dataclass(frozen=True)
class VerdictRule(Generic[Case]):
    """One rule of a verdict."""

    #: The wire's name of its finding.
    code: str
    #: Returns why a candidate does not pass, in a sentence; ``None`` where it does.
    why: Callable[[Case], str | None]
    #: Whether no further rule is asked where this one finds something.
    ends: bool = False


def reasons_of(rules: Iterable[VerdictRule[Case]], case: Case) -> dict[str, str]:
    """Return the codes and sentences of the rules that a candidate does not pass, in their order."""
    reasons: dict[str, str] = {}
    for rule in rules:
        why = rule.why(case)
        if why is not None:
            reasons[rule.code] = why
            if rule.ends:
                break
    return reasons
