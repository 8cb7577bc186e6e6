"""A model's sensitivity and specificity for an outcome, by its newest evaluation."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select

from steelyard.decision_log.true_shares import KnownRates
from steelyard.evaluations.tables import evaluations
from steelyard.evaluations.wire import ConfusionMatrix
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decoder_of

#: Evaluations of a model that are looked into, the newest first.
_MOST_LOOKED = 5


class _Decision(msgspec.Struct):
    decision_id: str
    confusion: ConfusionMatrix | None = None


class _Detail(msgspec.Struct):
    decisions: list[_Decision] = []


_details = decoder_of(_Detail)


class EvaluatedRates:
    """Reads the rates of models; it blocks."""

    def __init__(self, frames: FrameStore) -> None:
        self._frames = frames

    def find(
        self, connection: Connection, account_id: str, label: str, decision: str
    ) -> KnownRates | None:
        """Return those of a decision by the newest evaluation that has it; ``None`` without one."""
        of = evaluations.c
        rows = connection.execute(
            select(of.id, of.detail_sha256)
            .where(
                of.account_id == account_id,
                of.model_label == label,
                of.status == "succeeded",
                of.detail_sha256.is_not(None),
            )
            .order_by(of.created_at.desc())
            .limit(_MOST_LOOKED)
        )
        for id_, detail_sha256 in rows.all():
            detail = _details.decode(self._frames.read(f"{detail_sha256}.json"))
            for each in detail.decisions:
                if each.decision_id == decision and each.confusion is not None:
                    return KnownRates(id_, each.confusion.outcomes, each.confusion.counts)
        return None
