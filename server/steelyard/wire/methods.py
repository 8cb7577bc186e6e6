"""The forms of a row's right answers."""

from __future__ import annotations

from typing import Literal

#: With targets (``sft``), or with rewards.
Method = Literal["sft", "reward"]
