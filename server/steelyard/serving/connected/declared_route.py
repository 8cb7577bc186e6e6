"""Routes as the file ``models.toml`` of a home has them."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from msgspec import Meta, Struct

from steelyard.decisions.wire import Kind
from steelyard.settings import InvalidSettingError
from steelyard.wire.limits import MAX_STEPS


class RouteStep(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A model of a route; a decision whose top probability is below the threshold goes to the next."""

    model: str
    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.0
    #: Instead of it for decisions of a kind; 1 sends all of them on.
    by_kind: dict[Kind, Annotated[float, Meta(ge=0, le=1)]] = {}
    #: Highest ``unstated`` with which its answer stands.
    max_unstated: Annotated[float, Meta(ge=0, le=1)] = 1.0
    #: Weight of the model before: its log-probabilities, times this, are added to this model's.
    carries: Annotated[float, Meta(ge=0, le=4)] = 0.0


class DeclaredRoute(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """Models in the order in which they are asked, and the dataset that the thresholds are of."""

    steps: Annotated[tuple[RouteStep, ...], Meta(min_length=2, max_length=MAX_STEPS)]
    dataset: str = ""
    version: int = 0
    added: dt.date | None = None

    @property
    def models(self) -> list[str]:
        """Names of its models, in order."""
        return [step.model for step in self.steps]

    def check(self, name: str) -> None:
        """Raise ``InvalidSettingError`` unless it can be walked."""
        if len(set(self.models)) < len(self.steps):
            raise _bad(name, "name each model once")
        if self.steps[0].carries:
            raise _bad(name, "leave out what the first model carries: none is before it")
        last = self.steps[-1]
        if last.threshold or last.by_kind or last.max_unstated < 1:
            raise _bad(name, "leave out the threshold of the last model: its answer stands")


def _bad(name: str, needed: str) -> InvalidSettingError:
    return InvalidSettingError(f"The route {name!r} cannot be used: {needed}.")
