"""The frontier on the Evaluations page: which of a dataset's models no other model beats."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.evaluations.frontier_wire import Frontier
from steelyard.evaluations.wire import ConfusionMatrix, DecisionMeasures
from steelyard.wire.decoding import decode
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.any_length import ANY_LENGTH
from steelyard_workbench.kit.components.facts import heading
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.numbers import named_text
from steelyard_workbench.kit.components.step_names import number_fields
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.states import empty
from steelyard_workbench.pages.frontier.frontier_chart import (
    AXES,
    MEASURES,
    frontier_chart,
    number_text,
    place_of,
)

_YES = "yes"
_Costs = dict[str, dict[str, float]]


class FrontierPanel(Viewer):
    """The models of a dataset against each other; ``open_`` is called with the id of an evaluation."""

    def __init__(
        self,
        client: Client,
        dataset_id: str,
        open_: Callable[[str], None],
        on_evaluate: Callable[[], None],
    ) -> None:
        self._client, self._dataset_id, self._open = client, dataset_id, open_
        self._on_evaluate = on_evaluate
        self._decisions: dict[str, DecisionMeasures] = {}
        self.measure = pmui.Select(label="Measure", options=MEASURES, value="accuracy", width=200)
        self.axis = pmui.RadioButtonGroup(
            label="Against", options={"Price": "price", "Time": "latency"}, value="price"
        )
        self.decision = pmui.Select(label="Decision", options=[], width=220)
        self.false_yes = pmui.FloatInput(label="A wrong yes costs", value=1.0, start=0, width=170)
        self.false_no = pmui.FloatInput(label="A wrong no costs", value=1.0, start=0, width=170)
        self.matrix = pmui.TextAreaInput(
            label="Costs as JSON: action, answer, cost",
            rows=6,
            max_length=ANY_LENGTH,
            sizing_mode="stretch_width",
        )
        self._costs = stack(
            number_fields(self.decision, self.false_yes, self.false_no), self.matrix, visible=False
        )
        self.controls = pn.FlexBox(self.measure, self.axis, align_items="flex-end", visible=False)
        super().__init__()
        self.part: Loaded[Frontier | str] = Loaded("The models", self._fetch, self.show)

    def __panel__(self) -> Viewable:
        return stack(heading("Which model to take"), self.controls, self._costs, self.part)

    def _fetch(self) -> Frontier | str:
        """Return the frontier, or the mistake in the costs."""
        ask = self._client.evaluations.frontier
        if not self._decisions:
            frontier = ask(self._dataset_id)
            if frontier.data:
                detail = self._client.evaluations.detail(frontier.data[0].evaluation)
                self._decisions = {decision.decision_id: decision for decision in detail.decisions}
            return frontier
        if self.measure.value != "expected_cost":
            return ask(self._dataset_id, self.measure.value)
        costs = self._given_costs()
        if isinstance(costs, str):
            return costs
        return ask(self._dataset_id, "expected_cost", decision=self.decision.value, **costs)

    def _given_costs(self) -> dict[str, Any] | str:
        if _is_binary(self._decisions[self.decision.value]):
            return {
                "false_positive": float(self.false_yes.value or 0),
                "false_negative": float(self.false_no.value or 0),
            }
        try:
            return {"action_costs": decode(self.matrix.value, _Costs)}
        except msgspec.DecodeError:
            return (
                'The costs are not JSON such as `{"refund": {"yes": 0, "no": 4}}`; mend the text.'
            )

    def show(self, frontier: Frontier | str) -> Viewable:
        """Show the models of a frontier, or the sentence in its place."""
        if isinstance(frontier, str):
            return empty(frontier)
        if self._decisions and not self.decision.options:
            self.decision.param.update(
                options=list(self._decisions), value=next(iter(self._decisions))
            )
        if not frontier.data:
            return empty("**No model is evaluated on this dataset yet.**", self._evaluate_button())
        if not self.controls.visible:
            # Where all cost the same, how long they take tells them apart.
            by_price, by_time = (_tells_apart(frontier, axis) for axis in AXES)
            self.axis.value = "latency" if by_time and not by_price else "price"
        self.controls.visible = True
        self._figure = stack()
        self._draw(frontier)
        return self._figure

    def _draw(self, frontier: Frontier) -> None:
        axis = self.axis.value
        is_alone = len(frontier.data) == 1
        missing = sum(place_of(point, axis) is None for point in frontier.data)
        best = [point for point in frontier.data if not point.dominated][:3]
        names = ", ".join(
            f"**{escape_markdown(point.model)}** {named_text(frontier.measure, point.estimate)}"
            for point in best
        )
        result = f"{'Not beaten by another' if best[1:] else 'Best'}: {names}."
        if axis == "price" and not missing and not _tells_apart(frontier, axis):
            result = f"All cost the same. {result}"
        if is_alone:
            result = f"{names}. Evaluate another model on these rows to see which one to take."
        shown: list[Viewable] = [empty(result, *([self._evaluate_button()] if is_alone else []))]
        if _tells_apart(frontier, axis):
            shown.append(
                figures.show(frontier_chart(frontier.data, frontier.measure, axis, self._open))
            )
        if missing and _tells_apart(frontier, axis):
            is_untimed = axis == "latency"
            why = (
                "They were evaluated without times"
                if is_untimed
                else "An earlier release did not count their tokens"
            )
            text = f"{missing:,} of {len(frontier.data):,} models stand at the left, hollow. {why}."
            shown.append(empty(text, *([self._evaluate_button()] if is_untimed else [])))
        data = mark_table(
            (
                "model",
                "share right"
                if frontier.measure == "accuracy"
                else frontier.measure.replace("_", " "),
                *AXES.values(),
                "standing",
            ),
            [
                (
                    point.model,
                    named_text(frontier.measure, point.estimate),
                    *(number_text(place_of(point, name)) for name in AXES),
                    "better on nothing" if point.dominated else "not beaten",
                )
                for point in frontier.data
            ],
            label="Models by what they achieve, cost and take",
            open_=lambda place: self._open(frontier.data[place].evaluation),
            opens="Open its evaluation",
        )
        text = f"On the rows for the check of version {frontier.dataset_version}."
        if not is_alone:
            text += (
                " A model is better on nothing when another is nowhere worse and somewhere better, "
                "by quality, price and, where both have one, time. Where intervals overlap, compare "
                "the two."
            )
        self._figure[:] = [*shown, small_text(text), data]

    def _evaluate_button(self) -> Viewable:
        return action_button("Evaluate a model", lambda _: self._on_evaluate(), variant="contained")

    @param.depends("axis.value", watch=True)
    def _on_axis(self) -> None:
        if isinstance(self.part.data, Frontier):
            self._draw(self.part.data)

    @param.depends("decision.value", watch=True)
    def _on_decision(self) -> None:
        """Offer the fields of the decision's kind; each mistake costs one at first."""
        decision = self._decisions[self.decision.value]
        is_binary = _is_binary(decision)
        self.false_yes.visible = self.false_no.visible = is_binary
        self.matrix.visible = not is_binary
        names = _outcomes(decision)
        even = {action: {name: float(name != action) for name in names} for action in names}
        self.matrix.value = json.dumps(even, indent=1, ensure_ascii=False)
        self._on_costs()

    @param.depends("measure.value", watch=True)
    def _on_measure(self) -> None:
        self._costs.visible = self.measure.value == "expected_cost"
        self.part.start()

    @param.depends("false_yes.value", "false_no.value", "matrix.value", watch=True)
    def _on_costs(self) -> None:
        if self.measure.value == "expected_cost":
            self.part.start()


def _tells_apart(frontier: Frontier, axis: str) -> bool:
    """Whether the models stand at several places of an axis, or one of them at none."""
    places = {place_of(point, axis) for point in frontier.data}
    return len(places) > 1


def _outcomes(decision: DecisionMeasures) -> list[str]:
    confusion = decision.confusion
    return confusion.outcomes if isinstance(confusion, ConfusionMatrix) else []


def _is_binary(decision: DecisionMeasures) -> bool:
    return decision.kind == "binary" and _YES in _outcomes(decision)
