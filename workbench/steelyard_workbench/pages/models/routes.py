"""Combine models: models asked in order, each where the one before is unsure."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard.models.route_wire import ModelRoute, RouteFit, RouteList
from steelyard.models.wire import Model
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import number_fields, side_by_side
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.views import empty, facts, heading, table, verdict
from steelyard_workbench.kit.words import measure_text, percent_text
from steelyard_workbench.parts.datasets.names import dataset_options
from steelyard_workbench.parts.setup_tasks import show_task

_ABOUT = (
    "A combined model asks a cheap one first, and a stronger one for what the cheap one is not sure of. Rows "
    "with labels choose how sure is sure enough, and other rows show how good it is."
)
_NONE = "**No combined models yet.** Choose two models and a dataset with labels below."
_MOST_DATASETS = 200
_NO_MODEL = ""
_SHARE, _ACCURACY, _PRICE = "share", "accuracy", "price"
_BOUNDS = {
    "send at most this share of decisions on": _SHARE,
    "be right at least this often, certified": _ACCURACY,
    "cost at most so many USD for 1,000 decisions": _PRICE,
}
_USUAL = {_SHARE: 0.3, _ACCURACY: 0.9, _PRICE: 0.05}
#: Looks after a change until the server has it among its models, which it reads once a second.
_LOOKS_AFTER = 2
_Choices = tuple[list[Model], list[Dataset]]


class Routes(Section):
    """The combined models, the one that is open beside them, and the form of a new one."""

    def build(self) -> list[Viewable]:
        """Return the list and the form."""
        self.chosen = ""
        self._looks_left = 0
        self.routes = Loaded(
            "The combined models", self.client.models.routes, self._show, n_lines=2
        )
        self.making = Loaded(
            "The models and datasets", self._fetch_choices, self._show_form, n_lines=2
        )
        self.opened.width = 520
        return [
            heading("Combined models"),
            small_text(_ABOUT),
            side_by_side(self.part(self.routes), self.opened),
            heading("Combine models", 3),
            self.part(self.making),
            self.said,
            self.question,
        ]

    async def look(self) -> bool:
        """Bring a fit up to date; return whether the models of the server may have changed."""
        listed = self.routes.data
        if listed is not None and any(_runs(route) for route in listed.data):
            await self.routes.refresh(quietly=True)
            self._looks_left = _LOOKS_AFTER
            return False
        if not self._looks_left:
            return False
        self._looks_left -= 1
        return True

    def _fetch_choices(self) -> _Choices:
        models = [
            model
            for model in self.client.models.list().data
            if model.lora is None and model.engine != "route"
        ]
        datasets = islice(self.client.datasets.iterate(), _MOST_DATASETS)
        return models, [dataset for dataset in datasets if dataset.method == "sft"]

    def _show(self, routes: RouteList) -> Viewable:
        open_route = next((route for route in routes.data if route.name == self.chosen), None)
        if open_route is not None:
            self.open_route(open_route)
        if not routes.data:
            return empty(_NONE)
        return mark_table(
            ("name", "models", "state"),
            [
                (route.name, ", then ".join(step.model for step in route.models), _state_of(route))
                for route in routes.data
            ],
            label="Combined models",
            open_=lambda place: self.open_route(routes.data[place]),
            opens="Show what it was fitted to",
        )

    def _show_form(self, choices: _Choices) -> Viewable:
        models, datasets = choices
        if len(models) < 2 or not datasets:
            missing = "a second model" if datasets else "a dataset with labels"
            return empty(f"A combined model needs two and a dataset with labels: add {missing}.")
        names = {_with_price(model): model.id for model in models}
        self.route_name = pmui.TextInput(label="Its name", max_length=128, width=240)
        self.first = pmui.Select(label="Asked first", options=names, value=models[0].id, width=330)
        self.second = pmui.Select(label="Then", options=names, value=models[1].id, width=330)
        self.third = pmui.Select(
            label="Then, at last", options={"no other": _NO_MODEL, **names}, width=330
        )
        self.third.value = _NO_MODEL
        self.dataset = pmui.Select(
            label="Fitted on", options=dataset_options(datasets, with_rows=True), width=330
        )
        self.dataset.value = datasets[0].id
        self.bound = pmui.Select(label="It is to", options=_BOUNDS, value=_SHARE, width=340)
        self.value = pmui.FloatInput(
            label="Share, 0 to 1", value=_USUAL[_SHARE], start=0, width=180
        )
        self.bound.param.watch(self._fit_value, "value")
        self.rows = pmui.IntInput(
            label="Rows of each side at most", value=200, start=20, end=2_000, width=200
        )
        self.replaces = pmui.Switch(label="Replace one of this name", value=False)
        fit = self.button(
            "Combine them",
            self._fit,
            "Not fitted.",
            variant="contained",
            fields={
                "name": self.route_name,
                "models": self.first,
                "dataset_id": self.dataset,
                "bound": self.bound,
                "value": self.value,
                "rows": self.rows,
                "replace": self.replaces,
            },
        )
        return stack(
            pn.FlexBox(self.route_name, self.replaces, align_items="center"),
            pn.FlexBox(self.first, self.second, self.third),
            pn.FlexBox(self.dataset, self.bound),
            number_fields(self.value, self.rows, fit, align_items="center"),
        )

    def _fit_value(self, _: Any) -> None:
        labels = {_SHARE: "Share, 0 to 1", _ACCURACY: "Accuracy, 0 to 1", _PRICE: "USD for 1,000"}
        bound = str(self.bound.value)
        self.value.param.update(label=labels[bound], value=_USUAL[bound])

    async def _fit(self) -> None:
        name = needed(self.route_name, "Write a name: programs ask for it by that.")
        models = [self.first.value, self.second.value, self.third.value]
        await asyncio.to_thread(
            self.client.models.fit_route,
            name,
            [str(model) for model in models if model != _NO_MODEL],
            str(self.dataset.value),
            bound=self.bound.value,
            value=float(self.value.value),
            rows=int(self.rows.value),
            replace=bool(self.replaces.value),
        )
        self.chosen, self._looks_left = name, _LOOKS_AFTER
        await self.routes.refresh(quietly=True)

    def open_route(self, route: ModelRoute) -> None:
        """Show a route: its fit's progress, goal and quality."""
        self.chosen = route.name
        views: list[Viewable] = [heading(route.name, 3)]
        if route.task is not None:
            views += show_task(route.task)
        if route.models:
            views.append(_show_steps(route))
        if route.fit is not None:
            views += show_fit(route.fit)
        actions: list[Viewable] = []
        if route.models:
            ask = partial(self.session.open, "playground", model=route.name, named="")
            actions.append(
                action_button("Ask it", lambda _: ask(), variant="contained", size="small")
            )
        if not _runs(route):
            remove = self.harmful(
                "Remove …",
                f"Remove {route.name}?",
                "Requests that name it are refused from then on. Its models stay, and so do its stored answers.",
                "Remove it",
                partial(self._remove, route),
                "Not removed.",
            )
            actions.append(remove)
        self.opened[:] = [*views, pn.FlexBox(*actions, self.close_button())]
        self.opened.visible = True

    def close(self) -> None:
        """Show no route."""
        self.chosen = ""
        super().close()

    async def _remove(self, route: ModelRoute) -> None:
        await asyncio.to_thread(self.client.models.remove_route, route.name)
        self._looks_left = _LOOKS_AFTER
        await self.done(f"{route.name} is removed.", self.routes)


