"""A table of how often outcomes are true, beside how often the model says them."""

from __future__ import annotations

from collections.abc import Callable

from panel.viewable import Viewable

from steelyard.decision_log.wire import DecisionSeries, SeriesOutcome
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.words import percent_text
from steelyard_workbench.parts.live.view import AnswerFilter

#: What of the stream is to be checked: by chance, so that it corrects the model's count.
TO_CHECK = AnswerFilter(
    name="not checked yet, in an order by chance", order="chance", has_feedback=False
)
_HOW = (
    "Open the answers that chance draws from the first on and say what is right: a few are enough to "
    "correct the model's own count."
)


def share_table(series: DecisionSeries, open_: Callable[[str], None]) -> Viewable:
    """Return the table and how it comes about; ``open_`` takes the decision whose answers to check."""
    outcomes = sorted(series.outcomes, key=lambda outcome: outcome.decision)
    table = mark_table(
        ("decision", "answer", "the model says", "true", "checked", "to halve the interval"),
        [_row(outcome) for outcome in outcomes],
        label="True shares of answers",
        open_=lambda place: open_(outcomes[place].decision),
        numbers=(2, 3, 4, 5),
        opens="Check answers of this decision",
    )
    by_hand = {each.decision: each.checks_left_out for each in outcomes if each.checks_left_out}
    left_out = [f"{n:,} of {decision}" for decision, n in by_hand.items()]
    how = _HOW
    if left_out:
        how += f" Checks out of this order count once those before them are done: {', '.join(left_out)}."
    return stack(small_text(how), table)


def _row(outcome: SeriesOutcome) -> tuple[str, ...]:
    share, true = outcome.share, outcome.true_share
    says = "—" if share is None else f"{percent_text(share.value)} of {outcome.answers:,}"
    if true is None or true.low is None or true.high is None:
        return outcome.decision, outcome.outcome, says, "—", "0", "—"
    interval = f"{percent_text(true.value)} ({percent_text(true.low)} to {percent_text(true.high)})"
    more = f"{outcome.checks_to_halve:,} more"
    return outcome.decision, outcome.outcome, says, interval, f"{true.n:,}", more
