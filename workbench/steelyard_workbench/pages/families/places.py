"""Models that answer or are kept warm where all places are taken: the list to switch off from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.errors import SteelyardError
from steelyard.families.wire import Answering, KeptWarm
from steelyard.wire.decoding import convert
from steelyard_workbench.kit.components.numbers import ago


@dataclass(frozen=True, slots=True)
class Holder:
    """A model that takes a place."""

    model: str
    names: tuple[str, ...]
    used_at: float | None

    @property
    def label(self) -> str:
        """The label of the button."""
        return f"{self.model}: switches off {', '.join(self.names)}; used {ago(self.used_at)}"


def holders_of(error: SteelyardError) -> list[Holder]:
    """Return the models that take the places, the longest unused first, from an error's details."""
    holders: list[Holder] = []
    for detail in error.details or ():
        holders += [
            Holder(
                model.model, (*((model.model,) if model.on else ()), *model.serves), model.used_at
            )
            for model in _read(detail, "answering", Answering)
        ]
        holders += [
            Holder(
                model.model,
                (*((model.model,) if model.keep_warm else ()), *model.families),
                model.used_at,
            )
            for model in _read(detail, "warm", KeptWarm)
        ]
    return holders


class PlaceChoice(Viewer):
    """Check boxes of the models that take the places."""

    def __init__(self, holders: Sequence[Holder]) -> None:
        super().__init__()
        self.boxes = pmui.CheckBoxGroup(
            label="Switch off",
            options={holder.label: holder for holder in holders},
            value=[],
            inline=False,
        )

    def __panel__(self) -> Viewable:
        return self.boxes

    @property
    def names(self) -> list[str]:
        """The models to switch off, each name once."""
        return list(dict.fromkeys(name for holder in self.boxes.value for name in holder.names))


def _read(detail: Mapping[str, Any], name: str, type_: type[Any]) -> list[Any]:
    return convert(detail.get(name, []), list[type_])  # type: ignore[valid-type]