def _show_steps(route: ModelRoute) -> Viewable:
    rows = [
        (
            step.model,
            "what is left"
            if step.threshold is None
            else f"a top probability of {step.threshold:.4f} or more",
        )
        for step in route.models
    ]
    return table(("model", "decides"), rows, label="Models of it")


def show_fit(fit: RouteFit) -> list[Viewable]:
    """Show how good a route is on rows that did not choose its thresholds."""
    rows = [
        (
            figures.name,
            measure_text(figures.accuracy),
            measure_text(figures.share_escalated),
            f"{figures.price_usd_per_1000.value:.4g}",
        )
        for figures in fit.evaluation
    ]
    views: list[Viewable] = [
        heading("On rows that it has never seen", 3),
        table(
            ("", "right", "sent on", "USD for 1,000"),
            rows,
            label="Figures of rows it has never seen",
            numbers=(3,),
        ),
    ]
    if fit.certified is not None:
        text = (
            f"Right in at least {percent_text(fit.certified.accuracy)} of decisions like these, with a "
            f"confidence of {percent_text(fit.certified.confidence)}."
        )
        views.append(verdict("good", "Certified.", text))
    if fit.failures:
        failures = {message: f"{number:,} rows" for message, number in fit.failures.items()}
        views += [heading("Rows that failed", 3), facts(failures)]
    return views


def _state_of(route: ModelRoute) -> str:
    if _runs(route):
        return "being fitted"
    if not route.models:
        return "not fitted: it failed"
    has_failed = route.task is not None and route.task.status == "failed"
    return "failed to be fitted anew" if has_failed else "answers"


def _runs(route: ModelRoute) -> bool:
    return route.task is not None and route.task.status == "running"


def _with_price(model: Model) -> str:
    nano = model.decision_price_nano
    return model.id if not nano else f"{model.id}, {int(nano) / 1000:g} USD a million tokens"
