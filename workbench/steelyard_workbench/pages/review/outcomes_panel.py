"""The answers of a draft: rows, names, descriptions, which mean the same, and guidelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.tables import OutcomeEdit
from steelyard.decisions.wire import MAX_GUIDELINE
from steelyard.review.outcomes_wire import DecisionOutcomes, DraftOutcome, DraftOutcomes
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.views import empty
from steelyard_workbench.kit.words import counted, escape_markdown
from steelyard_workbench.parts.datasets.outcome_table import OutcomeEditor

_WHAT = (
    "Merge answers that mean the same, rename them, and say what each means. A guideline, Markdown, "
    "stands beside every row for reviewers, and judges read it. Rows show the changes at once; "
    "finishing writes them into the dataset. `u` takes a change back."
)
Changes = dict[str, dict[str, Any]]


class OutcomesPanel(Boxed):
    """Edits the outcomes and guidelines of decisions; ``on_edit`` gets an edit, and a sentence on it."""

    def __init__(
        self, client: Client, draft_id: str, on_edit: Callable[[dict[str, Any], str], None]
    ) -> None:
        self._on_edit = on_edit
        #: The table of each decision whose outcomes can be changed.
        self.tables: dict[str, OutcomeEditor] = {}
        #: The field of each decision's guideline.
        self.guidelines: dict[str, pmui.TextAreaInput] = {}
        self._listed: dict[str, DecisionOutcomes] = {}
        self._is_forbidden = False
        self.save = action_button(
            "Save the answers",
            lambda _: self.send(),
            variant="contained",
            size="small",
            disabled=True,
        )
        self.part = Loaded("The answers", lambda: client.drafts.outcomes(draft_id), self._show)
        super().__init__()
        self._box = stack(
            pmui.Paper(
                stack(small_text(_WHAT), self.part, self.save),
                sizing_mode="stretch_width",
                margin=(5, 10),
                elevation=1,
            ),
            visible=False,
        )

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return bool(self._box.visible)

    def turn(self) -> None:
        """Show it, or hide it."""
        self._box.visible = not self._box.visible
        if self.is_open:
            self.part.start()

    def forbid(self) -> None:
        """Disable every change."""
        self._is_forbidden = True
        self.save.disabled = True

    def send(self) -> None:
        """Save the changes."""
        self.save.disabled = True
        for decision in self._listed:
            edit = self._edit_of(decision)
            parts = []
            if "outcomes" in edit:
                table = self.tables[decision]
                merged = {
                    value for value, change in edit["outcomes"].items() if "same_as" in change
                }
                names = {edit.name for value, edit in table.edits.items() if value not in merged}
                parts.append(counted(len(names), "answer"))
            if "guideline" in edit:
                parts.append("a new guideline" if edit["guideline"] else "no guideline")
            if parts:
                sentence = f"{decision} has {' and '.join(parts)}"
                self._on_edit({"decision": decision, **edit}, sentence)

    def _edit_of(self, decision: str) -> dict[str, Any]:
        """Return the fields of a decision that are no longer as listed."""
        edit: dict[str, Any] = {}
        table, listed = self.tables.get(decision), self._listed[decision]
        if table is not None:
            current = {each.outcome: _change_of(each) for each in listed.outcomes}
            changes = self._changes(decision, table)
            if changes != {outcome: change for outcome, change in current.items() if change}:
                edit["outcomes"] = changes
        if (text := self.guidelines[decision].value.strip()) != (listed.guideline or ""):
            edit["guideline"] = text
        return edit

    def _changes(self, decision: str, table: OutcomeEditor) -> Changes:
        """Return the changes of a decision's outcomes."""
        changes = {}
        for outcome in self._listed[decision].outcomes:
            edit = table.edits.get(outcome.outcome)
            change = _change_of(outcome) if edit is None else _edit_to_wire(outcome, edit)
            if change:
                changes[outcome.outcome] = change
        return changes

    def _changed(self) -> None:
        self.save.disabled = self._is_forbidden or not any(map(self._edit_of, self._listed))

    def _show(self, outcomes: DraftOutcomes) -> Viewable:
        self.tables, self.guidelines = {}, {}
        self._listed = {decision.decision: decision for decision in outcomes.data}
        parts: list[Viewable] = []
        for decision in outcomes.data:
            name = escape_markdown(decision.decision)
            if decision.fixed is not None:
                parts.append(small_text(f"**{name}**: {decision.fixed}"))
                parts.append(self._guideline_of(decision))
                continue
            table = self.tables[decision.decision] = OutcomeEditor(
                name,
                {outcome.outcome: outcome.rows for outcome in decision.outcomes},
                self._changed,
                edits={
                    outcome.outcome: OutcomeEdit(
                        outcome.name, _text(outcome.description), outcome.same_as or ""
                    )
                    for outcome in decision.outcomes
                },
                is_open=True,
            )
            parts += [table.__panel__(), self._guideline_of(decision)]
        return stack(*(parts or [empty("No decisions yet.")]))

    def _guideline_of(self, decision: DecisionOutcomes) -> Viewable:
        field = self.guidelines[decision.decision] = pmui.TextAreaInput(
            label=f"Guideline of {decision.decision}",
            value=decision.guideline or "",
            rows=2,
            max_rows=12,
            auto_grow=True,
            max_length=MAX_GUIDELINE,
            sizing_mode="stretch_width",
            size="small",
        )
        field.param.watch(lambda _: self._changed(), "value")
        return field


def _edit_to_wire(outcome: DraftOutcome, edit: OutcomeEdit) -> dict[str, Any]:
    if edit.same_as:
        return {"same_as": edit.same_as}
    change: dict[str, Any] = {}
    name, description = edit.name.strip() or outcome.outcome, edit.description.strip()
    if name != outcome.outcome:
        change["name"] = name
    # A text that the version has already is no change: the server sees that.
    if description or _text(outcome.description):
        change["description"] = description
    return change


def _change_of(outcome: DraftOutcome) -> dict[str, Any]:
    edit = OutcomeEdit(outcome.name, _text(outcome.description), outcome.same_as or "")
    return _edit_to_wire(outcome, edit)


def _text(description: Any) -> str:
    return description if isinstance(description, str) else ""
