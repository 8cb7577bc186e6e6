"""Which requests another alias answers, and whether it is right less often; pure."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

import msgspec

from steelyard.calibration.sequences import lower_evidence

#: The evidence that ends a share. It is reached by chance in at most a twentieth of shares whose two
#: versions are right equally often, however often one looks.
ENOUGH = 20.0
#: Answers of each side with feedback without which nothing is judged.
MIN_SEEN = 20

_encode = msgspec.json.Encoder(order="deterministic").encode
_ALL = 1 << 64


def is_in_share(context: Any, share_id: str, share: float) -> bool:
    """Whether a context is of a share: always the same one, in every process.

    >>> sum(is_in_share(f"ticket {number}", "nds_1", 0.1) for number in range(1_000))
    106
    """
    digest = blake2b(_encode(context), digest_size=8, key=share_id.encode()[:64]).digest()
    return int.from_bytes(digest, "big") < share * _ALL


def evidence_of_worse(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the evidence that one side is right less often: numbers of right answers, and of all."""
    if min(before[1], after[1]) < MIN_SEEN:
        return 0.0
    log = lower_evidence(after[0], after[1], before[0], before[1])
    return math.exp(min(float(log), 700.0))
