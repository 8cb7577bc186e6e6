"""Answers that were kept: whether they were right, sent as feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.client.answers import DecideAnswer
from steelyard_workbench.kit.states import empty, verdict
from steelyard_workbench.kit.tasks import Scope, Write

_NO_OUTCOME = "—"


class WasItRight(Viewer):
    """Asks which outcome was right of each decision; nothing is chosen beforehand.

    Parameters
    ----------
    answers : sequence of DecideAnswer
        Of one question, each by another model: what was right is feedback on all of them.
    """

    def __init__(self, client: Client, answers: Sequence[DecideAnswer], scope: Scope) -> None:
        super().__init__()
        self._client, self._ids = client, [answer.id for answer in answers]
        self.right = {
            name: pmui.Select(
                label=f"Right for {name}",
                options=[_NO_OUTCOME, *result.probabilities],
                value=_NO_OUTCOME,
                width=200,
                size="small",
            )
            for name, result in answers[0].decisions.items()
        }
        self.said = pn.Column(sizing_mode="stretch_width")
        self.send = Write(self._send, "Not sent:", self.said, refused="Send", scope=scope)
        button = pmui.Button(label="Send feedback", variant="outlined", size="small")
        button.on_click(self.send.on_event)
        self._box = pn.Column(
            pmui.Typography("Kept: it is on the page Live. Was it right?", variant="body2"),
            pn.FlexBox(*self.right.values(), button, align_items="center"),
            self.said,
            sizing_mode="stretch_width",
        )

    def __panel__(self) -> Viewable:
        return self._box

    async def _send(self) -> None:
        outcomes = {
            name: str(field.value)
            for name, field in self.right.items()
            if field.value != _NO_OUTCOME
        }
        if not outcomes:
            self.said[:] = [empty("Choose which outcome was right of one decision at least.")]
            return
        for decision_id in self._ids:
            await asyncio.to_thread(self._client.feedback, decision_id, outcomes, by="person")
        summary = "; ".join(f"{name} is {outcome}" for name, outcome in outcomes.items())
        self.said[:] = [verdict("good", "Feedback sent.", summary)]
