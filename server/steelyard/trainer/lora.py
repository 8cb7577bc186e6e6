"""LoRA: adapting the encoder itself to a dataset's rows, before heads are fitted on it.

This module can be imported without torch; the loop is ``steelyard.trainer.adapting``.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Literal

from steelyard.errors import TrainingUnavailableError
from steelyard.trainer.progress import OnStep
from steelyard.trainer.rows import TuningRow

#: Rows of a step.
TUNING_BATCH = 16
#: Peak learning rate when a request names none. Rank 8, two passes over 300 rows of TREC: the log
#: loss of a logistic regression on the context's vector, on 500 other rows, falls from 0.54 to 0.34
#: at 3e-4, to 0.21 at 1e-3 and to 0.18 at 3e-3 (six passes at 3e-3: 0.19).
TUNING_LEARNING_RATE = 3e-3
MAX_RANK = 16
#: Packages that adapting needs, by the names they are imported under.
NEEDED = ("torch", "peft", "onnx")


def lacking_for_lora() -> str | None:
    """Return the packages that training LoRA lacks here, without importing them."""
    missing = [name for name in NEEDED if util.find_spec(name) is None]
    if not missing:
        return None
    return (
        f"LoRA needs {', '.join(missing)}, not installed here: pip install 'steelyard[train]' "
        "where this server runs, or leave lora_rank out to train heads alone."
    )


def train_lora(
    rows: Sequence[TuningRow],
    *,
    base_folder: Path | None,
    parent: Path | None,
    rank: int,
    steps: int,
    learning_rate: float,
    seed: int,
    method: Literal["sft", "reward"],
    folder: Path,
    on_step: OnStep,
    batch: int = TUNING_BATCH,
    heldout: Sequence[TuningRow] = (),
    threads: int = 0,
) -> Path:
    """Train an adapter on the base's encoder and write it, checked against the trained model.

    Raise ``FloatingPointError`` when the loss is not finite: the learning rate is too high.
    """
    lacking = lacking_for_lora()
    if lacking is not None:
        raise TrainingUnavailableError(lacking)
    if not 1 <= rank <= MAX_RANK:
        raise ValueError(f"The LoRA rank is {rank}; it must be from 1 to {MAX_RANK}.")
    # Loaded here: torch and peft take seconds, and serving machines do not have them.
    from steelyard.trainer.adapting import Plan, adapt  # noqa: PLC0415

    plan = Plan(
        rank=rank, steps=steps, learning_rate=learning_rate, seed=seed, method=method, batch=batch
    )
    return adapt(
        rows,
        plan,
        base_folder=base_folder,
        parent=parent,
        folder=folder,
        on_step=on_step,
        heldout=heldout or rows,
        threads=threads,
    )
