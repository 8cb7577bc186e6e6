"""The probability from which to act on one outcome: the curve, a threshold to drag, its effect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from bokeh.models import ColumnDataSource, Span
from msgspec import UNSET
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.thresholds import keep_threshold
from steelyard.evaluations.thresholds_wire import OutcomePoint, OutcomeThreshold
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table, show_data
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.tasks import Task, Write
from steelyard_workbench.kit.theme import BLUE, GREY, ORANGE
from steelyard_workbench.kit.views import facts, heading, verdict
from steelyard_workbench.kit.words import measure_text
from steelyard_workbench.parts.evaluations.scored import RecordChoice

#: Named decisions that are offered to keep a threshold with.
_MOST_NAMED = 200


class OneOutcome(Boxed):
    """Precision, recall and cost of acting on an outcome, by the threshold of its probability."""

    def __init__(
        self, client: Client, evaluation_id: str, on_choose: Callable[[RecordChoice], None]
    ) -> None:
        self._on_choose, self._is_filling = on_choose, False
        self._client, self._evaluation_id, self._decision = client, evaluation_id, ""
        self.outcome = pmui.Select(label="Answer", options=[], width=220)
        self.threshold = figures.threshold_slider("Act on it from a probability of")
        self.precision = pmui.FloatInput(
            label="Precision to certify", value=0.95, start=0.01, end=0.999, step=0.01, width=170
        )
        self.wrong = pmui.FloatInput(label="A wrong one costs", value=5.0, start=0, width=150)
        self.abstaining = pmui.FloatInput(label="Abstaining costs", value=1.0, start=0, width=150)
        self.named = pmui.Select(label="Named decision", options=[], width=220)
        self.chart, self.figures, self.result = stack(), stack(), stack()
        self.refresh = Task(self._refresh, "Could not draw this answer.", self.chart)
        self.find = Task(self._find, "Could not find a threshold.", self.result, can_retry=False)
        self.keep = Write(self._keep, "Not kept:", self.result, refused="Keep the threshold")
        by_precision = action_button(
            "Find by precision", lambda _: self.find.start(by_costs=False), size="small"
        )
        by_costs = action_button(
            "Find by costs", lambda _: self.find.start(by_costs=True), size="small"
        )
        keep = action_button("Keep the threshold", self.keep.on_event, size="small")
        self._is_dragged = False
        self.span = self._line()
        self._answer: OutcomeThreshold | None = None
        self._keeping = pn.FlexBox(self.named, keep, align_items="center", visible=False)
        self._box = stack(
            heading("One answer"),
            pn.FlexBox(self.outcome, self.threshold, align_items="center"),
            self.chart,
            self.figures,
            number_fields(self.precision, by_precision, align_items="center"),
            number_fields(self.wrong, self.abstaining, by_costs, align_items="center"),
            self.result,
            self._keeping,
        )
        super().__init__()

    async def _refresh(self) -> None:
        if not self.outcome.value:
            return
        answer = await self._ask(**self._costs())
        named = await asyncio.to_thread(self._named_decisions)
        self._answer = answer
        self.named.options = named
        self.named.value = named[0] if named else None
        self._keeping.visible = bool(named)
        self.result[:] = []
        self._draw(answer)

    async def _find(self, *, by_costs: bool) -> None:
        if by_costs:
            answer = await self._ask(**self._costs())
        else:
            answer = await self._ask(precision=float(self.precision.value or 0.95))
        self.result[:] = [self._verdict(answer, by_costs=by_costs)]
        if answer.threshold is not None:
            self._answer = answer
            self.threshold.value = answer.threshold
            self._show_point()

    async def _keep(self) -> None:
        answer, threshold = self._answer, float(self.threshold.value)
        is_of_answer = answer is not None and answer.threshold == threshold
        version = await asyncio.to_thread(
            keep_threshold,
            self._client,
            self.named.value,
            self._decision,
            self.outcome.value,
            threshold,
            evaluation_id=self._evaluation_id,
            certified=answer.certified if answer is not None and is_of_answer else None,
        )
        self.result[:] = [
            verdict(
                "good",
                f"Kept in {version.name}@{version.version}.",
                "It is in use under no name yet: compare it on the page of the decision.",
            )
        ]

    async def _ask(self, **trial: Any) -> OutcomeThreshold:
        return await asyncio.to_thread(
            self._client.evaluations.outcome_threshold,
            self._evaluation_id,
            self._decision,
            self.outcome.value,
            **trial,
        )

    def _named_decisions(self) -> list[str]:
        listed = self._client.named_decisions.list()
        return [named.name for _, named in zip(range(_MOST_NAMED), listed, strict=False)]

    def _costs(self) -> dict[str, float]:
        return {
            "wrong_cost": float(self.wrong.value or 0),
            "abstain_cost": float(self.abstaining.value or 0),
        }

    def _verdict(self, answer: OutcomeThreshold, *, by_costs: bool) -> Viewable:
        if by_costs:
            return verdict("good", f"Cheapest from {answer.threshold:.4f} on.", "On these rows.")
        if answer.certified is not None:
            return verdict(
                "good",
                f"Certified from {answer.threshold:.4f} on:",
                f"{answer.certified.precision:g} of what is sent there is right, with a confidence "
                f"of {answer.certified.confidence:g}.",
            )
        more = (
            f"Answered alike, {answer.missing_rows:,} more rows for the check would."
            if answer.missing_rows is not None
            else "While that is so, no number of rows would; require less, or train a better model."
        )
        return verdict("bad", f"{answer.contexts:,} rows cannot certify that.", more)

    def _draw(self, answer: OutcomeThreshold) -> None:
        points = answer.points
        chart = figures.plot(
            f"Sent to {answer.outcome}, by threshold",
            "act on it from a probability of",
            "precision, recall, with 95 % intervals",
            height=320,
            x_range=(0, 1),
            y_range=(0, 1.02),
        )
        for name, color, dash in (("precision", BLUE, "solid"), ("recall", ORANGE, "dashed")):
            source = _source(points, name)
            chart.varea("x", "low", "high", source=source, color=color, alpha=0.2)
            chart.line(
                "x", "value", source=source, color=color, width=2, line_dash=dash, legend_label=name
            )
            chart.scatter("x", "value", source=source, size=5, color=color)
        figures.legend_below(chart, "horizontal")
        value = "@value{0.000} (@interval, n = @n{0,0})"
        chart.hover.tooltips = [("threshold", "@x{0.00}"), ("", value)]
        self.span = self._line()
        chart.add_layout(self.span)
        rows = [
            (
                f"{point.threshold:.2f}",
                f"{point.sent:,}",
                measure_text(point.precision),
                measure_text(point.recall),
            )
            for point in points
        ]
        columns = ("threshold", "sent", "precision", "recall")

        def open_(place: int) -> None:
            at = points[place].threshold
            self._on_choose(
                RecordChoice(
                    decision=self._decision, top=answer.outcome, p_from=at, order="least_sure"
                )
            )

        data = mark_table(
            columns,
            rows,
            label="One answer by threshold",
            open_=open_,
            opens="Show what is sent to it",
        )
        self.chart[:] = [figures.show(chart), show_data(data)]
        self._show_point()

    def _line(self) -> Span:
        """Return the line at the threshold, which can be dragged along the curve."""
        line = Span(
            location=self.threshold.value,
            dimension="height",
            line_color=GREY,
            line_width=3,
            hover_line_color=ORANGE,
            hover_line_width=5,
            editable=True,
        )
        line.on_change("location", self._on_drag)
        return line

    def _on_drag(self, _name: str, _before: float, at: float) -> None:
        """Follow the line; it is not moved while it is dragged."""
        threshold = min(max(round(at, 2), 0.0), 1.0)
        if abs(at - self.threshold.value) < 0.005 or threshold == self.threshold.value:
            return
        self._is_dragged = True
        try:
            self.threshold.value = threshold
        finally:
            self._is_dragged = False

    @param.depends("threshold.value", watch=True)
    def _show_point(self) -> None:
        """Show the effect of the threshold; the curve is here already, so that it can be dragged."""
        if self._answer is None:
            return
        at = float(self.threshold.value)
        if not self._is_dragged:
            span = self.span
            figures.change(span, lambda: span.update(location=at))
        points = [*self._answer.points]
        if self._answer.at_threshold is not None:
            points.insert(0, self._answer.at_threshold)
        point = min(points, key=lambda each: abs(each.threshold - at))
        self.figures[:] = [facts(_point_facts(point, self._answer.n))]

    @param.depends("outcome.value", watch=True)
    def _on_outcome(self) -> None:
        if not self._is_filling:
            self.refresh.start()

    async def show(self, decision: str, outcomes: Sequence[str]) -> None:
        """Show an outcome of a decision, unless it is shown already."""
        if decision == self._decision:
            return
        self._decision = decision
        self._is_filling = True
        try:
            self.outcome.param.update(options=list(outcomes), value=next(iter(outcomes), None))
        finally:
            self._is_filling = False
        if outcomes:
            await self.refresh()


def _source(points: Sequence[OutcomePoint], name: str) -> ColumnDataSource:
    known = [
        (point.threshold, measure)
        for point in points
        if isinstance(measure := getattr(point, name), Measure)
    ]
    return ColumnDataSource(
        {
            "x": [at for at, _ in known],
            **figures.interval_columns([measure for _, measure in known]),
        }
    )


def _point_facts(point: OutcomePoint, n: int) -> dict[str, str]:
    lines = {
        "Sent to it": f"{point.sent:,} of {n:,} decisions, from {point.threshold:.2f} on",
        "Precision": measure_text(point.precision),
        "Recall": measure_text(point.recall),
    }
    if point.cost is not UNSET:
        lines["Mean cost where it is the likeliest"] = measure_text(point.cost)
    return lines
