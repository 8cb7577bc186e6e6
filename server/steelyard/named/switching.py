"""How far another model may answer in place of the present one, judged without labels; pure.

Both answered the same texts. Where they agree, whichever is right, the switch changes nothing: so what
a threshold on the candidate's top probability lets it answer alone differs in a bounded share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.calibration.certify import certify_threshold
from steelyard.decision_log.traffic import proportion_of
from steelyard.named.comparing import Compared
from steelyard.named.comparison_wire import AgreementBand, Switch

#: Where bands of the candidate's top probability end.
_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
#: Texts whose labels are asked for at most.
MOST_TO_LABEL = 20


def switches_of(compared: Sequence[Compared], budget: float) -> list[Switch]:
    """Return for each decision how far its answers agree, and from which probability on."""
    by_decision: dict[str, list[Compared]] = {}
    for answer in compared:
        by_decision.setdefault(answer.decision, []).append(answer)
    return [_switch(name, answers, budget) for name, answers in by_decision.items()]


def _switch(name: str, answers: Sequence[Compared], budget: float) -> Switch:
    p_top = np.array([max(answer.probabilities[1]) for answer in answers])
    agrees = np.array([_top(answer, 0) == _top(answer, 1) for answer in answers])
    _, codes = np.unique([answer.context for answer in answers], return_inverse=True)
    certified = certify_threshold(p_top, agrees, codes, error=budget)
    lows = (0.0, *_EDGES[:-1])
    bands = [
        AgreementBand(low=low, high=high, agree=proportion_of(float(agrees[inside].sum()), n))
        for low, high in zip(lows, _EDGES, strict=True)
        if (n := int((inside := (p_top > low) & (p_top <= high)).sum()))
    ]
    # Where both are sure and differ, a label says most about whose answers are to stand.
    sure = np.argsort(-p_top, kind="stable")
    is_open = [
        not agree and answer.right is None for agree, answer in zip(agrees, answers, strict=True)
    ]
    to_label = [answers[place].source for place in sure if is_open[place]]
    n_alone = round(certified.answered * len(answers))
    n_moved = round(certified.error * n_alone)
    if certified.holds:
        advice = (
            f"From a probability of {certified.threshold:.3f} on the candidate may answer {name} alone: "
            f"{certified.answered:.0%} of {len(answers):,} answers, of which {certified.error:.1%} "
            f"({n_moved:,}) differ, and with 95 % confidence no more than {100 * budget:g}%; the rest goes on "
            "to the present model."
        )
    else:
        more = certified.missing_rows
        more_text = (
            "no number of further texts would" if more is None else f"about {more:,} more would"
        )
        advice = (
            f"No threshold keeps {name} within {100 * budget:g}% of differing answers on {len(answers):,}; "
            f"{more_text}."
        )
    return Switch(
        decision=name,
        budget=budget,
        threshold=certified.threshold if certified.holds else None,
        alone=certified.answered if certified.holds else 0.0,
        agree=proportion_of(float(agrees.sum()), len(answers)),
        bands=bands,
        to_label=[source for source in dict.fromkeys(to_label) if source][:MOST_TO_LABEL],
        advice=advice,
    )


def _top(answer: Compared, place: int) -> str:
    shares = answer.probabilities[place]
    return answer.outcomes[max(range(len(shares)), key=shares.__getitem__)]
