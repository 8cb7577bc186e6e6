"""Words alone beside a model that reads with its base: whether they are as right, and the cost of each."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from steelyard.decisions.rendering import RenderedRequest
from steelyard.evaluations.gate_wire import BeforeAfter, GateChange, GateWords
from steelyard.evaluations.measures.comparison import pair_records
from steelyard.evaluations.measures.gate_slices import compared_measure
from steelyard.proof.differences import Bootstrap
from steelyard.proof.margins import is_as_right
from steelyard.scoring.protocol import Scorer
from steelyard.trainer.reading import HeldOutDecision
from steelyard.trainer.records import records_of_group
from steelyard.trainer.task import FineTuneTask
from steelyard.wire.origins import counts

#: How much of the decisions words alone may be less right on: one in a hundred.
MARGIN = 0.01
#: Requests that each model is timed on, and seconds of one core after which no other begins.
_TIMED, _MOST_S = 32, 0.2


def compare_words(
    task: FineTuneTask,
    table: pa.Table,
    by_words: pa.Table,
    decisions: Sequence[HeldOutDecision],
    bootstrap: Bootstrap,
) -> GateWords | None:
    """Compare them on the held-out decisions whose labels count; ``None`` where there is none.

    ``table`` has the decisions as every group of models scored them, and ``by_words`` as words alone
    did, in the place of the adapted model.
    """
    is_counted = [counts(decision.by, task.judged_by) for decision in decisions]
    if not any(is_counted):
        return None
    pairing = pair_records(
        *(records_of_group(side, "adapted", task.method, is_counted) for side in (table, by_words))
    )
    pairing = pairing.counted_by(compared_measure(pairing.after))
    if not len(pairing):
        return None
    name = pairing.after.right
    low, high = pairing.range_of(name)
    [right] = pairing.paired([name]).differences([low], [high], bootstrap)
    least = -1.0 if right.low is None else right.low
    return GateWords(
        decisions=right.n,
        margin=MARGIN,
        right=GateChange(
            before=right.before,
            after=right.after,
            change=right.change,
            low=least,
            high=1.0 if right.high is None else right.high,
        ),
        as_right=is_as_right(right.change, least, margin=MARGIN, n_comparisons=1),
    )


def take_words(table: pa.Table, by_words: pa.Table) -> pa.Table:
    """Return the records of every group, those of words alone in the place of the adapted model's."""
    others = table.filter(pa.compute.not_equal(table["group"], "adapted"))
    return pa.concat_tables([by_words, others])


def time_both(reading: Scorer, words: Scorer, decisions: Sequence[HeldOutDecision]) -> BeforeAfter:
    """Return the milliseconds of one core that a decision costs either, each asked alone."""
    return BeforeAfter(before=time_alone(reading, decisions), after=time_alone(words, decisions))


def time_alone(scorer: Scorer, decisions: Sequence[HeldOutDecision]) -> float:
    """Return the milliseconds of one core that a decision costs, each asked alone."""
    requests = [
        RenderedRequest(decision.context, (decision.rendered,)) for decision in decisions[:_TIMED]
    ]
    scorer.score(requests[:1])  # what is loaded at the first use is no decision's cost
    started, n = time.process_time(), 0
    for request in requests:
        scorer.score([request])
        n += 1
        if time.process_time() - started > _MOST_S:
            break
    return (time.process_time() - started) * 1000 / n
