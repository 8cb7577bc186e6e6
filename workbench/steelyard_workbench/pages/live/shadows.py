"""Families beside the models that score a share of their answers."""

from __future__ import annotations

import panel as pn
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSummary
from steelyard.errors import NotFoundError
from steelyard.shadows.wire import ShadowReport
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components.facts import heading, table
from steelyard_workbench.kit.components.numbers import measure_text, percent_text
from steelyard_workbench.kit.escaping import escape_markdown

#: Families of a window that are looked at.
_MOST = 8


def fetch_shadows(client: Client, summary: DecisionSummary) -> list[ShadowReport]:
    """Return the comparisons of the window's families that have a shadow."""
    tuned = {group.model for group in summary.groups if group.version and "@" not in group.model}
    reports = []
    for name in sorted(tuned)[:_MOST]:
        try:
            report = client.families.compare_shadow(name, since=summary.since, until=summary.until)
        except NotFoundError:
            continue  # deleted since
        if report.shadow is not None:
            reports.append(report)
    return reports


def show_shadow(report: ShadowReport) -> Viewable:
    """Show how often a family and its shadow agree, and who was right where they do not."""
    shadow = report.shadow
    assert shadow is not None  # noqa: S101  the others are not fetched
    title = heading(f"{shadow.family} and its shadow {shadow.model}")
    if not report.decisions:
        text = (
            f"{escape_markdown(shadow.model)} scores {percent_text(shadow.share)} of what is stored from now on; "
            "nothing of this window was scored by both yet."
        )
        return stack(title, pn.pane.Markdown(text))
    columns = (
        "decision",
        "answers",
        "same top",
        "with feedback",
        "model line right",
        "shadow right",
        "one alone",
    )
    rows = [
        (
            name,
            f"{decision.n:,}",
            measure_text(decision.agreement),
            f"{decision.observed:,}",
            measure_text(decision.family_accuracy or None),
            measure_text(decision.shadow_accuracy or None),
            f"model line {decision.family_right:,}, shadow {decision.shadow_right:,}",
        )
        for name, decision in report.decisions.items()
    ]
    view = table(columns, rows, label="A model line and its shadow", numbers=range(1, 6))
    return stack(title, view)
