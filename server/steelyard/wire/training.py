"""Reports of a running training."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

#: Where a running fine-tune is, in order.
Phase = Literal["features", "heads", "lora", "calibration", "scoring"]
#: What heads read: whatever is best; words alone; words alone where they are as right as that; words
#: alone where they are sure, and whatever is best elsewhere; and beside what is best a reader's
#: evidence, where that is better still.
HeadsKind = Literal["auto", "words", "cheapest", "ladder", "evidence"]
#: Heads that answer while the others are trained.
FirstKind = Literal["words"]


class CurvePoint(Struct, frozen=True, kw_only=True):
    """A point of the training loss: the mean over the steps it covers."""

    step: Annotated[int, Meta(description="The last step that the point covers.")]
    loss: float
    learning_rate: float
