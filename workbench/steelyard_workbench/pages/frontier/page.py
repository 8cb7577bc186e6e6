"""Frontier: which of a dataset's evaluated models no other model beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.evaluations.frontier_wire import Frontier
from steelyard.evaluations.wire import DecisionMeasures
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import empty, heading
from steelyard_workbench.kit.words import escape_markdown, named_text
from steelyard_workbench.pages.evaluations.page import (
    dataset_select,
    datasets_and_chosen,
    no_dataset,
)
from steelyard_workbench.pages.frontier.frontier_chart import (
    AXES,
    MEASURES,
    frontier_chart,
    number_text,
    place_of,
)
from steelyard_workbench.parts.datasets.names import no_datasets
from steelyard_workbench.parts.evaluations.costs import (
    cost_fields,
    is_binary,
    outcomes_of,
    read_costs,
    write_costs,
)


class FrontierPage(OnePartPage):
    """The models that were evaluated on a dataset, against each other."""

    slug = "frontier"
    title = "Quality and price"
    summary = (
        "How often each model is right on the same rows, against its price or the time it takes."
    )
    watched = ("dataset",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.frontier: FrontierPanel | None = None

    def content(self) -> list[Viewable]:
        """Return the choice of a dataset, and its frontier."""
        self.frontier = None
        self.shown = Loaded("The datasets", self._fetch, self._show)
        return [self.part(self.shown)]

    def _fetch(self) -> tuple[Sequence[Dataset], str]:
        return datasets_and_chosen(self.client, self.session.dataset, method="sft")

    async def _show(self, offered: tuple[Sequence[Dataset], str]) -> Viewable:
        datasets, chosen = offered
        if not datasets:
            return no_datasets(self.session, "This page compares the models of one.")
        known = {dataset.id: dataset for dataset in datasets}
        select = dataset_select(self.session, datasets, chosen)
        if chosen not in known:
            return stack(select, no_dataset(chosen))
        if known[chosen].method != "sft":
            text = "This dataset has rewards and no labels, which this page needs."
            go = action_button(
                "Compare two models",
                lambda _: self.session.open("compare", dataset=chosen),
                variant="contained",
            )
            return stack(select, empty(text, go))
        self.frontier = FrontierPanel(
            self.client,
            chosen,
            lambda id_: self.session.open("evaluations", evaluation=id_),
            lambda: self.session.open("evaluations", dataset=chosen, evaluation=""),
        )
        self.part(self.frontier.part)
        await self.frontier.part.refresh()
        return stack(select, self.frontier)


class FrontierPanel(Boxed):
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
        self.false_yes, self.false_no, self.matrix = cost_fields()
        self._costs = stack(
            number_fields(self.decision, self.false_yes, self.false_no), self.matrix, visible=False
        )
        self.controls = pn.FlexBox(self.measure, self.axis, align_items="flex-end", visible=False)
        super().__init__()
        self.part: Loaded[Frontier | str] = Loaded("The models", self._fetch, self.show)
        self._box = stack(heading("Which model to take"), self.controls, self._costs, self.part)

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
        costs: dict[str, Any] = {
            "false_positive": float(self.false_yes.value or 0),
            "false_negative": float(self.false_no.value or 0),
        }
        if not is_binary(self._decisions[self.decision.value]):
            try:
                costs = {"action_costs": read_costs(self.matrix.value)}
            except ValueError as error:
                return str(error)
        return ask(self._dataset_id, "expected_cost", decision=self.decision.value, **costs)

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
        self.false_yes.visible = self.false_no.visible = is_binary(decision)
        self.matrix.visible = not is_binary(decision)
        self.matrix.value = write_costs(outcomes_of(decision))
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
    return len({place_of(point, axis) for point in frontier.data}) > 1
