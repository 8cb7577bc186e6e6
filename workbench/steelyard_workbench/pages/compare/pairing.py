"""Which two evaluations are compared by default."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.evaluations.wire import Evaluation


def old_and_new(evaluations: Sequence[Evaluation], before: str, after: str) -> tuple[str, str]:
    """Return the pair that is compared: by default the newest, and the one before it.

    A number of the same family on the same rows comes before others on the same rows, and these
    before the rest. With nothing chosen, two numbers of one family are looked for first.
    Evaluations come the newest first; ``before`` and ``after`` are chosen ids, or empty.
    """

    def likeness(old: Evaluation, new: Evaluation) -> tuple[bool, bool]:
        is_of_family = bool(new.model_name) and old.model_name == new.model_name
        is_same_rows = old.evaluation_sha256 == new.evaluation_sha256
        return is_same_rows and is_of_family, is_same_rows

    by_id = {evaluation.id: evaluation for evaluation in evaluations}
    pairs = [
        (old.id, new.id)
        for place, new in enumerate(evaluations)
        for old in evaluations[place + 1 :]
        if before in {"", old.id} and after in {"", new.id}
    ]
    # The first of the best: the newest.
    best = max(pairs, key=lambda pair: likeness(by_id[pair[0]], by_id[pair[1]]), default=None)
    if best is not None:
        return best
    others = [id_ for id_ in by_id if id_ not in {before, after}]
    other = others[0] if others else ""
    return before or other or after, after or other or before
