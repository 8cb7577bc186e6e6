"""Tuning a wording: the original is measured, rounds search, and one test on unseen rows proves.

The durable part is the search after each round: a run that is taken up again repeats at most the round,
or the test, in which its process died. Both are deterministic but for the text of a chat model, and the
charge is made in the transaction that ends the job.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import msgspec
import numpy as np
from sqlalchemy import Connection, Row, Table

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.decisions.kinds import Decision
from steelyard.evaluations.models import EvaluatedModels
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import Run, TableWork
from steelyard.prompt_tuning import reading
from steelyard.prompt_tuning import store as rows
from steelyard.prompt_tuning.candidates import Candidates
from steelyard.prompt_tuning.label_issues import find_label_issues
from steelyard.prompt_tuning.proof import losses_of, noise_of, prove, shares_of
from steelyard.prompt_tuning.scoring import WordingScorer
from steelyard.prompt_tuning.search_state import Search, decode_search
from steelyard.prompt_tuning.searching import Scores, SearchState, run_round
from steelyard.prompt_tuning.tables import prompt_tunings
from steelyard.prompt_tuning.telling_words import TellingWords
from steelyard.prompt_tuning.wire import LabelIssue, TuningResult
from steelyard.prompt_tuning.wording import Wording, as_sent, changes_between, wording_of
from steelyard.prompt_tuning.writing import WordingWriter, WrongRow
from steelyard.storage import State

#: Rows that a writer is shown.
SHOWN_ROWS = 12
#: Name of this kind of job.
PROMPT_TUNING = "prompt_tuning"
_NO_IMPROVEMENT = (
    "The search found no wording that surely loses less than the original on the validation rows."
)


@dataclass(eq=False, slots=True)
class PromptTuningRuns(TableWork):
    """Prompt tuning as a kind of job."""

    name: ClassVar[str] = PROMPT_TUNING
    table: ClassVar[Table] = prompt_tunings
    move = staticmethod(rows.JOBS.move)

    state: State
    datasets: DatasetService
    models: EvaluatedModels
    _: KW_ONLY
    find_writer: Callable[[], WordingWriter | None] = lambda: None
    now: Callable[[], float] = time.time

    def open(self, job: PendingJob) -> PromptTuningRun:
        """Return the run of a job."""
        return PromptTuningRun(job, self)

    def sweep(self) -> None:
        """Do nothing: a job has no files."""


@dataclass(frozen=True, slots=True)
class _Tuning:
    """The work of a job."""

    decision: Decision
    sent: dict[str, Any]
    original: Wording
    training: reading.AskedRows
    validation: reading.AskedRows
    evaluation: reading.AskedRows
    rows_left_out: int
    candidates: Candidates
    writer: WordingWriter | None
    scorer: WordingScorer
    closing: ExitStack


class PromptTuningRun(Run):
    """A prompt-tuning job that runs here."""

    def __init__(self, job: PendingJob, work: PromptTuningRuns) -> None:
        super().__init__(job)
        self._work = work
        self._tuning: _Tuning | None = None

    def advance(self) -> bool:
        """Measure the original, search one round more, or test the best wording and end the job."""
        row = self._work.find(self.job)
        try:
            tuning = self._tuning = self._tuning or self._open(row)
            search = decode_search(row.search) if row.search else None
            if search is None:
                self._save(_measure(tuning))
            elif not search.is_over(row.effort):
                score = tuning.scorer.on(tuning.validation)
                targets = tuning.validation.targets
                write = partial(_write, tuning)
                after = run_round(search.state, tuning.candidates, targets, score, write=write)
                self._save(msgspec.structs.replace(search, state=after))
            else:
                self._finish(row, _test(tuning, search))
                self.close()
                return False
        except BaseException:
            self.close()
            raise
        return True

    def close(self) -> None:
        """Release the model."""
        tuning, self._tuning = self._tuning, None
        if tuning is not None:
            tuning.closing.close()

    def _open(self, row: Row[Any]) -> _Tuning:
        with ExitStack() as closing:
            model = closing.enter_context(self._work.models.open(row.account_id, row.model_id))
            if model.evaluation_key != row.model_sha256:
                raise errors.ModelChangedError(
                    f"The model {row.model} is another one than when the tuning was asked for; "
                    "start a new one."
                )
            sent = msgspec.json.decode(row.asked)
            decision = reading.read_decision(sent)
            caller = Caller(row.account_id, None, "full", "worker")
            at = asyncio.run(
                self._work.datasets.dataset_at(
                    caller, row.dataset_id, row.dataset_version, is_new_work=False
                )
            )
            side_rows = self._work.datasets.side_rows
            training, n_otherwise = reading.rows_asking(side_rows(at, "training"), decision)
            evaluation, further = reading.rows_asking(side_rows(at, "evaluation"), decision)
            learnt, validation = reading.learn_and_validate(training)
            if not len(learnt) or not len(validation) or not len(evaluation):
                raise errors.UnbalancedSplitError(
                    "The rows that ask the decision have too few different contexts; add rows."
                )
            original = wording_of(decision)
            words = TellingWords(learnt.contexts, learnt.labels, len(decision.outcomes.names))
            return _Tuning(
                decision=decision,
                sent=sent,
                original=original,
                training=training,
                validation=validation,
                evaluation=evaluation.sample(reading.TEST_ROWS),
                rows_left_out=n_otherwise + further,
                candidates=Candidates(decision, original, words),
                writer=self._work.find_writer(),
                scorer=WordingScorer(model, decision, self.check, row.account_id),
                closing=closing.pop_all(),
            )

    def _save(self, search: Search) -> None:
        encoded, at = msgspec.json.encode(search), self._work.now()
        self._work.write(
            lambda connection: rows.JOBS.save(connection, self.job, at=at, search=encoded)
        )

    def _finish(self, row: Row[Any], result: TuningResult) -> None:
        def end(connection: Connection) -> bool:
            is_charged = result.verdict == "improved" or rows.is_rerun(connection, row)
            return rows.JOBS.finish(
                connection,
                self.job,
                at=self._work.now(),
                is_charged=is_charged,
                result=msgspec.json.encode(result),
            )

        self._work.write(end)


def _write(tuning: _Tuning, best: Wording, scores: Scores) -> list[Wording]:
    """Return the writer's wordings for the rows with the highest loss, where there is a writer."""
    if tuning.writer is None:
        return []
    names, rows_ = tuning.decision.outcomes.names, tuning.validation
    worst = np.argsort(-np.nan_to_num(scores.losses), kind="stable")[:SHOWN_ROWS].tolist()
    wrong = [
        WrongRow(
            rows_.contexts[place],
            names[int(rows_.targets[place].argmax())],
            names[int(scores.probabilities[place].argmax())],
        )
        for place in worst
    ]
    return tuning.writer.write(tuning.decision, best, wrong)


