"""Fit and remove routes of a running server, as ``steelyard route`` does in a home."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from steelyard.caller import Caller
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import InvalidRequestError, ModelUnavailableError, NotFoundError
from steelyard.models import route_wire
from steelyard.models.setup_run import Outcome, SetupRun, each_side, rows_of_side
from steelyard.models.setups import LastSetups, ModelSetups
from steelyard.serving.connected.declared import ModelsFile, check_name
from steelyard.serving.connected.declared_route import DeclaredRoute
from steelyard.serving.registry import HostedModel, ModelRegistry
from steelyard.serving.routed.fitting import Bound
from steelyard.serving.routed.observing import observe
from steelyard.serving.routed.report import fit_route
from steelyard.serving.routed.walking import Side
from steelyard.settings import InvalidSettingError
from steelyard.wire.violations import BODY, refusal

#: Seconds for an answer: a judge that is loaded first takes that long.
_TIMEOUT_S = 120.0


class RouteSetup:
    """The routes of a server, and their fits; safe to use from several threads."""

    def __init__(
        self,
        models: ModelRegistry,
        datasets: DatasetService,
        rows: DatasetRows,
        setups: ModelSetups,
    ) -> None:
        self._models, self._datasets, self._rows = models, datasets, rows
        self._setups = setups

    async def list(self) -> route_wire.RouteList:
        """Return the routes, and those whose first fit goes on or failed."""
        return await asyncio.to_thread(self._list)

    def _list(self) -> route_wire.RouteList:
        # In this order: a fit that succeeds meanwhile has a route.
        last, declared = self._setups.last(), self._setups.declared().routes
        begun = last.without_success("fit")
        names = [*declared, *(name for name in begun if name not in declared)]
        return route_wire.RouteList(
            data=[_describe(name, declared.get(name), last) for name in names]
        )

    async def fit(self, caller: Caller, request: route_wire.FitRoute) -> route_wire.ModelRoute:
        """Begin to fit a route; it is stored once it is judged, and where it must be, certified."""
        file = await asyncio.to_thread(self._setups.declared)
        self._check_name(request, file)
        hosted = _hosted_models(self._models, request.models)
        _check_value(request, {model.name: model.price_nano for model in hosted})
        dataset = await self._datasets.get(caller, request.dataset_id)
        await self._setups.begin(
            caller, "fit", request.name, request, dataset_id=dataset.id, version=dataset.version
        )
        last = await asyncio.to_thread(self._setups.last)
        return _describe(request.name, file.routes.get(request.name), last)

    def run_fit(self, run: SetupRun) -> Outcome:
        """Fit a route, judge it, and where it must be, certify it."""
        request = run.request(route_wire.FitRoute)
        hosted = _hosted_models(self._models, request.models)
        rows = [
            rows_of_side(self._rows, run, side, request.rows) for side in ("training", "evaluation")
        ]
        (training, evaluation), failures = _observe(hosted, rows, run)
        judged = fit_route(
            request.name,
            request.dataset_id,
            run.row.dataset_version,
            Bound(request.bound, request.value),
            (training, evaluation),
            failures,
            confidence=request.confidence,
            on_uncertified=_refuse,
        )
        fit = route_wire.RouteFit(
            training=judged.training,
            evaluation=judged.held_out,
            certified=judged.certified,
            failures=judged.failures,
        )
        return Outcome(result=fit, change=lambda file: file.with_route(request.name, judged.route))

    async def remove(self, name: str) -> route_wire.RemovedRoute:
        """Remove a route, or the record of a failed fit."""
        await asyncio.to_thread(self._remove, name)
        return route_wire.RemovedRoute(name=name, deleted=True)

    def _remove(self, name: str) -> None:
        last = self._setups.last()
        task = last.tasks.get(name)
        if task is not None and task.status == "running":
            raise ModelUnavailableError(f"The route {name} is being fitted; wait until that ends.")

        def take_away(file: ModelsFile) -> ModelsFile:
            if name not in file.routes and name not in last.without_success("fit"):
                raise NotFoundError(f"There is no route {name[:60]!r}; see GET /v1/routes.")
            return file.without(name) if name in file.routes else file

        self._setups.change(take_away)
        self._setups.forget(name)

    def _check_name(self, request: route_wire.FitRoute, declared: ModelsFile) -> None:
        name = request.name
        try:
            check_name(name)
        except InvalidSettingError as error:
            raise refusal((*BODY, "name"), str(error), "invalid") from error
        if name in declared.routes:
            if not request.replace:
                raise refusal(
                    (*BODY, "name"), "is a route already; replace it, or choose another.", "used"
                )
        elif name in declared.models or self._models.find(name) is not None:
            raise refusal((*BODY, "name"), "is the name of a model; choose another.", "used")


def _describe(name: str, route: DeclaredRoute | None, last: LastSetups) -> route_wire.ModelRoute:
    steps = () if route is None else route.steps
    return route_wire.ModelRoute(
        name=name,
        models=[
            route_wire.ModelOfRoute(
                model=step.model, threshold=None if step is steps[-1] else step.threshold
            )
            for step in steps
        ],
        dataset_id=None if route is None else route.dataset or None,
        version=None if route is None else route.version or None,
        task=last.tasks.get(name),
        fit=last.result(name, "fit", route_wire.RouteFit),
    )


def _hosted_models(registry: ModelRegistry, names: list[str]) -> list[HostedModel]:
    """Return the models of a request in its order; refuse models that a route cannot ask."""
    if len(set(names)) < len(names):
        raise refusal((*BODY, "models"), "names a model twice; name each once.", "repeated")
    listed = [registry.find(name) for name in names]
    models = [model for model in listed if model is not None and not model.is_route]
    if len(models) < len(listed):
        known = [model.name for model in registry.hosted if not model.is_route]
        message = f"names what is no base or connected model; there are {', '.join(known)}."
        raise refusal((*BODY, "models"), message, "unknown_model")
    return models


def _check_value(request: route_wire.FitRoute, prices: Mapping[str, int]) -> None:
    """Refuse a bound that says nothing."""
    if request.bound == "accuracy" and not 0 < request.value < 1:
        raise refusal(
            (*BODY, "value"), "is no accuracy; give a number between 0 and 1.", "out_of_range"
        )
    if request.bound == "share" and request.value > 1:
        raise refusal(
            (*BODY, "value"), "is more than all; give a share from 0 to 1.", "out_of_range"
        )
    if request.bound == "price" and not any(prices.values()):
        message = "bounds a price, and none of the models has one; bound accuracy or share."
        raise refusal((*BODY, "bound"), message, "no_price")


def _observe(
    hosted: list[HostedModel], rows: list[list[dict[str, Any]]], run: SetupRun
) -> tuple[list[Side], Counter[str]]:
    models = {model.name: model for model in hosted}
    prices = {model.name: model.price_nano for model in hosted}
    sides, failures = [], Counter[str]()
    for side, on_row in each_side(rows, run.report):
        answered, failed = observe(
            lambda name, row: _ask(run, models[name], row),
            side,
            prices,
            on_row,
        )
        sides.append(answered)
        failures += failed
    return sides, failures


def _ask(run: SetupRun, model: HostedModel, row: Mapping[str, Any]) -> DecideResponse:
    request = read_request({"context": row["context"], "decisions": row["decisions"]})
    prepared = model.decide.prepare_request(request)
    scores = run.asking(model.queue.submit)(prepared.rendered, _TIMEOUT_S)
    try:
        return model.decide.finish(prepared, scores.result(_TIMEOUT_S))
    except TimeoutError:
        raise ModelUnavailableError(f"No answer within {_TIMEOUT_S:g} s.") from None


def _refuse(reason: str) -> NoReturn:
    raise InvalidRequestError(f"{reason} Nothing is stored.")
