"""How far a map is: the files that are made of it so far, so that a run goes on from them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from steelyard.wire.decoding import decoder_of
from steelyard.wire.schemas import doc

#: Iterations of a layout.
ITERATIONS = 450
#: Rows whose vectors are made, and kept in a file, at a time: a second or two of one core.
BLOCK_ROWS = 256

MapPhase = Literal["embedding", "comparing", "laying_out"]


class MapProgress(Struct, frozen=True, kw_only=True):
    """Where a running map is."""

    phase: MapPhase
    step: Annotated[int, doc("Rows, or iterations, that are done.")]
    steps: Annotated[int, doc("Of so many.")]


class Made(Struct, frozen=True, kw_only=True):
    """The finished parts of a map: hashes of files of vectors, of pairs, and of the layout so far."""

    blocks: tuple[str, ...] = ()
    pairs: str | None = None
    layout: str | None = None
    iteration: int = 0

    @property
    def files(self) -> list[str]:
        """The hash of every file."""
        return [*self.blocks, *(name for name in (self.pairs, self.layout) if name is not None)]

    def n_embedded(self, points: int) -> int:
        """Return how many of the points have vectors."""
        return min(len(self.blocks) * BLOCK_ROWS, points)

    def to_wire(self, points: int) -> MapProgress:
        """Return the progress in wire form."""
        embedded = self.n_embedded(points)
        if self.pairs is not None:
            return MapProgress(phase="laying_out", step=self.iteration, steps=ITERATIONS)
        phase: MapPhase = "embedding" if embedded < points else "comparing"
        return MapProgress(phase=phase, step=embedded, steps=points)


decode_made = decoder_of(Made).decode
