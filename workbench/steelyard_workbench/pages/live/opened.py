"""One stored answer in full, with the form for its real outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import StoredAnswer
from steelyard.decisions.rules_wire import RuleResult
from steelyard.decisions.wire import DecisionResult
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.live_text import LiveText
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import Problem, problem_of
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.views import Details, facts, failed, table
from steelyard_workbench.kit.words import ago, ahead, escape_markdown
from steelyard_workbench.pages.live.feed import feedback_text
from steelyard_workbench.parts.answer_card import answer_card
from steelyard_workbench.parts.datasets.questions import as_text
from steelyard_workbench.parts.evaluations.record_browser import show_text

_HEADING = {"fontSize": "1rem", "fontWeight": 600, "marginTop": "0.4em"}


class OpenedAnswer(Boxed):
    """A stored answer, and feedback on it; ``fields`` have the select of each decision by its id."""

    def __init__(
        self,
        client: Client,
        decision_id: str,
        *,
        on_feedback: Callable[[], None],
        on_close: Callable[[], None],
    ) -> None:
        super().__init__()
        self._client, self._id, self._on_feedback = client, decision_id, on_feedback
        self.fields: dict[str, Any] = {}
        self._saved: dict[str, str] = {}

        self.said = LiveText()
        self._problem = stack()
        self.save = Write(self._save, on_failure=self._show_failure)
        self.send = action_button(
            "Save what was right", self.save.on_event, variant="contained", size="small"
        )
        self.part = Loaded("The decision", lambda: client.stored_decision(decision_id), self._show)
        close = action_button("Close", lambda _: on_close(), variant="text", size="small")
        self._box = stack(
            pmui.Row(pmui.Typography("The decision", variant="h3", sx=_HEADING), close), self.part
        )

    async def _save(self) -> None:
        # An outcome that was saved before, perhaps by the application and again since, is not saved again.
        chosen = {
            name: field.value
            for name, field in self.fields.items()
            if field.value and field.value != self._saved[name]
        }
        if not chosen:
            self.said.text = "Choose an answer that was not given yet."
            return
        self.send.disabled = True
        await asyncio.to_thread(self._client.feedback, self._id, chosen, by="person")
        self.send.disabled = False
        self._problem[:] = []
        self.said.text = f"Recorded: {', '.join(f'{k} is {v}' for k, v in chosen.items())}."
        await self.part.refresh(quietly=True)
        self._on_feedback()

    def _show_failure(self, error: Exception) -> Problem:
        problem = problem_of(error, "Not recorded:")
        self._problem[:] = [failed(problem)]
        # What is missing a permission does not come by trying again.
        self.send.disabled = problem.is_forbidden
        return problem

    def _show(self, answer: StoredAnswer) -> Viewable:
        context = answer.request.get("context", "The text of this answer is not stored.")
        about = {"Id": answer.id, "Removed": ahead(answer.expires_at)}
        if answer.total_ms is not None:
            about["Took"] = f"{answer.total_ms:.1f} ms"
        questions = {
            decision["id"]: str(decision.get("question", ""))
            for decision in answer.request["decisions"]
        }
        parts: list[Viewable] = [
            show_text(as_text(context), "Text"),
            small_text(
                escape_markdown(f"{ago(answer.created_at)}, by {answer.version or answer.model}")
            ),
        ]
        if isinstance(answer.rule, RuleResult):
            text = f"Action {answer.rule.action}: {answer.rule.why}."
            parts.append(small_text(escape_markdown(text)))
        if given := answer.request.get("fields"):
            values = [(name, str(value)) for name, value in given.items()]
            parts.append(table(("field", "value"), values, label="Fields"))
        self.fields = {}
        for name, result in answer.results.items():
            parts += self._decision(name, questions.get(name) or name, result, answer)
        parts += [self.send, self.said, self._problem]
        if answer.metadata:
            # By themselves: one that is called as a fact would be taken for it.
            metadata_rows = [(name, str(value)) for name, value in answer.metadata.items()]
            parts.append(table(("metadata", "value"), metadata_rows, label="Metadata"))
        self.details = Details(lambda: [facts(about)])
        return stack(*parts, self.details)

    def _decision(
        self, name: str, question: str, result: DecisionResult, answer: StoredAnswer
    ) -> list[Viewable]:
        feedback = answer.feedback.get(name)
        self._saved[name] = feedback if isinstance(feedback, str) else ""
        field = pmui.Select(
            label=f"Right answer to {name}",
            options={"not known": "", **{outcome: outcome for outcome in result.probabilities}},
            value=self._saved[name],
            sizing_mode="stretch_width",
            size="small",
        )
        self.fields[name] = field
        report = answer.feedback_by.get(name) if answer.feedback_by else None
        shown = [answer_card(question, result)]
        if report is not None:
            who = "" if report.who is None else f", {report.who}"
            origin = f"Reported by {report.by}{who}: {feedback_text(report.outcome)}"
            shown.append(small_text(escape_markdown(origin)))
        if isinstance(feedback, dict):
            likely = escape_markdown(feedback_text(feedback))
            shown.append(small_text(f"What was right is not certain. The likeliest is {likely}."))
        return [*shown, field]
