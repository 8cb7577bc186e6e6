"""The playground's decide call on the wire: decide's, with fewer decisions."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from steelyard.decisions.wire import DecideRequest, DecisionInput
from steelyard.wire.limits import MAX_PLAYGROUND_DECISIONS


class PlaygroundRequest(DecideRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One context and at most 8 decisions, for a base model; nothing is stored."""

    decisions: Annotated[
        list[DecisionInput], Meta(min_length=1, max_length=MAX_PLAYGROUND_DECISIONS)
    ]
