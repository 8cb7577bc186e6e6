"""Templates of named decisions, as a terminal shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.cli.local_state import show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.named.templates import Template


def show_templates(templates: Sequence[Template]) -> None:
    """Print each template's use, and how well models answer its rows."""
    show_table(
        ("TEMPLATE", "ROWS", "NEEDS", "FOR"),
        [
            [
                each.name,
                len(each.examples),
                "another model" if each.needs_more else None,
                each.description,
            ]
            for each in templates
        ],
    )
    lines = [
        [
            template.name,
            figures.decision,
            figures.model,
            f"{figures.right:.0%} [{figures.right_low:.0%}, {figures.right_high:.0%}]",
            f"{figures.wrong:.0%}",
            f"{figures.abstained:.0%}",
        ]
        for template in templates
        for figures in template.measured
    ]
    show_table(("TEMPLATE", "DECISION", "MODEL", "RIGHT [95 %]", "WRONG", "ABSTAINED"), lines)
