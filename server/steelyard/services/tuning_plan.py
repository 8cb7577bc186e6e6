"""What a fine-tune would train on, settled, and what bounds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from steelyard.decisions.tokens import TokenCounter
from steelyard.families.continuing import Growth
from steelyard.wire.datasets import Method
from steelyard.wire.families import ContinueRows
from steelyard.wire.fine_tuning import JobLineage, JobSplit, ResolvedHyperparameters


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningBounds:
    """How many training rows a fine-tune takes.

    Parameters
    ----------
    min_rows : int, default 20
        Of the first fine-tune of a family.
    max_rows : int, default 50,000
        Of any.
    """

    min_rows: int = 20
    max_rows: int = 50_000


class TuningPlan(Struct, frozen=True, kw_only=True):
    """What a fine-tune would train on, with nothing left open.

    Parameters
    ----------
    dataset_id, dataset_version
        The rows.
    trained_version : int or None
        The version that the family trained on last; ``None`` when it never has.
    method : {"sft", "reward"}
    hyperparameters : ResolvedHyperparameters
    split : JobSplit
    lineage : JobLineage
    rows : ContinueRows
        As an estimate tells them.
    max_questions : int
        The most decisions that a row may ask.
    passes : float
        How often the steps go over the training rows.
    growth : Growth
        What the dataset gained, counted at the plan's version.
    """

    dataset_id: str
    dataset_version: int
    trained_version: int | None
    method: Method
    hyperparameters: ResolvedHyperparameters
    split: JobSplit
    lineage: JobLineage
    rows: ContinueRows
    max_questions: int
    passes: float
    growth: Growth

    @property
    def trained_tokens(self) -> int:
        """Tokens of the rows stepped over: what the fee is counted by."""
        return self.split.trained_tokens


class Tokenizers(Protocol):
    """Gives what counts the tokens of a base model, and how many the model reads."""

    def __call__(self, base: str) -> tuple[TokenCounter, int]:
        """Give both for a base model's name."""
        ...
