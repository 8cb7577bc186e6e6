"""Trials on decisions already scored: a threshold to abstain under, and the cost of mistakes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard.calibration.intervals import proportion_interval
from steelyard.client import Client
from steelyard.evaluations import wire
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table, show_data
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.views import empty, facts, heading, table, verdict
from steelyard_workbench.kit.words import measure_text
from steelyard_workbench.parts.evaluations import charts
from steelyard_workbench.parts.evaluations.costs import (
    Costs,
    cost_fields,
    is_binary,
    outcomes_of,
    read_costs,
    write_costs,
)
from steelyard_workbench.parts.evaluations.one_outcome import OneOutcome
from steelyard_workbench.parts.evaluations.scored import RecordChoice

_SHARES = "The 95 % intervals of shares take decisions as independent of each other."


class WhatIf(Boxed):
    """Thresholds and costs of one evaluation, tried without changing anything."""

    def __init__(
        self,
        client: Client,
        evaluation: wire.Evaluation,
        detail: wire.EvaluationDetail,
        on_choose: Callable[[RecordChoice], None],
    ) -> None:
        self._client, self._evaluation, self._detail = client, evaluation, detail
        self._on_choose, self._is_filling = on_choose, False
        self._has_targets = evaluation.method == "sft"
        self.one_outcome = OneOutcome(client, evaluation.id, on_choose)
        self.curve: wire.CostCurve | None = None
        self._make_fields([decision.decision_id for decision in detail.decisions])
        self._box = self._make_box()
        super().__init__()
        self.refresh = Task(self._refresh, "Could not try this what-if.", self.report)
        self._fill_costs()

    def _make_fields(self, names: list[str]) -> None:
        self.decision = pmui.Select(label="Decision", options=names, value=names[0], width=220)
        self.threshold = figures.threshold_slider("Abstain when the top probability is below")
        self.yes_from = figures.threshold_slider("Answer yes from a probability of")
        self.false_yes, self.false_no, self.matrix = cost_fields()
        self.wrong = pmui.FloatInput(label="A wrong answer costs", value=1.0, start=0, width=170)
        self.abstaining = pmui.FloatInput(label="Abstaining costs", value=0.2, start=0, width=170)
        self.coverage, self.report, self.costs, self.yes = stack(), stack(), stack(), stack()
        self._binary_fields = number_fields(self.false_yes, self.false_no)
        self._matrix_fields = pmui.Column(
            number_fields(self.wrong, self.abstaining),
            pmui.Accordion(
                ("Costs by action and answer", self.matrix),
                sizing_mode="stretch_width",
                margin=(5, 10),
                title_variant="body2",
            ),
            sizing_mode="stretch_width",
        )

    def _make_box(self) -> pn.Column:
        cost_box = [empty("Costs need targets, and this evaluation has rewards.")]
        if self._has_targets:
            fields = (self._binary_fields, self._matrix_fields)
            cost_box = [*fields, self.costs, self.yes, self.one_outcome]
        return stack(
            verdict("running", "What if.", "Tried on decisions already scored; nothing changes."),
            heading("Abstaining"),
            self.coverage,
            pn.FlexBox(self.decision, self.threshold, align_items="center"),
            self.report,
            heading("Costs"),
            *cost_box,
        )

    async def _refresh(self) -> None:
        self._show_coverage()
        try:
            costs = self._action_costs() if self._has_targets else None
        except ValueError as error:
            self.costs[:] = [empty(str(error))]
            return
        report = await asyncio.to_thread(
            self._client.evaluations.try_policy,
            self._evaluation.id,
            self.decision.value,
            action_costs=costs,
            abstain_below=self.threshold.value,
        )
        curve = await asyncio.to_thread(self._fetch_curve, costs) if costs else None
        self.report[:] = [show_policy(report)]
        self.curve = curve
        self._show_costs()
        if self._has_targets:
            await self.one_outcome.show(self.decision.value, outcomes_of(self._decision()))

    def _decision(self) -> wire.DecisionMeasures:
        return next(
            decision
            for decision in self._detail.decisions
            if decision.decision_id == self.decision.value
        )

    def _is_binary(self) -> bool:
        return is_binary(self._decision())

    def _action_costs(self) -> Costs:
        """Return the cost of each action under each outcome; raise ``ValueError`` for no such table."""
        if not self._is_binary():
            return read_costs(self.matrix.value)
        false_yes, false_no = float(self.false_yes.value or 0), float(self.false_no.value or 0)
        return {"yes": {"yes": 0.0, "no": false_yes}, "no": {"yes": false_no, "no": 0.0}}

    def _fetch_curve(self, costs: Costs) -> wire.CostCurve:
        ask = self._client.evaluations.cost_curve
        if self._is_binary():
            return ask(
                self._evaluation.id,
                self.decision.value,
                false_positive=float(self.false_yes.value or 0),
                false_negative=float(self.false_no.value or 0),
            )
        return ask(
            self._evaluation.id,
            self.decision.value,
            action_costs=costs,
            abstain_cost=float(self.abstaining.value or 0),
        )

    def _coverage(self) -> tuple[str, list[wire.CoveragePoint], int]:
        """Return the decision chosen, or no name and all of them, its curve and its number of decisions."""
        decision = self._decision()
        if isinstance(decision.coverage_curve, list):
            return decision.decision_id, decision.coverage_curve, decision.metrics.n
        return "", self._detail.coverage_curve, self._detail.overall.n

    def _show_coverage(self) -> None:
        decision, points, n = self._coverage()

        def open_(place: int) -> None:
            at = points[place].threshold
            self._on_choose(RecordChoice(decision=decision, p_to=at, order="surest"))

        chart = charts.coverage_chart(points, at=self.threshold.value, open_=open_)
        name = charts.coverage_measure(points)
        data = mark_table(
            ("abstain below", "share answered", f"{charts.TITLES[name]} of those"),
            [
                (
                    f"{point.threshold:.2f}",
                    measure_text(share_of(point.n, n)),
                    measure_text(charts.measure_or_none(getattr(point, name))),
                )
                for point in points
            ],
            label="Answered by threshold",
            open_=open_,
            opens="Show the decisions left to a person",
        )
        self.coverage[:] = [
            figures.show(chart),
            small_text(
                f"Of {f'the {n:,} of {decision}' if decision else f'all {n:,} decisions'}. Click a "
                "point for the decisions of at most that probability: those left to a person. "
                f"{_SHARES}"
            ),
            show_data(data),
        ]

    @param.depends("yes_from.value_throttled", watch=True)
    def _show_costs(self) -> None:
        curve = self.curve
        if curve is None:
            return
        of_yes = self._is_binary()
        self._binary_fields.visible, self._matrix_fields.visible = of_yes, not of_yes
        x, at = "abstain when the top probability is below", self.threshold.value
        if of_yes:
            x, at = "answer yes from a probability of", self.yes_from.value

        def open_(place: int) -> None:
            choice = RecordChoice(decision=self.decision.value, order="least_sure")
            if not of_yes:
                p_to = curve.points[place].threshold
                choice = RecordChoice(decision=self.decision.value, p_to=p_to, order="surest")
            self._on_choose(choice)

        chart = charts.cost_chart(curve, x=x, at=at, open_=open_)
        n = self._decision().metrics.n
        data = mark_table(
            (x, "mean cost", "acted on"),
            [
                (
                    f"{point.threshold:.2f}",
                    measure_text(charts.measure_or_none(point.cost_in_all) or point.cost),
                    measure_text(share_of(round(point.coverage * n), n)),
                )
                for point in curve.points
            ],
            label="Cost by threshold",
            open_=open_,
        )
        self.costs[:] = [figures.show(chart), small_text(_SHARES), show_data(data)]
        self._show_yes()

    def _show_yes(self) -> None:
        """Show the effect of answering yes from a threshold on; the curve is here already."""
        curve = self._decision().yes_curve
        if not (self._is_binary() and isinstance(curve, list)) or self.curve is None:
            self.yes[:] = []
            return
        at = self.yes_from.value
        point = min(curve, key=lambda candidate: abs(candidate.threshold - at))
        cost = min(self.curve.points, key=lambda candidate: abs(candidate.threshold - at)).cost
        self.yes[:] = [self.yes_from, facts(yes_facts(point, cost))]

    def _fill_costs(self) -> None:
        """Write the table that a wrong answer's one cost makes."""
        outcomes, wrong = outcomes_of(self._decision()), float(self.wrong.value or 0)
        self._is_filling = True
        try:
            self.matrix.value = write_costs(outcomes, wrong)
        finally:
            self._is_filling = False
        of_yes = self._is_binary()
        self._binary_fields.visible, self._matrix_fields.visible = of_yes, not of_yes

    @param.depends("decision.value", "wrong.value", watch=True)
    def _on_decision(self) -> None:
        self._fill_costs()
        self.refresh.start()

    @param.depends(
        "threshold.value_throttled",
        "false_yes.value",
        "false_no.value",
        "abstaining.value",
        "matrix.value",
        watch=True,
    )
    def _on_change(self) -> None:
        if not self._is_filling:
            self.refresh.start()


