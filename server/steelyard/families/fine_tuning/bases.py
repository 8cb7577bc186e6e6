"""How a trainer, which is a process of its own, loads the base models of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from msgspec import UnsetType

from steelyard.errors import ModelUnavailableError
from steelyard.scoring.shipped import READER
from steelyard.serving.registry import ModelRegistry
from steelyard.trainer.task import TaskBase
from steelyard.wire.training import HeadsKind

#: The engine that is a test double, and the source of a model that is one.
_DOUBLE: Final = "hashing"


@dataclass(frozen=True, slots=True)
class TrainerBases:
    """Where a trainer finds each base model."""

    models: ModelRegistry
    sources: Mapping[str, str]

    def __call__(self, name: str) -> TaskBase:
        """Return how to load the model of a name."""
        hosted = self.models.find(name)
        if hosted is None:
            raise ModelUnavailableError(
                f"The worker has no base model {name}; start it with the settings of the server."
            )
        if hosted.is_connected:
            return TaskBase(
                name=name,
                engine=hosted.engine,
                key=hosted.sha256,
                is_connected=True,
                temperatures=hosted.decide.temperatures.to_dict()["temperatures"],
            )
        source = self.sources.get(name)
        if source == _DOUBLE:
            return TaskBase(name=name, engine=hosted.engine, double=_DOUBLE, key=name)
        if source is not None:
            return TaskBase(name=name, engine=hosted.engine, folder=str(Path(source).expanduser()))
        double: Literal["hashing"] | None = _DOUBLE if hosted.engine == _DOUBLE else None
        return TaskBase(name=name, engine=hosted.engine, double=double)

    def reader_for(self, heads: HeadsKind | UnsetType) -> Path | None:
        """Return the folder of the reader that heads may read; ``None`` where they are to read none."""
        if heads != "evidence":
            return None
        if self.models.find(READER.name) is None:
            raise ModelUnavailableError(
                f"The worker has no reader {READER.name}; start it with the settings of the server."
            )
        return READER
