"""Asking a connected base model about a fine-tune's rows, each once, before the trainer starts.

Every answer is on the disk before the next look, in ``base.jsonl.partial`` of the fine-tune's
folder, which becomes ``base.jsonl`` when it is whole: after a crash only missing rows are asked.
The evaluation rows come first, for without an answer to each of them nothing can be judged; a
training row that the model cannot answer is trained on without it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import msgspec

from steelyard.asking.window import RowResult, RowWindow
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.durable import flush
from steelyard.errors import EngineUnavailableError, NotMeasurableError, SteelyardError
from steelyard.patience import Patience
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.answers import UnusableAnswerError
from steelyard.serving.connected.breaker import RemoteFailureError, SilentServerError
from steelyard.serving.registry import HostedModel
from steelyard.trainer.answers import key_of, read_answers
from steelyard.trainer.reading import read_rows
from steelyard.trainer.task import ANSWERS, ROWS, BaseAnswer, Progress
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.methods import Method

#: Requests that are queued at a time; the model's own ``concurrency`` bounds how many run.
_AT_ONCE = 32
_LONGEST_PAUSE_S = 10.0
#: How often one request is asked whose answer cannot be used.
_ROW_ATTEMPTS = 2

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, eq=False)
class _Question:
    """Decisions of one context that are asked together."""

    request: RenderedRequest
    is_judged: bool
    n_refused: int = 0


class Asking:
    """The rows of one fine-tune, being asked."""

    def __init__(self, folder: Path, method: Method, base: HostedModel) -> None:
        self.base = base
        self._path = folder / ANSWERS
        self._partial = folder / f"{ANSWERS}.partial"
        known, n_bytes = read_answers(self._partial)
        if self._partial.exists():
            os.truncate(self._partial, n_bytes)
        rows = read_rows(folder / ROWS, method)
        judged = [(row.context, row.rendered) for row in rows.evaluation]
        trained = [(row.context, row.decision) for row in rows.training]
        questions = [*_questions(judged, is_judged=True), *_questions(trained, is_judged=False)]
        self._n_all = len(questions)
        left = [question for question in questions if not _is_known(question, known)]
        self._n_done = self._n_all - len(left)
        self._asked = RowWindow(
            left, lambda question: self.base.queue.submit(question.request), _AT_ONCE
        )
        self._patience = Patience()

    @property
    def progress(self) -> Progress:
        """How many contexts of how many were asked."""
        message = f"Asking {self.base.name} about the rows."
        return Progress(
            phase="features", step=self._n_done, steps=self._n_all or 1, message=message
        )

    def look(self) -> bool:
        """Ask for a moment; return whether every row was asked, and the file is whole."""
        if self._asked:
            self._take(self._asked.look())
        if self._asked:
            return False
        self._partial.touch()
        self._partial.replace(self._path)
        flush(self._path.parent)
        return True

    def close(self) -> None:
        """Cancel running requests."""
        self._asked.close()

    def _take(self, ended: Sequence[RowResult[_Question, list[ScoredDecision]]]) -> None:
        """Store the answers; rows without one are asked again."""
        answers: list[BaseAnswer] = []
        refusals: list[SteelyardError] = []
        failure: EngineUnavailableError | None = None
        self._n_done += len(ended)
        for answer in ended:
            question = answer.row
            try:
                answers += _answers_of(question, _result_of(answer.future, self.base.name))
                continue
            except EngineUnavailableError as error:
                failure = error
            question.n_refused += _is_about_the_row(failure)
            if question.n_refused < _ROW_ATTEMPTS:
                self._n_done -= 1
                self._asked.again(question)
            elif question.is_judged:
                refusals.append(_unjudged(self.base.name, question, failure))
            else:
                answers += _answers_of(question, None)
        self._keep(answers)
        if refusals:
            raise refusals[0]
        if failure is not None:
            self._pause(failure)

    def _keep(self, answers: list[BaseAnswer]) -> None:
        if not answers:
            return
        with self._partial.open("ab") as file:
            file.write(b"".join(_encode(answer) + b"\n" for answer in answers))
            file.flush()
            os.fsync(file.fileno())
        self._patience.succeeded()

    def _pause(self, failure: EngineUnavailableError) -> None:
        """Wait before asking on; end the job where nothing was answered for long."""
        self._patience.failed()
        if self._patience.is_over:
            raise SilentServerError(failure.message) from failure
        self._asked.pause(min(failure.retry_after_s or 1.0, _LONGEST_PAUSE_S))


def _questions(
    decisions_by_context: Iterable[tuple[str, RenderedDecision]], *, is_judged: bool
) -> list[_Question]:
    """Put decisions of one context together, each once, as many as a request may have."""
    by_context: dict[str, dict[RenderedDecision, None]] = defaultdict(dict)
    for context, decision in decisions_by_context:
        by_context[context][decision] = None
    questions = []
    for context, decisions in by_context.items():
        every = tuple(decisions)
        questions += [
            _Question(RenderedRequest(context, every[start : start + MAX_DECISIONS]), is_judged)
            for start in range(0, len(every), MAX_DECISIONS)
        ]
    return questions


def _is_known(question: _Question, known: dict[str, list[float] | None]) -> bool:
    context = question.request.context
    return all(key_of(context, decision) in known for decision in question.request.decisions)


def _answers_of(question: _Question, scored: list[ScoredDecision] | None) -> list[BaseAnswer]:
    request = question.request
    logits = (
        [None] * len(request.decisions)
        if scored is None
        else [decision.logits.tolist() for decision in scored]
    )
    return [
        BaseAnswer(key=key_of(request.context, decision), logits=values)
        for decision, values in zip(request.decisions, logits, strict=True)
    ]


def _result_of(future: Future[list[ScoredDecision]], name: str) -> list[ScoredDecision]:
    try:
        return future.result()
    except RuntimeError as error:
        if isinstance(error, SteelyardError):
            raise
        # Its connections were closed, as happens when it is declared anew.
        raise EngineUnavailableError(f"The connection to {name} was closed.") from error


def _is_about_the_row(error: EngineUnavailableError) -> bool:
    """Whether an error concerns the row, and not the server."""
    if isinstance(error, RemoteFailureError):
        return not error.is_servers and not error.is_passing
    return isinstance(error, UnusableAnswerError)


def _unjudged(name: str, question: _Question, error: EngineUnavailableError) -> NotMeasurableError:
    return NotMeasurableError(
        f"{name} gave no usable answer to an evaluation row that asks "
        f"{question.request.decisions[0].question[:80]!r}: {error.message} Check the model with "
        f"'steelyard model check {name}', or leave the row out of the dataset."
    )
