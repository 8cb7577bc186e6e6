"""Production beside the answers of another provider, from a file: what asking costs, and the report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.errors import InvalidRequestError
from steelyard.imports.recorded import read_recorded
from steelyard.named.comparison_wire import NamedComparison
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.files import FileChooser
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import card, heading, verdict
from steelyard_workbench.kit.words import escape_markdown, measure_text
from steelyard_workbench.pages.decisions.judging import closed_part, comparison_figures
from steelyard_workbench.pages.decisions.switching import cost_text

#: Recorded answers that are taken at most.
_MOST = 1_000
_ABOUT = (
    "The answers of a provider that is to be left, as CSV, JSON, JSON Lines or spans of OpenTelemetry, with "
    "text, answer and perhaps probability and decision. Production is asked about those texts alone."
)
_NO_FILE = "Choose a file with recorded answers first."


class RecordedForm(Boxed):
    """Takes a file of recorded answers, says what asking production costs, and asks it."""

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        on_started: Callable[[], Awaitable[None]],
        on_leave: Callable[[], Any],
        scope: Scope,
    ) -> None:
        self._client, self._name, self._on_started = client, name, on_started
        self._answers: list[dict[str, Any]] = []
        #: The price that was shown of these answers.
        self._agreed: str | None = None
        self._place, self._file_text = stack(), small_text("")
        super().__init__()
        self.file = FileChooser(
            lambda: self._say_of_file("The file is empty."),
            label="Choose a file",
            accept=".csv,.json,.jsonl",
            variant="outlined",
        )
        self.budget = pmui.FloatInput(
            label="Percent of answers that may differ", value=2.0, start=0.1, end=50, width=260
        )
        self.take = Write(self._take, "Not read:", self._place, scope=scope)
        self.file.param.watch(self.take.on_event, "value")
        ask = Write(self._ask, "Not asked:", self._place, scope=scope)
        self.button = action_button("Say what it costs", ask.on_event, variant="contained")
        leave = action_button("Leave it", lambda _: on_leave(), variant="text")
        self._box = card(
            heading("Production and recorded answers"),
            small_text(_ABOUT),
            pn.FlexBox(self.file, self._file_text, align_items="center"),
            number_fields(self.budget),
            self._place,
            pn.FlexBox(self.button, leave),
        )

    def _say_of_file(self, text: str) -> None:
        self._file_text.object = escape_markdown(text)

    async def _take(self) -> None:
        self._answers, self._agreed = [], None
        self.button.label = "Say what it costs"
        content, name = self.file.value, str(self.file.filename)
        if not content:
            return
        answers = await asyncio.to_thread(read_recorded, bytes(content), name)
        self._answers = answers[:_MOST]
        text = f"{name}, {len(answers):,} answers"
        more = f"; the first {_MOST:,} are taken" if len(answers) > _MOST else ""
        self._say_of_file(f"{text}{more}.")

    async def _ask(self) -> None:
        if not self._answers:
            raise InvalidRequestError(_NO_FILE)
        named, recorded = self._client.named_decisions, self._answers
        if self._agreed is None:
            estimate = await asyncio.to_thread(
                lambda: named.estimate_comparison(self._name, "production", recorded=recorded)
            )
            self._place[:] = [pmui.Typography(escape_markdown(cost_text(estimate)))]
            self._agreed = estimate.price_usd
            self.button.label = "Ask production"
            return
        await asyncio.to_thread(
            lambda: named.compare(
                self._name,
                "production",
                recorded=recorded,
                disagreement=self.budget.value / 100,
                max_price_usd=self._agreed,
            )
        )
        await self._on_started()


def recorded_card(comparison: NamedComparison | None) -> list[Viewable]:
    """Return how far a version agrees with recorded answers; nothing where none were compared."""
    if comparison is None:
        return []
    result, title = comparison.result, heading("Production and recorded answers")
    if comparison.status in UNFINISHED:
        done, n = comparison.completed_contexts, comparison.contexts
        return [card(title, verdict("running", f"{done:,} of {n:,} texts are asked.", ""))]
    if result is None:
        end = "was stopped" if comparison.status == "cancelled" else "failed"
        return [card(title, verdict("bad", f"It {end}.", escape_markdown(comparison.error or "")))]
    decisions = [] if result.stored is None else result.stored.decisions
    shares = [
        f"{each.decision}: another action in {measure_text(each.changed)}" for each in decisions
    ]
    advice = [switch.advice for switch in result.switches]
    text = "\n\n".join(map(escape_markdown, [*shares, *advice]))
    figures = comparison_figures(result, stored="recorded answers")
    details = closed_part("Why, and what changes", figures)
    status: Status = "good" if result.verdict == "passed" else "unsure"
    version = (
        f"Version {comparison.version} was asked about {comparison.contexts:,} recorded texts."
    )
    return [card(title, verdict(status, version, text), details)]
