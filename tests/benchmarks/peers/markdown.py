"""Tables and figures as both pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peers.contestants import BEST, PLAIN
from peers.figures import spread

TABLES = {PLAIN: "Table 1: float32 for all", BEST: "Table 2: each one's best setting"}
SIZE = ("questions", "outcomes", "context")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def shown(value: float) -> str:
    """Return a figure with three digits that count, more where it is large."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def with_range(rounds: Sequence[Mapping[str, Any]], name: str) -> str:
    found = spread(rounds, name)
    if found is None:
        return "-"
    middle, low, high = map(shown, found)
    return f"{middle} ({low} to {high})"


def size_of(entry: Mapping[str, Any]) -> tuple[int, int, str]:
    return entry["questions"], entry["outcomes"], entry["context"]
