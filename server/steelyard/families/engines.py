"""What loads tuned models, as the store of lineage needs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from steelyard.families.lineage import FamilyModel
from steelyard.families.wire import LoadState


class Engines(Protocol):
    """What loads tuned models in a process.

    Safe to use from several threads; but for ``ensure``, which is for the event loop, no method
    waits for a model.
    """

    def states(self) -> Mapping[str, LoadState]:
        """Return what is held, by adapter; a model that is left out is unloaded."""
        ...

    def warm_room(self) -> Mapping[str, int]:
        """Return how many more models can be kept warm, by base model; no bound where left out."""
        ...

    def load(self, model: FamilyModel, artifact_sha256: str) -> None:
        """Begin to load a model and probe it; nothing when it is loaded or being loaded."""
        ...

    async def ensure(self, model: FamilyModel, artifact_sha256: str, wait_s: float) -> None:
        """Load a model unless it is loaded, and wait until it has answered a probe."""
        ...

    def pin(self, adapters: Collection[str]) -> None:
        """Set which models are kept warm: these stay loaded, whatever else is called."""
        ...

    def forget(self, adapter: str) -> None:
        """Release a model that no call names any more; calls that it answers may end."""
        ...
