"""Suggestions of a model beside the rows: asking for them, accepting the surest, and agreement."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.model_choices import ModelChoice
from steelyard.review.wire import MAX_EDITS, DraftRow
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.model_fields import offer_models
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import problem_of
from steelyard_workbench.kit.tasks import OneAtATime, Task
from steelyard_workbench.kit.views import failed
from steelyard_workbench.kit.words import escape_markdown, measure_text
from steelyard_workbench.pages.review.suggestions import Suggestions

#: How many rows are asked about at a time: each is a call.
N_ROWS = (100, 500, 2000)
#: Calls under way at once, and the most rows of an audit.
_AT_ONCE, _MOST_AUDITED = 4, 200
#: Seconds from an edit to the text on agreement: the next row is drawn before.
_AFTER_EDIT_S = 0.2
_WHAT = (
    "A model answers the next rows of the queue. Its probabilities stand on the answers, the least "
    "sure rows come first, and `t` takes what it suggests."
)
_NONE = "The queue has no undecided rows here."


class Suggesting(Boxed):
    """Asks a model about the rows ahead.

    ``find`` takes a number and returns so many undecided rows of the queue, the shown one first.
    ``on_suggested`` is called once rows are to be put in the order of suggestions, ``on_take`` with
    undecided rows to be given theirs, after the person confirms it.
    """

    def __init__(
        self,
        client: Client,
        *,
        find: Callable[[int], Awaitable[Sequence[DraftRow]]],
        rows: Callable[[], Sequence[DraftRow]],
        on_suggested: Callable[[], None],
        on_take: Callable[[Sequence[DraftRow], int], None],
    ) -> None:
        self._client = client
        self._find, self._rows = find, rows
        self._on_suggested, self._on_take = on_suggested, on_take
        self.held = Suggestions()
        self._is_forbidden = False
        self.model = pmui.Select(label="Model", options=[], sizing_mode="stretch_width")
        self.n_rows = pmui.Select(label="Rows", options=list(N_ROWS), value=N_ROWS[0], width=110)
        self.ask = OneAtATime(self._suggest, on_failure=self._show_failure)
        self._ask = action_button(
            "Ask the model", self.ask.on_event, variant="contained", size="small"
        )
        self._stop = action_button(
            "Stop", lambda _: self._end("Stopped."), size="small", visible=False
        )
        self._price = small_text("", visible=False)
        self._said = small_text("")
        self._problem = stack()
        self.threshold = pmui.FloatInput(
            label="As sure as", value=0.95, start=0.0, end=1.0, step=0.01, width=140
        )
        self.n_audit = pmui.IntInput(
            label="Left for an audit", value=20, start=0, end=_MOST_AUDITED, width=140
        )
        self._agreement_text = small_text("")
        self._take = action_button(
            "",
            lambda _: self._on_take(self.sure_rows, self.n_audit.value or 0),
            size="small",
            disabled=True,
        )
        self._accepting = stack(
            number_fields(self.threshold, self.n_audit),
            self._agreement_text,
            self._take,
            visible=False,
        )
        super().__init__()
        self.tell_soon = OneAtATime(self._tell_soon)
        # Without a price the start shows the problem.
        self.quote = Task(self._quote, on_failure=lambda _: None)
        self.part = Loaded("The models", client.models.choices, self._show)
        self._box = self.part

    @property
    def sure_rows(self) -> list[DraftRow]:
        """The undecided rows that are as sure as was chosen, the surest first."""
        at_least = self.threshold.value
        return self.held.sure_rows(self._rows(), 1.0 if at_least is None else at_least)

    def forbid(self) -> None:
        """Disable every change."""
        self._is_forbidden = True
        self.tell()

    def _show(self, choices: Sequence[ModelChoice]) -> Viewable:
        offer_models(self.model, choices)
        return stack(
            small_text(_WHAT),
            self.model,
            pn.Row(self.n_rows, self._ask, self._stop, align="center"),
            self._price,
            self._said,
            self._problem,
            self._accepting,
        )

    async def _suggest(self) -> None:
        model = str(self.model.value)
        if model != self.held.model:
            self.held = Suggestions(model)
        self._problem[:] = []
        self._ask.disabled = self._stop.visible = True
        self._said.object = "The rows are fetched."
        rows_to_answer = await self._find(self.n_rows.value)
        rows = [row for row in rows_to_answer if row.row not in self.held]
        for start in range(0, len(rows), _AT_ONCE):
            self._said.object = f"{start:,} of {len(rows):,} rows are answered."
            together = rows[start : start + _AT_ONCE]
            answers = await asyncio.gather(
                *(asyncio.to_thread(self._answer, row, model) for row in together)
            )
            for row, suggested in zip(together, answers, strict=True):
                self.held.put(row.row, suggested)
                self.held.note(row.now)
        self._end(f"{len(self.held):,} rows have suggestions." if rows_to_answer else _NONE)

    def _end(self, message: str) -> None:
        self.ask.drop()
        self._ask.disabled = self._stop.visible = False
        self._said.object = message
        self.tell()
        self._on_suggested()

    def _show_failure(self, error: Exception) -> None:
        self._end(f"{len(self.held):,} rows have suggestions.")
        self._problem[:] = [failed(problem_of(error, "The model did not answer for all rows."))]

    def _answer(self, row: DraftRow, model: str) -> dict[str, dict[str, float]]:
        images: list[Any] | None = row.images or None
        answer = self._client.decide(
            row.context, row.decisions, model=model, images=images, fallback="none", store=False
        )
        return {name: dict(result.probabilities) for name, result in answer.decisions.items()}

    @param.depends("model.value", "n_rows.value", watch=True)
    def _on_choice(self) -> None:
        if self.model.value:
            self.quote.start()

    async def _quote(self) -> None:
        """Show the price of the rows, as the first tells it; nothing where it is free."""
        self._price.visible = False
        for row in self._rows()[:1]:
            quote = await asyncio.to_thread(
                self._client.estimate,
                row.context,
                row.decisions,
                model=str(self.model.value),
                fallback="none",
            )
            most = Decimal(quote.maximum_charge_usd) * int(self.n_rows.value)
            price = f"{self.n_rows.value:,} rows like the shown one cost at most {most.normalize():f} USD."
            self._price.param.update(object=price, visible=most > 0)

    async def _tell_soon(self) -> None:
        if pn.state.curdoc is not None:
            await asyncio.sleep(_AFTER_EDIT_S)
        self.tell()

    @param.depends("threshold.value", "n_audit.value", watch=True)
    def tell(self) -> None:
        """Show how far the reviewer agrees, and offer to accept the surest rows."""
        suggestions = self.held
        self._accepting.visible = len(suggestions) > 0
        at_least = 1.0 if self.threshold.value is None else self.threshold.value
        sure = self.sure_rows
        n_audited = min(self.n_audit.value or 0, len(sure))
        n_taken = min(len(sure) - n_audited, MAX_EDITS)
        name = escape_markdown(suggestions.model)
        lines = [f"**You agree with {name}**", f"- in all: {measure_text(suggestions.agreement())}"]
        near = suggestions.agreement(at_least=at_least)
        lines.append(f"- where it is as sure as {at_least:.2f}: {measure_text(near)}")
        if suggestions.audit:
            lines.append(f"- in the audit: {measure_text(suggestions.agreement(of_audit=True))}")
        lines.append(f"\n{len(sure):,} undecided rows are as sure as {at_least:.2f}.")
        self._agreement_text.object = "\n".join(lines)
        self._take.label = f"Accept {n_taken:,}, audit {n_audited:,}"
        self._take.disabled = self._is_forbidden or n_taken == 0
