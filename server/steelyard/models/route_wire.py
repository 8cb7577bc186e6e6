"""Wire forms of routes: models asked in order, each where the one before is unsure."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.models.judge_wire import SetupTask
from steelyard.serving.routed.figures import CertifiedAccuracy, Figures
from steelyard.wire.limits import MAX_STEPS
from steelyard.wire.schemas import doc

_Name = Annotated[str, Meta(min_length=1, max_length=128)]


class ModelOfRoute(Struct, frozen=True, kw_only=True):
    """A model of a route, and below which top probability the next one is asked."""

    model: str
    threshold: Annotated[float | None, doc("Null of the last, whose answer stands.")]


class RouteFit(Struct, frozen=True, kw_only=True):
    """How good a route is on the rows of its dataset."""

    training: Annotated[Figures, doc("On the rows that chose the thresholds.")]
    evaluation: Annotated[list[Figures], doc("On the others: the route, then each model alone.")]
    certified: Annotated[
        CertifiedAccuracy | None, doc("Of a route that was fitted to an accuracy.")
    ]
    failures: Annotated[dict[str, int], doc("Why rows failed, and how many did.")]


class ModelRoute(Struct, frozen=True, kw_only=True):
    """A route of this server, or one that is fitted for the first time."""

    name: str
    models: Annotated[list[ModelOfRoute], doc("Empty before its first fit ended.")]
    dataset_id: str | None
    version: int | None
    task: SetupTask | None = None
    fit: Annotated[RouteFit | None, doc("Of the last fit.")] = None


class RouteList(Struct, frozen=True, kw_only=True):
    """The routes of this server."""

    data: list[ModelRoute]


class FitRoute(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A route to fit: its models, the rows, and the goal of its thresholds."""

    name: _Name
    models: Annotated[
        list[_Name],
        Meta(
            min_length=2,
            max_length=MAX_STEPS,
            description="Two to four, in the order to ask; each once.",
        ),
    ]
    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    bound: Annotated[
        Literal["accuracy", "price", "share"],
        doc(
            "`accuracy`: the cheapest that is certified to be right so often; `price`, in "
            "USD for 1,000 decisions, or `share`, of decisions beyond the first model: the most "
            "accurate within it."
        ),
    ]
    value: Annotated[float, Meta(ge=0, le=1e6)]
    rows: Annotated[
        Annotated[int, Meta(ge=20, le=2_000)], doc("Rows of each side that are asked at most.")
    ] = 200
    confidence: Annotated[
        Annotated[float, Meta(ge=0.5, lt=1)], doc("Of an accuracy that is certified.")
    ] = 0.95
    replace: Annotated[bool, doc("Fit a route anew that is there.")] = False


class RemovedRoute(Struct, frozen=True, kw_only=True):
    """A removed route; its models and its stored answers stay."""

    name: str
    deleted: bool
