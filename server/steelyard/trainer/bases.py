"""The base model of a fine-tune, as its program loads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steelyard.calibration.temperature import TemperatureTable
from steelyard.errors import TrainingUnavailableError
from steelyard.scoring.assets import load_base_model
from steelyard.scoring.hashing import HashingScorer
from steelyard.scoring.protocol import Scorer
from steelyard.trainer.answers import AnsweredScorer
from steelyard.trainer.task import ANSWERS, FineTuneTask, TaskBase


@dataclass(frozen=True, slots=True)
class TrainedBase:
    """The base model of a task."""

    scorer: Scorer
    temperatures: TemperatureTable
    folder: Path | None


def load_base(named: TaskBase, task: FineTuneTask, task_folder: Path) -> TrainedBase:
    """Load a base model: of another server as it answered, the test double, or one of this machine."""
    if named.is_connected:
        if task.lora_rank > 0:
            raise TrainingUnavailableError(
                f"{named.name} answers on another server and has no weights here for LoRA; leave "
                "lora_rank out."
            )
        answered = AnsweredScorer(named, task_folder / ANSWERS)
        return TrainedBase(answered, TemperatureTable(named.temperatures), None)
    if named.double is not None:
        return TrainedBase(HashingScorer(named.key, name=named.name), TemperatureTable(), None)
    folder = None if named.folder is None else Path(named.folder)
    model = load_base_model(named.engine, task.threads or None, folder)
    return TrainedBase(model.scorer, model.temperatures, folder)
