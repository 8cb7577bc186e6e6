"""The effect of temperatures on a task that they were not fitted on: each task left out in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steelyard.calibration.metrics import accuracy, ece, log_loss, pad_rows
from steelyard.calibration.temperature import TemperatureTable, fit_temperature_table
from steelyard_base_recipe.calibrate import MIN_DECISIONS, CalibrationSet, Logits


@dataclass(frozen=True, slots=True)
class LeftOutTask:
    """The decisions of one kind of a task, with temperatures fitted on all other tasks.

    ``uniform`` is the log loss in nats of saying nothing: the same probability for each outcome.
    """

    task: str
    kind: str
    n: int
    accuracy: float
    log_loss: float
    uniform: float
    ece: float


def left_out(chosen: CalibrationSet, logits: Logits) -> Iterator[LeftOutTask]:
    """Yield each kind of each task, measured with temperatures that did not see the task.

    A kind that no other task has is left at a temperature of 1.

    Raises
    ------
    ValueError
        When there is one task alone, or there are not as many logits as decisions.
    """
    tasks = dict.fromkeys(chosen.tasks)
    if len(tasks) < 2 or len(logits) != len(chosen.tasks):
        msg = (
            f"There are {len(tasks)} tasks, and {len(logits)} logits for {len(chosen.tasks)} "
            "decisions; give two tasks or more, and the logits of each decision."
        )
        raise ValueError(msg)
    for task in tasks:
        others = [i for i, name in enumerate(chosen.tasks) if name != task]
        table = fit_temperature_table(
            [chosen.kinds[i] for i in others],
            [logits[i] for i in others],
            [chosen.targets[i] for i in others],
            min_decisions=MIN_DECISIONS,
        )
        mine = [i for i, name in enumerate(chosen.tasks) if name == task]
        for kind in dict.fromkeys(chosen.kinds[i] for i in mine):
            yield _measured(
                task, kind, [i for i in mine if chosen.kinds[i] == kind], table, chosen, logits
            )


def _measured(
    task: str,
    kind: str,
    places: list[int],
    table: TemperatureTable,
    chosen: CalibrationSet,
    logits: Logits,
) -> LeftOutTask:
    probabilities = pad_rows([table.probabilities(logits[i], kind) for i in places])
    targets = pad_rows([chosen.targets[i] for i in places])
    return LeftOutTask(
        task=task,
        kind=kind,
        n=len(places),
        accuracy=accuracy(probabilities, targets),
        log_loss=log_loss(probabilities, targets),
        uniform=float(np.mean([np.log(len(chosen.targets[i])) for i in places])),
        ece=ece(probabilities, targets),
    )
