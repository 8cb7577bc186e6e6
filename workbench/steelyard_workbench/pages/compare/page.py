"""Compare: two evaluations, decision by decision: the change, its interval, and the flipped rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client.display_evaluations import MEASURES, change_of, measure_of
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard.evaluations.wire import Change, Evaluation, EvaluationComparison, Measures
from steelyard.wire.measures import Measure, interval_text
from steelyard_workbench.kit.basics import action_button, drawn_by, html_pane, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table, show_data
from steelyard_workbench.kit.look import CARD_CSS, beam, pill, verdict_card
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import card, empty, heading, table, verdict
from steelyard_workbench.kit.words import SHARES, named_change_text, named_text, percent_text
from steelyard_workbench.pages.compare.flips import FlipBrowser
from steelyard_workbench.pages.evaluations.page import (
    MOST_CHOICES,
    dataset_select,
    datasets_and_chosen,
    no_dataset,
)
from steelyard_workbench.parts.datasets.names import no_datasets
from steelyard_workbench.parts.evaluations.charts import (
    CHANCE,
    FALLING,
    MOST_SLICES,
    TITLES,
    ForestRow,
    forest_chart,
    sliced_changes,
)
from steelyard_workbench.parts.evaluations.listing import LEADING, name_of, options_of, succeeded
from steelyard_workbench.parts.evaluations.scored import RecordChoice, query_of
from steelyard_workbench.parts.review.sending import RowReview

#: A change that would take more decisions to settle is none for any purpose.
_MOST_TO_SETTLE = 1_000_000


@dataclass(frozen=True, slots=True)
class ComparableEvaluations:
    """The evaluations of a dataset, newest first, and the requested pair; empty for the newest."""

    datasets: Sequence[Dataset]
    dataset_id: str
    evaluations: list[Evaluation]
    before: str
    after: str

    @property
    def is_known(self) -> bool:
        """Whether the chosen dataset is there."""
        return any(dataset.id == self.dataset_id for dataset in self.datasets)


class ComparePage(OnePartPage):
    """Two evaluations beside each other."""

    slug = "compare"
    title = "Compare"
    summary = "Two models on the same rows, answer by answer."
    watched = ("dataset", "before", "after")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.flips: FlipBrowser | None = None
        self.comparison: Loaded[EvaluationComparison] | None = None
        self._measure = ""
        #: The dataset and the pair that were shown last, and whether that pair was the default.
        self._shown = ("", "", "")
        self._is_newest = False
        self._is_keeping = False

    def close(self) -> None:
        """Leave the page; running fetches are not shown, nor written into the address."""
        super().close()
        if self._is_newest and self._shown[1:] == (self.session.before, self.session.after):
            # There may be newer ones when the user comes back.
            self.session.param.update(before="", after="")

    def on_key(self, action: str, _: int) -> bool:
        """Go through the flips."""
        return self.flips is not None and self.flips.on_key(action)

    def content(self) -> list[Viewable]:
        """Return the choice, and its comparison."""
        self.flips, self.comparison = None, None
        return [self.part(Loaded("The evaluations", self._fetch_choice, self._show_choice))]

    def on_session(self, *events: Any) -> None:
        """Show the present selection."""
        if not self._is_keeping:
            super().on_session(*events)

    def _fetch_choice(self) -> ComparableEvaluations:
        before, after = self._pair_of_session()
        dataset_id = self.session.dataset
        if not dataset_id and after:
            dataset_id = self.client.evaluations.get(after).dataset_id
        datasets, dataset_id = datasets_and_chosen(self.client, dataset_id, n=2)
        choice = ComparableEvaluations(datasets, dataset_id, [], before, after)
        # Evaluations outlast their dataset: a pair of one that was deleted is compared too.
        if not choice.is_known and not after:
            return choice
        newest = islice(self.client.evaluations.list(dataset_id), MOST_CHOICES)
        return replace(choice, evaluations=succeeded(list(newest)))

    def _pair_of_session(self) -> tuple[str, str]:
        """Return the pair of the session; none where another dataset was chosen meanwhile."""
        pair = (self.session.before, self.session.after)
        has_moved = self.session.dataset not in ("", self._shown[0])
        return ("", "") if has_moved and pair == self._shown[1:] else pair

    async def _show_choice(self, choice: ComparableEvaluations) -> Viewable:
        if not choice.dataset_id:
            return no_datasets(self.session, "Two models are compared on the rows of one.")
        pair = [choice.before, choice.after]
        views: list[Viewable] = []
        if choice.is_known or not choice.after:
            chosen = choice.dataset_id
            views.append(dataset_select(self.session, choice.datasets, chosen, before="", after=""))
        if not choice.is_known and not choice.after:
            return stack(*views, no_dataset(choice.dataset_id))
        by_id = {evaluation.id: evaluation for evaluation in choice.evaluations}
        if len(by_id) < 2 and not all(pair):
            to = partial(self.session.open, "evaluations", dataset=choice.dataset_id, evaluation="")
            go = action_button("Evaluate models", lambda _: to(), variant="contained")
            text = "Comparing takes two evaluations of this dataset that succeeded; there "
            text += "is one." if by_id else "are none."
            return stack(*views, empty(text, go))
        before, after = old_and_new(choice.evaluations, *pair)
        self._is_newest = not any(pair)
        self._keep(choice.dataset_id, before, after)
        views.append(self._fields(choice, before, after))
        self.comparison = Loaded(
            "The comparison",
            lambda: self.client.evaluations.compare(before, after),
            lambda comparison: self._show(comparison, before, after),
        )
        self.part(self.comparison)
        await self.comparison.refresh()
        return stack(*views, self.comparison)

    def _keep(self, dataset_id: str, before: str, after: str) -> None:
        """Write which pair is shown into the address."""
        self._shown = (dataset_id, before, after)
        self._is_keeping = True
        try:
            self.session.param.update(before=before, after=after)
        finally:
            self._is_keeping = False

    def _fields(self, choice: ComparableEvaluations, before: str, after: str) -> Viewable:
        options = options_of(choice.evaluations, name_of)
        for id_ in (before, after):  # of another dataset, from an address
            if id_ not in options.values():
                options[id_] = id_
        old, new = (
            pmui.Select(label=label, options=options, value=value, width=340)
            for label, value in (("Before", before), ("After", after))
        )
        choose = self.session.param.update
        pn.bind(lambda chosen: choose(before=chosen, after=after), old, watch=True)
        pn.bind(lambda chosen: choose(before=before, after=chosen), new, watch=True)
        swap = action_button("Swap", lambda _: choose(before=after, after=before))
        return pn.FlexBox(old, new, swap)

    async def _show(self, comparison: EvaluationComparison, before: str, after: str) -> Viewable:
        self.flips = FlipBrowser(
            self.client, comparison, after, RowReview(self.session, self.visit)
        )
        await self.flips.refresh()
        sides = await asyncio.to_thread(self._fetch_sides, comparison, before, after)
        warnings = show_unpaired(comparison)
        if before == after:
            warnings.append(empty("Both sides are the same evaluation, so nothing changes."))
        measures = [name for name in MEASURES if change_of(comparison.overall, name) is not None]
        return stack(
            *warnings,
            *self._overall(comparison, measures, after, sides),
            self.flips,
            *self._slices(comparison, measures, after),
        )

    def _fetch_sides(
        self, comparison: EvaluationComparison, before: str, after: str
    ) -> tuple[Measures | None, Measures | None]:
        """Return the measures of each side alone, where all of its scored rows are compared."""

        def measured(evaluation_id: str, n_left: int) -> Measures | None:
            try:
                return None if n_left else self.client.evaluations.detail(evaluation_id).overall
            except SteelyardError:  # the comparison has the figures, without their intervals
                return None

        return measured(before, comparison.unpaired.before), measured(
            after, comparison.unpaired.after
        )

    def _overall(
        self,
        comparison: EvaluationComparison,
        measures: list[str],
        after: str,
        sides: tuple[Measures | None, Measures | None],
    ) -> list[Viewable]:
        overall = comparison.overall
        values = []
        for name in measures:
            change = change_of(overall, name)
            if change is not None:
                alone = [None if side is None else measure_of(side, name) for side in sides]
                values.append(
                    (
                        TITLES[name],
                        side_text(name, change.before, alone[0], change.n),
                        side_text(name, change.after, alone[1], change.n),
                        named_change_text(name, change),
                        judged(name, change)[1],
                    )
                )
        rows_after = action_button(
            "Rows of the evaluation after",
            lambda _: self._open_rows(RecordChoice(), after),
            variant="text",
            size="small",
        )
        return [
            card(show_verdict(comparison), rows_after),
            table(
                ("measure", "before", "after", "change (95 % interval)", "verdict"),
                values,
                label="Changes",
            ),
            empty(
                f"{overall.flips.same_right:,} right and {overall.flips.same_wrong:,} wrong in both."
                f"\n\nDetails: McNemar's exact test, p = {overall.p_value:.3g}."
            ),
        ]

    def _slices(
        self, comparison: EvaluationComparison, measures: list[str], after: str
    ) -> list[Viewable]:
        select = pmui.Select(
            label="Measure of the slices",
            options={TITLES[name]: name for name in measures},
            value=self._measure if self._measure in measures else measures[0],
            width=260,
        )
        ends = partial(interval_text, form="+.4f", to=" to ")

        def draw(measure: str) -> list[Viewable]:
            self._measure = measure
            rows = sliced_changes(measure, comparison.groups)
            drawn = [row for row in rows if row.is_measured][:MOST_SLICES]
            if not rows:
                return [empty("Nothing cuts these decisions into slices.")]
            chart = forest_chart(
                drawn,
                title=f"Change of {TITLES[measure]} by slice, the worst that may be first",
                x="after minus before",
                reference=0.0,
                open_=lambda i: self._open_slice(drawn[i], after),
            )
            unlisted = sum(group.unlisted for group in comparison.groups)
            note = (
                f"{len(rows):,} slices by {len(comparison.groups)} properties, {len(drawn)} drawn"
                f"{f', {unlisted:,} smaller ones not measured' if unlisted else ''}. {CHANCE} "
                "Click a decision for its changes, another slice for its rows."
            )
            data = mark_table(
                ("slice", "change", "95 % interval", "n"),
                [
                    (
                        row.name,
                        f"{row.value:+.4f}" if row.is_measured else "too few",
                        ends(row.low, row.high) if row.is_measured else "",
                        f"{row.n:,}",
                    )
                    for row in rows
                ],
                label="Changes by slice",
                numbers=(1, 3),
                open_=lambda i: self._open_slice(rows[i], after),
            )
            return [figures.show(chart), small_text(note), show_data(data)]

        return [heading("Slices by change"), *drawn_by(select, draw)]

    def _open_slice(self, row: ForestRow, after: str) -> None:
        if row.by == "decision" and self.flips is not None:
            self.flips.choose(row.of)
        else:
            self._open_rows(RecordChoice(slice_by=row.by, slice=row.of), after)

    def _open_rows(self, record_choice: RecordChoice, after: str) -> None:
        self.session.open("evaluations", evaluation=after, query=query_of(record_choice))


def side_text(name: str, value: float, alone: Measure | None, n: int) -> str:
    """Return a measure of one side, with its interval where that is of the same decisions.

    >>> side_text("accuracy", 0.5, None, 80)
    '50 % (of 80)'
    """
    if alone is not None and alone.n == n:
        return named_text(name, alone)
    return f"{percent_text(value)} (of {n:,})" if name in SHARES else f"{value:.3f} (n = {n:,})"


def judged(measure: str, change: Change) -> tuple[Status, str]:
    """Return as a status and in words whether a change is better, worse, or too unsure to tell, by its interval."""
    if change.low is None or change.high is None:
        return "unsure", f"cannot be told: {interval_text(None, None)}"
    sign = -1 if measure in FALLING else 1
    low, high = sorted((sign * change.low, sign * change.high))
    if low > 0:
        return "good", "better"
    if high < 0:
        return "bad", "worse"
    if low == high == 0:
        return "off", "no change"
    return "unsure", "not proven: it may be better or worse"


def show_verdict(comparison: EvaluationComparison) -> Viewable:
    """Return the result by the leading measure, and the rows needed to settle an inconclusive one."""
    overall = comparison.overall
    name = next(each for each in LEADING if change_of(overall, each) is not None)
    change = change_of(overall, name)
    if change is None:
        raise ValueError("A comparison has a leading measure.")
    status, word = judged(name, change)
    is_share = name in SHARES
    figures_of_both = (
        percent_text(side) if is_share else f"{side:.3f}" for side in (change.before, change.after)
    )
    fixed, broken = overall.flips.fixed, overall.flips.broken
    body = [
        f'<div class="note">{overall.n:,} answers to {overall.contexts:,} texts, by both</div>',
        f'<div class="verdict">{" → ".join(figures_of_both)} <small>{LEADING[name]}</small></div>',
        f'<div class="lead">{named_change_text(name, change)} · {fixed:,} fixed · {broken:,} broken</div>',
    ]
    rows = rows_to_settle(change)
    if status == "unsure" and rows is not None:
        body.append(f'<div class="note">To tell takes about {rows:,} answers of this kind.</div>')
    drawn = ""
    if is_share and change.low is not None and change.high is not None:
        drawn = beam(change.change, change.low, change.high, status)
    return html_pane(
        verdict_card(body, drawn, [pill(word.capitalize(), status)]), CARD_CSS, margin=(8, 10)
    )


def rows_to_settle(change: Change) -> int | None:
    """Return about how many decisions would make the interval of a change clear 0.

    An interval is as wide as one over the square root of the decisions that it rests on. None where
    nothing changed, so that no number would, or where there is no interval.
    """
    if change.low is None or change.high is None or change.change == 0:
        return None
    half = (change.high - change.low) / 2
    needed = change.n * (half / abs(change.change)) ** 2
    if needed > _MOST_TO_SETTLE:
        return None
    return max(change.n, int(round(needed, -2 if needed > 1000 else -1)))


def show_unpaired(comparison: EvaluationComparison) -> list[Viewable]:
    """Warn when the two did not score the same decisions."""
    unpaired = comparison.unpaired
    if not unpaired.before and not unpaired.after:
        return []
    return [
        verdict(
            "unsure",
            "Not the same rows.",
            f"{unpaired.before:,} decisions are in the evaluation before alone and {unpaired.after:,} in "
            f"the one after alone; they are left out. The {comparison.overall.n:,} that both scored are "
            "compared.",
        )
    ]


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
