"""What the families use cases need of whoever knows the rows of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steelyard.caller import Caller
from steelyard.families.continuing import Growth
from steelyard.families.fine_tuning.plan import TuningPlan
from steelyard.families.wire import (
    Hyperparameters,
)
from steelyard.wire.methods import Method


class Plans(Protocol):
    """Counts, checks and gives the rows of fine-tunes; ``tuning_rows.TuningRows`` is one."""

    async def growth(
        self,
        caller: Caller,
        *,
        dataset_id: str,
        method: Method,
        trained_version: int | None,
        version: int | None = None,
        learned: Sequence[tuple[str, int]] = (),
        counted: bool = True,
    ) -> Growth:
        """Return what a family's dataset gained since the family last trained."""
        ...

    async def plan(
        self,
        caller: Caller,
        *,
        base: str,
        family: str,
        dataset_id: str,
        version: int | None,
        trained_version: int | None,
        method: Method,
        hyperparameters: Hyperparameters | None = None,
        learned: Sequence[tuple[str, int]] = (),
    ) -> TuningPlan:
        """Settle what a fine-tune would train on, or refuse it."""
        ...
