"""Templates of named decisions, as a terminal shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.cli.local_state import show_rows, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.named.templates import Template


def show_templates(templates: Sequence[Template]) -> None:
    """Print each template's use, and how well models answer its rows."""
    show_rows(
        templates,
        "TEMPLATE:name, ROWS:examples, NEEDS:needs_more, FOR:description",
        examples=lambda each: len(each.examples),
        needs_more=lambda each: "another model" if each.needs_more else None,
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