def show_policy(report: wire.PolicyReport) -> Viewable:
    """Show the actions of a policy."""
    values = {"Acted on": f"{measure_text(report.coverage)}, of {report.n:,} decisions"}
    for title, measure in (
        ("Right where acted on", report.accuracy),
        ("Expected reward where acted on", report.expected_reward),
        ("Cost where acted on", report.cost),
        ("Cost that the model promised", report.promised_cost),
        ("Cost if all were known", report.least_cost),
    ):
        if isinstance(measure, Measure):
            values[title] = measure_text(measure)
    shares = [(share.action, measure_text(share.share)) for share in report.actions]
    return stack(
        facts(values),
        table(("action", "share of decisions"), shares, label="Actions of the policy"),
    )


def share_of(count: int, n: int) -> Measure:
    """Return a share of decisions with its exact interval, which takes them as independent.

    >>> measure_text(share_of(9, 10))
    '0.900 (0.555 to 0.997, n = 10)'
    """
    interval = proportion_interval(count, n)
    return Measure(value=count / n, low=interval.low, high=interval.high, n=n)


def yes_facts(point: wire.YesPoint, cost: Measure | None) -> dict[str, str]:
    """Return the effect of answering yes from a threshold on."""
    return {
        "Answered yes": f"{point.predicted:,} decisions from {point.threshold:.2f} on",
        "Precision": measure_text(point.precision),
        "Recall": measure_text(point.recall),
        "F1": measure_text(point.f1),
        "Mean cost": measure_text(cost),
    }
