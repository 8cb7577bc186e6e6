"""The linter's warnings on decisions, each with its remedy."""

from __future__ import annotations

from panel.viewable import Viewable

from steelyard.client import LintAnswer
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import Details, facts, verdict
from steelyard_workbench.kit.words import escape_markdown, everyday

_SEVERITY: dict[str, Status] = {"warning": "unsure", "info": "running"}


def show_warnings(answer: LintAnswer) -> list[Viewable]:
    """Show the linter's warnings, each with its remedy."""
    if not answer.warnings:
        return [verdict("good", "The wording is fine.", "The linter found no problems in it.")]
    rules = {f"{each.decision}, {each.rule}": each.message for each in answer.warnings}
    return [
        verdict(
            _SEVERITY[warning.severity],
            f"{warning.decision}:",
            escape_markdown(everyday(warning.message)),
        )
        for warning in answer.warnings
    ] + [Details(lambda: [facts(rules)], "rules").__panel__()]
