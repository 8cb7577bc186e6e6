"""One question answered by several models: a table of all of them, and a column for each."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.answers import DecideAnswer
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.problems import Problem, problem_of
from steelyard_workbench.kit.views import failed, heading, loading, table
from steelyard_workbench.kit.words import escape_markdown, is_free

#: The most models that are asked at once, decisions that have a column of the table, and outcomes
#: of its chart.
MOST_MODELS, MOST_COLUMNS, MOST_OUTCOMES = 6, 8, 10
_COLUMN = {"flex": "1 1 280px", "min-width": "260px", "max-width": "560px"}


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of asking one model: an answer after so many milliseconds, or a problem."""

    answer: DecideAnswer | None = None
    took_ms: float = 0.0
    problem: Problem | None = None


class AnswersTogether(Boxed):
    """The answers, or errors, of several models, each shown when it is there."""

    def __init__(
        self, client: Client, models: Sequence[str], show: Callable[[DecideAnswer], Viewable]
    ) -> None:
        super().__init__()
        self._client, self._models, self._show = client, list(models), show
        self.answers: dict[str, Answered] = {}
        self._table = stack(loading(2, "The answers"))
        self._columns = {
            model: stack(loading(4, f"The answer of {model}")) for model in self._models
        }
        papers = [
            pmui.Paper(heading(model), column, margin=(4, 6), styles=_COLUMN)
            for model, column in self._columns.items()
        ]
        self._box = stack(self._table, pn.FlexBox(*papers, sizing_mode="stretch_width"))

    async def ask(self, request: Mapping[str, Any]) -> None:
        """Ask all of them at once."""
        await asyncio.gather(*(self._ask_model(model, request) for model in self._models))

    async def _ask_model(self, model: str, request: Mapping[str, Any]) -> None:
        try:
            answered = await asyncio.to_thread(self._decide, model, request)
        except Exception as error:  # noqa: BLE001  the others' answers are shown all the same
            answered = Answered(problem=problem_of(error, "No answer:"))
        self.answers[model] = answered
        column = self._columns[model]
        if answered.answer is not None:
            column[:] = [self._show(answered.answer)]
        elif answered.problem is not None:
            column[:] = [failed(answered.problem)]
        self._table[:] = self._summary()

    def _decide(self, model: str, request: Mapping[str, Any]) -> Answered:
        began = time.perf_counter()
        answer = self._client.decide(
            request["context"],
            request["decisions"],
            model=model,
            images=request.get("images"),
            fallback="none",
            store=request.get("store", False),
        )
        return Answered(answer, (time.perf_counter() - began) * 1000)

    def _summary(self) -> list[Viewable]:
        """Return the table of answers, and how far the models agree."""
        by_model = [(model, self.answers[model]) for model in self._models if model in self.answers]
        answered = [outcome.answer for _, outcome in by_model if outcome.answer is not None]
        names = list(answered[0].decisions)[:MOST_COLUMNS] if answered else []
        has_price = any(not is_free(answer.charge.amount_usd) for answer in answered)
        columns = ("model", *names, "ms, with the way", *(("USD",) if has_price else ()))
        rows = []
        for model, outcome in by_model:
            if outcome.answer is None:
                rows.append((model, *("—" for _ in columns[1:])))
                continue
            results = outcome.answer.decisions
            cells = [f"{results[name].top} {results[name].p_top:.3f}" for name in names]
            price = (outcome.answer.charge.amount_usd,) if has_price else ()
            rows.append((model, *cells, f"{outcome.took_ms:,.0f}", *price))
        numbers = tuple(range(1 + len(names), len(columns)))
        views: list[Viewable] = [table(columns, rows, label="Answers by model", numbers=numbers)]
        if len(answered) > 1:
            views.append(small_text("; ".join(agreement(name, answered) for name in names)))
            answer_of = {
                model: outcome.answer for model, outcome in by_model if outcome.answer is not None
            }
            views += [_draw_decision(name, answer_of) for name in names]
        return views


def _draw_decision(name: str, answers: Mapping[str, DecideAnswer]) -> Viewable:
    """Return one chart of all models' answers to a decision, the likeliest outcomes first."""
    results = {model: answer.decisions[name].probabilities for model, answer in answers.items()}
    outcomes = list(dict.fromkeys(outcome for result in results.values() for outcome in result))
    likeliest = sorted(
        outcomes, key=lambda outcome: -max(result.get(outcome, 0) for result in results.values())
    )[:MOST_OUTCOMES]
    series = {
        model: [result.get(outcome, 0) for outcome in likeliest]
        for model, result in results.items()
    }
    return figures.show(figures.grouped_bars(likeliest, series, title=name, x="probability"))


def agreement(name: str, answers: Sequence[DecideAnswer]) -> str:
    """Return in Markdown how many of the answers agree on a decision."""
    tops = Counter(answer.decisions[name].top for answer in answers).most_common()
    counts = ", ".join(f"{n} of {len(answers)} {escape_markdown(top)}" for top, n in tops)
    summary = f"all say {escape_markdown(tops[0][0])}" if len(tops) == 1 else counts
    return f"**{escape_markdown(name)}**: {summary}"
