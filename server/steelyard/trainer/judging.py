"""The verdict on a fine-tune, on the held-out labels that count by where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from steelyard.evaluations.gate_wire import BeforeAfter, Gate, GateDeltas, GateLabels
from steelyard.evaluations.measures.gate import Verdict, judge
from steelyard.evaluations.measures.gate_rules import TOO_FEW
from steelyard.proof.differences import Bootstrap
from steelyard.trainer.reading import HeldOutDecision
from steelyard.trainer.records import records_of_group
from steelyard.trainer.task import FineTuneTask
from steelyard.wire.origins import UNKNOWN, counts


def judge_by_origin(
    task: FineTuneTask,
    table: pa.Table,
    decisions: Sequence[HeldOutDecision],
    by_text: pa.Table,
    bootstrap: Bootstrap,
) -> Verdict:
    """Judge the adapted model on the held-out decisions whose labels count.

    ``table`` has the decisions as every group of models scored them, and ``by_text`` the text
    baseline's probabilities in the place of the adapted model's.
    """
    is_counted = [counts(decision.by, task.judged_by) for decision in decisions]
    labels = _labels(decisions, is_counted, task)
    if not any(is_counted):
        verdict = nothing_to_judge(task)
        return Verdict(replace(verdict.gate, labels=labels), verdict.sentences)
    method = task.method
    verdict = judge(
        records_of_group(table, task.against, method, is_counted),
        records_of_group(table, "adapted", method, is_counted),
        against=task.against,
        is_new=[
            decision.group == "new"
            for decision, counted in zip(decisions, is_counted, strict=True)
            if counted
        ],
        judged_on=task.judged_on,
        needed=task.needed,
        bootstrap=bootstrap,
        baseline=records_of_group(by_text, "adapted", method, is_counted),
    )
    return Verdict(replace(verdict.gate, labels=labels), verdict.sentences)


def nothing_to_judge(task: FineTuneTask) -> Verdict:
    """Return the verdict where no held-out row has a label that counts."""
    gate = Gate(
        passed=False,
        against=task.against,
        reasons=[TOO_FEW],
        groups={},
        deltas=GateDeltas(),
        ece=BeforeAfter(before=None, after=None),
        judged_on=task.judged_on,
    )
    sentence = f"There are 0 new evaluation decisions and {task.needed} are needed; add rows."
    return Verdict(gate, (sentence,))


def _labels(
    decisions: Sequence[HeldOutDecision], is_counted: Sequence[bool], task: FineTuneTask
) -> GateLabels | UnsetType:
    """Count decisions by where their labels came from; UNSET where no row says it."""
    counted: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for decision, is_in in zip(decisions, is_counted, strict=True):
        (counted if is_in else left_out)[", ".join(decision.by)] += 1
    if task.judged_by is None and {*counted, *left_out} <= {UNKNOWN}:
        return UNSET
    return GateLabels(counted=dict(counted.most_common()), left_out=dict(left_out.most_common()))
