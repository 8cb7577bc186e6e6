"""How rows say what is right."""

from __future__ import annotations

from typing import Literal

#: With targets (``sft``), or with rewards.
Method = Literal["sft", "reward"]
