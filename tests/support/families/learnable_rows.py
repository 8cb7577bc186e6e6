"""Rows that say by their words which outcome is right, so that a fine-tune learns them at once.

Each batch has words of its own: a model that learned one batch knows nothing of another, so that a
model continued on the next has something to gain, and its gate can pass.
"""

from __future__ import annotations

from typing import Any

DECISION = {
    "id": "team",
    "question": "Which team should own this?",
    "outcomes": {"billing": "money", "shipping": "parcels"},
}
#: By batch, words that mean billing and words that mean shipping.
WORDS = (
    (("invoice", "refund", "payment"), ("parcel", "courier", "doorstep")),
    (("surcharge", "debit", "voucher"), ("pallet", "customs", "driver")),
    (("overdraft", "cashback", "tariff"), ("container", "postcode", "van")),
)


def learnable_rows(batch: int = 0, n_rows: int = 160) -> list[dict[str, Any]]:
    """Rows of a batch, the two outcomes by turns, every context another."""
    rows = []
    for number in range(n_rows):
        is_shipping = number % 2
        words = WORDS[batch][is_shipping]
        first, second = words[number % 3], words[(number // 3) % 3]
        rows.append(
            {
                "context": f"Case {batch}{number:03d}: the {first} and the {second} are wrong.",
                "decisions": [DECISION],
                "targets": {"team": ("billing", "shipping")[is_shipping]},
            }
        )
    return rows


def one_request(batch: int = 0, **fields: Any) -> dict[str, Any]:
    """A decide request about billing in the words of a batch."""
    first, second, _ = WORDS[batch][0]
    context = f"Case 999: the {first} and the {second} are wrong."
    return {"context": context, "decisions": [DECISION], **fields}
