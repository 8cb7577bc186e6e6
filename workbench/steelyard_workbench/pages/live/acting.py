"""The effect of a threshold: how many answers reach it, which, and how many of them were wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from steelyard.decision_log.wire import DecisionSummary, TopProbabilityRow
from steelyard_workbench.kit.basics import Boxed, action_button, html_pane
from steelyard_workbench.kit.look import CARD_CSS
from steelyard_workbench.kit.views import card
from steelyard_workbench.parts.live.view import AnswerFilter

#: The sentence above the slider says its value.
_UNSEEN_LABEL = {"& .MuiFormLabel-root": {"position": "absolute", "clipPath": "inset(50%)"}}
_BY_SURENESS, _BY_SHARE = "how sure it is", "share left to a person"


class WouldAct(Boxed):
    """A slider over the decisions of a window; ``open_`` gets the filter of those behind a figure."""

    def __init__(self, open_: Callable[[AnswerFilter], None]) -> None:
        super().__init__()
        self._open = open_
        self._rows: list[TopProbabilityRow] = []
        self.unit = pmui.Select(
            label="Choose by", options=[_BY_SURENESS, _BY_SHARE], width=220, size="small"
        )
        self.slider = pmui.IntSlider(
            label="Percent",
            start=0,
            end=100,
            value=50,
            color="secondary",
            sx=_UNSEEN_LABEL,
            margin=(0, 20),
            sizing_mode="stretch_width",
        )
        self.text = html_pane("", CARD_CSS, margin=(0, 10))
        self.left = action_button(
            "Show those left to a person", lambda _: open_(left_below(self.threshold)), size="small"
        )
        self.wrong = action_button(
            "Show the wrong ones", lambda _: open_(wrong_above(self.threshold)), size="small"
        )
        pn.bind(self._say, self.slider, self.unit, watch=True)
        self._box = card(
            self.text,
            self.slider,
            pn.FlexBox(self.unit, self.left, self.wrong, gap="8px", align_items="center"),
        )
        self._box.param.update(visible=False, css_classes=["below-on-phone"])

    @property
    def threshold(self) -> float:
        """The top probability above which a decision would act."""
        if self.unit.value == _BY_SURENESS:
            return float(self.slider.value / 100)
        return threshold_of(self._rows, self.slider.value / 100)

    def take(self, summary: DecisionSummary) -> None:
        """Show the slider's effect on the decisions of a summary; it stays where it is."""
        is_first, self._rows = not self._rows, summary.top_probabilities
        self._box.visible = bool(self._rows)
        if is_first and summary.abstain_rate is not None:
            # At first it stands where as many are left to a person as were.
            at = threshold_of(self._rows, summary.abstain_rate.value)
            self.slider.value = round(100 * at)
        self._say()

    def _say(self, *_: Any) -> None:
        at = self.threshold
        acts = [row for row in self._rows if row.low >= at]
        n = sum(row.n for row in self._rows)
        n_acts = sum(row.n for row in acts)
        n_seen, n_wrong = sum(row.with_feedback for row in acts), sum(row.wrong for row in acts)
        seen = (
            f"of {n_seen:,} known, <b>{n_wrong:,}</b> ({100 * n_wrong / n_seen:.0f} %) "
            f"{'was' if n_wrong == 1 else 'were'} wrong"
            if n_seen
            else "of none of them the right answer is known"
        )
        self.text.object = (
            f'<div class="row"><h2>Would have acted from {100 * at:.0f} % sure</h2>'
            f"<div><b>{n_acts:,}</b> of {n:,} acted on, <b>{n - n_acts:,}</b> to a person; {seen}"
            "</div></div>"
        )
        self.left.disabled, self.wrong.disabled = n_acts == n, not n_wrong


def threshold_of(rows: list[TopProbabilityRow], share: float) -> float:
    """Return the threshold that leaves a share of the decisions to a person, or the nearest below it.

    >>> rows = [
    ...     TopProbabilityRow(low=p, high=p + 0.1, n=n, with_feedback=0, wrong=0)
    ...     for p, n in ((0.4, 1), (0.8, 3))
    ... ]
    >>> [threshold_of(rows, share) for share in (0, 0.3, 1)]
    [0.4, 0.5, 0.9]
    """
    left, at = 0.0, rows[0].low if rows else 0.0
    most = share * sum(row.n for row in rows)
    for row in rows:
        left += row.n
        if left > most:
            break
        at = row.high
    return round(at, 2)


def left_below(threshold: float) -> AnswerFilter:
    """Return the filter of the decisions that a threshold leaves to a person."""
    return AnswerFilter(name=f"at most {threshold * 100:.0f} % sure", p_to=threshold)


def wrong_above(threshold: float) -> AnswerFilter:
    """Return the filter of the decisions above a threshold that were wrong."""
    name = f"wrong though more than {threshold * 100:.0f} % sure"
    return AnswerFilter(name=name, has_feedback=True, wrong=True, p_from=threshold)
