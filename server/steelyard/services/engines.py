"""What loads tuned models, as whoever keeps their lines needs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from steelyard.families import line
from steelyard.wire.families import LoadState


class Engines(Protocol):
    """What loads tuned models in a process.

    Notes
    -----
    Safe to use from several threads; but for ``ensure``, which is for the event loop, no method
    waits for a model.
    """

    def states(self) -> Mapping[str, LoadState]:
        """Give what is held, by adapter; a model that is left out is unloaded."""
        ...

    def warm_room(self) -> Mapping[str, int]:
        """Give how many more models can be kept warm, by base model; no bound where left out."""
        ...

    def load(self, model: line.Model, artifact_sha256: str) -> None:
        """Begin to load a model and probe it; nothing when it is loaded or being loaded."""
        ...

    async def ensure(self, model: line.Model, artifact_sha256: str, wait_s: float) -> None:
        """Load a model unless it is loaded, and wait until it has answered a probe.

        Raises
        ------
        steelyard.errors.ModelWarmingError
            When it is not loaded after ``wait_s`` seconds; loading goes on.
        steelyard.errors.EngineUnavailableError
            When it cannot be loaded; its state is then ``failed``.
        """
        ...

    def pin(self, adapters: Collection[str]) -> None:
        """Say which models are kept warm: these stay loaded, whatever else is asked for."""
        ...

    def forget(self, adapter: str) -> None:
        """Let go of a model that no call names any more; calls that it answers may end."""
        ...