def _measure(tuning: _Tuning) -> Search:
    """Return the search at its start: the loss of the original, and its spread by chance."""
    rows_ = tuning.validation
    scores = tuning.scorer.on(rows_)([tuning.original], np.arange(len(rows_)))[0]
    if not np.isfinite(scores.losses).all():
        raise _too_long()
    loss = float(scores.losses.mean())
    return Search(
        original_loss=loss,
        noise_band=noise_of(scores.losses, rows_.context_places),
        state=SearchState(best=tuning.original, best_loss=loss),
    )


def _too_long() -> errors.ContextTooLongError:
    return errors.ContextTooLongError(
        "Some rows are longer than the model reads with the decision; shorten their contexts."
    )


def _test(tuning: _Tuning, search: Search) -> TuningResult:
    """Return the gain of the best wording on evaluation rows, and the labels that look wrong.

    Where the search found none, the original is tested alone: its gain is 0.
    """
    best, names = search.state.best, tuning.decision.outcomes.names
    is_reworded = best != tuning.original
    unseen = tuning.evaluation
    wordings = [tuning.original, best] if is_reworded else [tuning.original]
    scored = tuning.scorer.probabilities(wordings, unseen.contexts)
    readable = np.flatnonzero(~np.isnan(scored).any(axis=(0, 2)))
    if not len(readable):
        raise _too_long()
    unseen = unseen.at(readable.tolist())
    proof = prove(
        scored[0][readable],
        scored[-1][readable],
        unseen.targets,
        unseen.context_places,
        shares_of(tuning.training.targets),
        names,
    )
    candidate = as_sent(tuning.sent, names, best) if is_reworded else None
    is_improved = proof.verdict == "improved"
    return TuningResult(
        verdict=proof.verdict,
        reasons=proof.reasons if is_reworded else [_NO_IMPROVEMENT],
        tuned=candidate if is_improved else None,
        candidate=candidate,
        changes=changes_between(tuning.decision, tuning.original, best),
        test=proof.test,
        label_issues=_label_issues(tuning, best if is_improved else tuning.original),
        original=tuning.sent,
        decision=tuning.decision.id,
        rows=len(tuning.training),
        rows_left_out=tuning.rows_left_out,
        noise_band=proof.noise_band if is_reworded else search.noise_band,
        rounds=list(search.state.rounds),
    )


def _label_issues(tuning: _Tuning, wording: Wording) -> list[LabelIssue]:
    """Return the training rows whose label contradicts a wording.

    A model that predicts no better than the shares of the labels finds no issue.
    """
    checked = tuning.training.sample(reading.CHECKED_ROWS)
    probabilities = tuning.scorer.probabilities([wording], checked.contexts)[0]
    readable = np.flatnonzero(~np.isnan(probabilities).any(axis=1)).tolist()
    probabilities, checked = probabilities[readable], checked.at(readable)
    shares = np.broadcast_to(shares_of(checked.targets), checked.targets.shape)
    if (
        losses_of(probabilities, checked.targets).mean()
        >= losses_of(shares, checked.targets).mean()
    ):
        return []
    names = tuning.decision.outcomes.names
    return find_label_issues(probabilities, checked.targets, checked.indexes, names)
