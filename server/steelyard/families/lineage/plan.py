"""The plan of a fine-tune: its rows, and their bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from steelyard.decisions.tokens import TokenCounter
from steelyard.families.fine_tune_wire import JobLineage, JobSplit, ResolvedHyperparameters
from steelyard.families.lineage.continuing import NewRows
from steelyard.families.wire import ContinueRows
from steelyard.wire.limits import ROW_LIMITS
from steelyard.wire.methods import Method

#: Returns the tokenizer of a base model, and how many tokens the model reads.
Tokenizers: TypeAlias = Callable[[str], tuple[TokenCounter, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningBounds:
    """How many training rows a fine-tune takes."""

    min_rows: int = ROW_LIMITS["fine_tune_min_rows"]
    max_rows: int = ROW_LIMITS["fine_tune_rows"]


class TuningBasis(Struct, frozen=True, kw_only=True):
    """The base and the dataset that a family trains from."""

    base: str
    is_move: bool = False  # to another base than that of the model before, of which nothing is kept
    family: str
    dataset_id: str
    method: Method
    trained_version: int | None = None
    learned: tuple[tuple[str, int], ...] = ()  # the versions that the model to start from learned
    dataset_path: tuple[str, ...] = ("body", "dataset_id")  # where a request names the dataset


class TuningPlan(Struct, frozen=True, kw_only=True):
    """The plan of a fine-tune, with nothing left open."""

    base: str
    is_move: bool = False
    dataset_id: str
    dataset_version: int
    method: Method
    hyperparameters: ResolvedHyperparameters
    split: JobSplit
    lineage: JobLineage
    rows: ContinueRows
    passes: float
    growth: NewRows

    @property
    def trained_tokens(self) -> int:
        """Tokens of the rows stepped over; the fee counts them."""
        return self.split.trained_tokens
