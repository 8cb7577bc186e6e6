"""References of watched models: predictions of an evaluation, or stored answers of a window."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import msgspec
from sqlalchemy import Row

from steelyard.alarms import readings
from steelyard.alarms import store as rows
from steelyard.alarms.contexts import MOST_REFERENCE, text_of
from steelyard.alarms.watched import Key, Sample, operation_values, slow_ms_of
from steelyard.alarms.wire import AlarmReference
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.datasets.wire import Side
from steelyard.decision_log.store import feedback_of_answers
from steelyard.errors import NotFoundError, SteelyardError
from steelyard.evaluations.predictions import read_table
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decoder_of

_log = logging.getLogger(__name__)

#: Scored decisions of an evaluation, and answers of a window, that are read at most.
MOST_PREDICTIONS, MOST_ANSWERS = 20_000, 5_000
#: Rows of a dataset among which those of a reference's contexts are chosen evenly.
MOST_ROWS = 20_000
_AT_ONCE = 500
_COLUMNS = ("decision_id", "outcomes", "probabilities", "labels")


class _LoggedRequest(msgspec.Struct):
    context: Any


read_context = decoder_of(_LoggedRequest).decode


class References:
    """Reads the references of watched models; it blocks."""

    def __init__(self, state: State, predictions: FrameStore, datasets: DatasetService) -> None:
        self._state = state
        self._predictions = predictions
        self._datasets = datasets

    def of_evaluation(
        self, key: Key, evaluation_id: str | None
    ) -> tuple[Sample, AlarmReference] | None:
        """Return an evaluation's sample, or that of the fine-tune's own evaluation; ``None`` without one."""
        account_id, model, version = key
        row = self._state.read_now(
            lambda connection: rows.find_reference(
                connection, account_id, label=version or model, evaluation_id=evaluation_id
            )
        )
        if row is None:
            return None
        try:
            sample = self._read_predictions(row)
        except SteelyardError as error:
            # Its dataset may be gone, and its files with it.
            _log.warning("The reference %s cannot be read: %s", row.id, error.message)
            return None
        n = sum(len(values) for values in sample.answers.values())
        return sample, AlarmReference(kind="evaluation", evaluation_id=row.id, n=n)

    def of_window(
        self, key: Key, since: float, until: float, *, limit: int = MOST_ANSWERS
    ) -> tuple[Sample, AlarmReference]:
        """Return a sample of a model's stored answers in a window, the newest where there are many."""
        account_id, model, version = key
        answers = self._state.read_now(
            lambda connection: rows.window_answers(
                connection, account_id, model, version, since=since, until=until, limit=limit
            )
        )
        sample = Sample()
        sample.slow_ms = slow_ms_of([row.total_ms for row in answers if row.total_ms is not None])
        for start in range(0, len(answers), _AT_ONCE):
            self._add_answers(sample, answers[start : start + _AT_ONCE])
        begun = min((row.created_at for row in answers), default=until)
        failed = self._state.read_now(
            lambda connection: rows.failed_operations(connection, begun, until)
        )
        sample.failed = sum(n for *of, n in failed if of == [account_id, model])
        sample.texts = self._texts([row.id for row in answers[:MOST_REFERENCE]])
        return sample, AlarmReference(kind="window", since=begun, until=until, n=len(answers))

    def texts_of(self, key: Key, of: AlarmReference) -> list[str]:
        """Return the contexts of a reference as text; none where they are gone."""
        account_id, model, version = key
        if of.kind == "window":
            since, until = of.since or 0.0, of.until or 0.0
            answers = self._state.read_now(
                lambda connection: rows.window_answers(
                    connection,
                    account_id,
                    model,
                    version,
                    since=since,
                    until=until,
                    limit=MOST_REFERENCE,
                )
            )
            return self._texts([row.id for row in answers])
        row = self._state.read_now(
            lambda connection: rows.find_reference(
                connection, account_id, label="", evaluation_id=of.evaluation_id
            )
        )
        try:
            return [] if row is None else self._contexts(row)
        except NotFoundError:
            return []

    def _add_answers(self, sample: Sample, answers: Any) -> None:
        ids = [row.id for row in answers]
        observed = self._state.read_now(lambda connection: feedback_of_answers(connection, ids))
        for row in answers:
            results = readings.read_results(row.results)
            values = operation_values(results, row.total_ms, sample.slow_ms)
            sample.operations.append(values)
            for decision, result in results.items():
                sample.answers.setdefault(decision, []).append(readings.answer_values(result))
                outcome = observed.get(row.id, {}).get(decision)
                if outcome is not None:
                    observed_values = readings.feedback_values(result, outcome)
                    sample.feedback.setdefault(decision, []).append(observed_values)

    def _texts(self, ids: list[str]) -> list[str]:
        texts = []
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            requests = self._state.read_now(lambda connection: rows.requests_of(connection, part))  # noqa: B023
            texts += [
                text_of(read_context(requests[id_]).context) for id_ in part if id_ in requests
            ]
        return texts

    def _read_predictions(self, row: Row[Any]) -> Sample:
        table = read_table(self._predictions, [row.predictions_sha256], _COLUMNS)
        columns = table.slice(0, MOST_PREDICTIONS).to_pydict()
        sample = Sample()
        for decision, *scored in zip(*(columns[name] for name in _COLUMNS), strict=True):
            alone, known = readings.predicted_values(*scored, has_targets=row.method == "sft")
            sample.answers.setdefault(decision, []).append(alone)
            if known is not None:
                sample.feedback.setdefault(decision, []).append(known)
        sample.texts = self._contexts(row)
        return sample

    def _contexts(self, row: Row[Any]) -> list[str]:
        """Return contexts of the training rows beside an evaluation, or of its own without any.

        Rows stand in the order in which they were sent, by topic perhaps: they are chosen evenly.
        """
        caller = Caller(row.account_id, None, "full", "")
        at = asyncio.run(
            self._datasets.dataset_at(
                caller, row.dataset_id, row.dataset_version, is_new_work=False
            )
        )
        side: Side = "training" if at.split.training else "evaluation"
        n_rows = min(at.split.training or at.split.evaluation, MOST_ROWS)
        step = max(1, n_rows // MOST_REFERENCE)
        chosen = itertools.islice(self._datasets.side_rows(at, side), 0, n_rows, step)
        return [
            text_of(labelled_row.context)
            for labelled_row in itertools.islice(chosen, MOST_REFERENCE)
        ]
