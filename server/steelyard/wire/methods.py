"""The forms of a row's right answers."""

from typing import Literal

#: With targets (``sft``), or with rewards.
Method = Literal["sft", "reward"]
