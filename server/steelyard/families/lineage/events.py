"""Effects of a lineage change on the rest of the server, as values.

The store that makes the change durable posts the money and stores the events in the same transaction, and
then does the rest, which may be done again after a crash.
"""

from __future__ import annotations

from msgspec import Struct

from steelyard.families.fine_tune_wire import JobEvent


class Hold(Struct, frozen=True, tag=True):
    """Hold money, in nano-USD, under a reference that is used once."""

    reference: str
    reserved_nano: int


class Settle(Struct, frozen=True, tag=True):
    """Charge a part of the hold under a reference, in nano-USD, and release the rest."""

    reference: str
    reserved_nano: int
    amount_nano: int


class QueueJob(Struct, frozen=True, tag=True):
    """Put a fine-tune in the queue of trainers."""

    job_id: str


class CancelFineTune(Struct, frozen=True, tag=True):
    """Take a fine-tune out of the queue, or stop its trainer."""

    job_id: str


class CancelEvaluation(Struct, frozen=True, tag=True):
    """Cancel an evaluation."""

    evaluation_id: str


class AddEvent(Struct, frozen=True, tag=True):
    """Add an event to a fine-tune."""

    job_id: str
    event: JobEvent


class LoadModel(Struct, frozen=True, tag=True):
    """Load a model and probe it."""

    adapter: str


class UnloadModel(Struct, frozen=True, tag=True):
    """Unload a model from its engine: no call names it any more."""

    adapter: str


class DropModel(Struct, frozen=True, tag=True):
    """Unload a model wherever it is loaded and remove its files: it is gone for good."""

    adapter: str


Effect = (
    Hold
    | Settle
    | QueueJob
    | CancelFineTune
    | CancelEvaluation
    | AddEvent
    | LoadModel
    | UnloadModel
    | DropModel
)
