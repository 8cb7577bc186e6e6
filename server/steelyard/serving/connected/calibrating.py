"""Temperatures for a connected model, fitted on a dataset's training rows and judged on the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from steelyard.asking.rows import ask_each
from steelyard.asking.window import RowResult
from steelyard.calibration.temperature import TemperatureTable, fit_temperature_table
from steelyard.decisions.rendering import RenderedRequest, render_context, render_decision
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.errors import InvalidRequestError, SteelyardError
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.checking import Submit

#: Decisions below which nothing is fitted.
MIN_DECISIONS = 20
#: Fewest decisions of a kind and number of outcomes for a temperature of its own.
_OF_A_BUCKET = 50
#: A bound that no bucket reaches: one temperature for each kind.
_NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class LabelledAnswers:
    """Decisions with their labels, as a model answered them."""

    kinds: list[str]
    logits: list[NDArray[np.float64]]
    targets: list[NDArray[np.float64]]
    #: The scored decisions themselves, and the number of the row that each is of.
    scored: list[ScoredDecision] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def losses(self, table: TemperatureTable) -> list[float]:
        """Return each decision's loss in nats under temperatures."""
        return [
            -float(target @ table.log_probabilities(logits, kind))
            for kind, logits, target in zip(self.kinds, self.logits, self.targets, strict=True)
        ]

    def log_loss(self, table: TemperatureTable) -> float:
        """Return the mean loss in nats under temperatures."""
        return float(np.mean(self.losses(table)))


class CalibrationReport(Struct, frozen=True, kw_only=True):
    """The rows of a calibration, and the held-out log loss in nats before and after."""

    fitted_on: int
    held_out: int
    #: Messages of rows that failed, and how many had each.
    failures: dict[str, int]
    log_loss_before: float
    log_loss_after: float
    temperatures: dict[str, dict[str, float]]

    @property
    def is_better(self) -> bool:
        """Whether it lowers the held-out log loss."""
        return self.log_loss_after < self.log_loss_before


def ask_rows(
    submit: Submit,
    rows: Sequence[Mapping[str, Any]],
    timeout_s: float,
    progress: Callable[[int], None] = lambda _: None,
    *,
    at_once: int = 8,
) -> tuple[LabelledAnswers, Counter[str]]:
    """Ask a model every labelled decision of rows; return the scored ones, and counted failures."""
    scored = LabelledAnswers([], [], [])
    failures: Counter[str] = Counter()
    requests = [
        read_request({"context": row["context"], "decisions": row["decisions"]}) for row in rows
    ]

    def take(answer: RowResult[ValidRequest, list[ScoredDecision]]) -> list[ScoredDecision] | str:
        try:
            return answer.result()
        except SteelyardError as error:
            return error.message
        except TimeoutError:
            return f"No answer within {timeout_s:g} s."

    answered = ask_each(
        requests,
        lambda request: submit(_rendered(request), timeout_s),
        take,
        at_once,
        timeout_s=timeout_s,
        progress=progress,
    )
    for number, (row, request, answers) in enumerate(zip(rows, requests, answered, strict=True)):
        if isinstance(answers, str):
            failures[answers] += 1
            continue
        for decision, answer in zip(request.decisions, answers, strict=True):
            targets = (row.get("targets") or {}).get(decision.id)
            if targets is not None:
                target = [float(targets.get(name, 0.0)) for name in decision.outcomes.names]
                scored.kinds.append(decision.kind)
                scored.logits.append(np.asarray(answer.logits, dtype=np.float64))
                scored.targets.append(np.array(target))
                scored.scored.append(answer)
                scored.rows.append(number)
    return scored, failures


def _rendered(request: ValidRequest) -> RenderedRequest:
    return RenderedRequest(
        render_context(request.context),
        tuple(render_decision(decision) for decision in request.decisions),
    )


def _why(failures: Counter[str]) -> str:
    if not failures:
        return "; add rows."
    return f". {failures.total()} rows failed, the first of them so: {next(iter(failures))}"


def calibrate(
    fitted: LabelledAnswers, held_out: LabelledAnswers, failures: Counter[str]
) -> CalibrationReport:
    """Fit a temperature for each kind, and for each number of outcomes where that is better still."""
    if min(len(fitted.kinds), len(held_out.kinds)) < MIN_DECISIONS:
        raise InvalidRequestError(
            f"A calibration needs {MIN_DECISIONS} labelled decisions on each side of a dataset, and "
            f"there are {len(fitted.kinds)} for training and {len(held_out.kinds)} for evaluation"
            + _why(failures)
        )
    tables = [
        fit_temperature_table(
            fitted.kinds, fitted.logits, fitted.targets, min_decisions=min_decisions
        )
        for min_decisions in (_NEVER, _OF_A_BUCKET)
    ]
    best = min(tables, key=held_out.log_loss)
    return CalibrationReport(
        fitted_on=len(fitted.kinds),
        held_out=len(held_out.kinds),
        failures=failures,
        log_loss_before=held_out.log_loss(TemperatureTable()),
        log_loss_after=held_out.log_loss(best),
        temperatures=best.to_dict()["temperatures"],
    )
