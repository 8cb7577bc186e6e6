"""The sizes of a base model, which its weights, network and graph share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: A gate of similarity is 1 with this more or less.
GATE_SPAN = 2.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the encoder and of the set-attention layer."""

    width: int = 384
    n_layers: int = 6
    n_heads: int = 12
    feed_forward: int = 1536
    set_heads: int = 6
    set_feed_forward: int = 768
    vocabulary: int = 30_522
    n_positions: int = 512
    n_roles: int = 5
    layer_norm_eps: float = 1e-12
    #: Whether what an outcome's marker has read turns its similarity down, off or round.
    is_gated: bool = False
    #: In how many of the lowest layers a question and its outcomes do not see the context.
    apart: int = 0

    @classmethod
    def of(cls, names: Iterable[str], apart: int = 0) -> Shape:
        """Return the shape of the model whose stored weights have these names."""
        return cls(is_gated="similarity_gate.weight" in names, apart=apart)
