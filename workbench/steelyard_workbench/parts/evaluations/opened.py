"""One evaluation that succeeded: its figures, each opening the decisions behind it, and its files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard.client.display_evaluations import MEASURES, measure_of, people_note
from steelyard.client.plots import MOST_OUTCOMES
from steelyard.evaluations.wire import ConfusionMatrix
from steelyard.wire.measures import Measure, interval_text
from steelyard_workbench.kit.basics import Boxed, drawn_by, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.files import Download
from steelyard_workbench.kit.components.mark_table import mark_table, show_data
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Task
from steelyard_workbench.kit.views import cards, empty, heading, loading, table
from steelyard_workbench.kit.words import measure_text
from steelyard_workbench.parts.evaluations.charts import (
    CHANCE,
    FALLING,
    FEW,
    FEWEST,
    MOST_SLICES,
    TITLES,
    bin_counts_chart,
    bin_name,
    confusion_chart,
    forest_chart,
    headline_of,
    reliability_chart,
    slice_rows,
    slice_text,
)
from steelyard_workbench.parts.evaluations.record_browser import RecordBrowser
from steelyard_workbench.parts.evaluations.report import report_html, report_json
from steelyard_workbench.parts.evaluations.scored import RecordChoice, Scored
from steelyard_workbench.parts.evaluations.what_if import WhatIf

#: Sections, by how the address names them.
SECTIONS = {
    "reliability": "How sure and right",
    "confusion": "Confusion",
    "thresholds": "Thresholds",
    "outcomes": "Answers",
    "slices": "Slices",
}


class OpenedEvaluation(Boxed):
    """The figures of an evaluation, ``verbs`` below its result, as the address says."""

    def __init__(
        self, session: Session, scored: Scored, scope: Scope, verbs: Sequence[Viewable]
    ) -> None:
        self._session, self._client, self.scored = session, session.client, scored
        self.browser = RecordBrowser(session, scored.evaluation, scored.detail, scope)
        self._switch = Task(self._show_section, scope=scope)
        self._sections = self._known_sections()
        first = session.view if session.view in self._sections else next(iter(self._sections))
        self.section = pmui.RadioButtonGroup(
            label="Figures",
            options={title: name for name, title in self._sections.items()},
            value=first,
        )
        super().__init__()
        self.what_if: WhatIf | None = None
        self._decision = ""
        self._slice_measure = ""
        self.figure = stack()
        self._box = stack(
            show_headline(scored),
            pmui.FlexBox(*verbs, *self._downloads(), align_items="center"),
            self.section,
            self.figure,
            self.browser,
        )

    async def refresh(self) -> None:
        """Make the figure and the rows; to be waited for before it is put on a page."""
        await self._switch()
        await self.browser.refresh()

    def choose(self, chosen: RecordChoice) -> None:
        """Show the rows behind a mark."""
        self.browser.choose(chosen)

    def _known_sections(self) -> dict[str, str]:
        if self.scored.evaluation.method == "sft":
            return SECTIONS
        return {name: SECTIONS[name] for name in ("slices", "thresholds")}

    @param.depends("section.value", watch=True)
    def _on_switch(self) -> None:
        self._session.view = self.section.value
        self._switch.start()

    async def _show_section(self) -> None:
        section = self.section.value
        if section == "thresholds":
            self.figure[:] = [loading(6, "Thresholds")]
            shown = await self._thresholds()
        else:
            shown = {
                "reliability": self._reliability,
                "confusion": self._confusion,
                "outcomes": self._outcomes,
                "slices": self._slices,
            }[section]()
        self.figure[:] = shown

    def _reliability(self) -> list[Viewable]:
        rows = self.scored.detail.reliability
        if not isinstance(rows, list):
            return [empty("This needs labels, and the dataset has rewards.")]

        def open_(place: int) -> None:
            row = rows[place]
            self.choose(RecordChoice(p_from=row.low, p_to=row.high))

        filled = [place for place, row in enumerate(rows) if row.n]
        values = [
            (
                bin_name(row),
                f"{row.n:,}",
                "—" if row.mean_top_probability is None else f"{row.mean_top_probability:.3f}",
                measure_text(row.accuracy),
            )
            for row in (rows[place] for place in filled)
        ]
        return [
            heading("How sure and right"),
            figures.show(reliability_chart(rows, open_, people=self.scored.ceiling)),
            figures.show(bin_counts_chart(rows, open_)),
            small_text("Click a bin for its rows. Below the line the model promises too much."),
            show_data(
                mark_table(
                    ("promised", "n", "mean", "accuracy"),
                    values,
                    label="Bins",
                    numbers=(1, 2),
                    open_=lambda i: open_(filled[i]),
                )
            ),
        ]

    def _confusion(self) -> list[Viewable]:
        confusions = [
            (decision.decision_id, decision.confusion)
            for decision in self.scored.detail.decisions
            if isinstance(decision.confusion, ConfusionMatrix)
        ]
        if not confusions:
            return [empty("A confusion matrix needs targets, and this evaluation has rewards.")]
        matrices = dict(confusions)
        chosen = self._decision if self._decision in matrices else confusions[0][0]
        select = pmui.Select(
            label="Decision of the matrix", options=list(matrices), value=chosen, width=260
        )

        def draw(decision_id: str) -> list[Viewable]:
            self._decision = decision_id
            matrix = matrices[decision_id]
            chart = confusion_chart(
                decision_id,
                matrix,
                lambda target, top: self.choose(
                    RecordChoice(decision=decision_id, target=target, top=top)
                ),
            )
            left = len(matrix.outcomes) - MOST_OUTCOMES
            notes = ["Click a cell for its rows. Shares are of the decisions of a line."]
            if left > 0:
                notes.append(
                    f"The {MOST_OUTCOMES} most frequent answers are drawn; {left} are left out."
                )
            data = show_data(_matrix_table(matrix))
            return [figures.show(chart), small_text(" ".join(notes)), data]

        return [heading("Confusion"), *drawn_by(select, draw)]

    async def _thresholds(self) -> list[Viewable]:
        if self.what_if is None:
            self.what_if = WhatIf(
                self._client, self.scored.evaluation, self.scored.detail, self.choose
            )
        await self.what_if.refresh()
        return [self.what_if.__panel__()]

    def _outcomes(self) -> list[Viewable]:
        shown: list[Viewable] = [heading("Answers")]
        for decision in self.scored.detail.decisions:
            if not isinstance(decision.outcomes, list):
                continue
            rows = [
                (
                    outcome.outcome,
                    f"{outcome.support:,}",
                    f"{outcome.predicted:,}",
                    *(
                        _short(measure)
                        for measure in (
                            outcome.precision,
                            outcome.recall,
                            outcome.f1,
                            outcome.share,
                            outcome.mean_probability,
                            outcome.auc,
                        )
                    ),
                )
                for outcome in decision.outcomes
            ]
            shown += [
                heading(f"{decision.decision_id} (n = {decision.metrics.n:,})", level=3),
                table(
                    (
                        "answer",
                        "right in",
                        "answered in",
                        "precision",
                        "recall",
                        "F1",
                        "share",
                        "mean probability",
                        "AUC",
                    ),
                    rows,
                    label=f"Answers of {decision.decision_id}",
                    numbers=(1, 2),
                ),
            ]
        shown.append(
            small_text(
                "In brackets 95 % intervals. Precision rests on the decisions answered so, recall "
                "on those where it is right, the others on every decision that offers the answer."
            )
        )
        if self.scored.detail.decisions_unlisted:
            n_left = self.scored.detail.decisions_unlisted
            shown.append(small_text(f"{n_left:,} rarer decisions are left out."))
        return shown

    def _slices(self) -> list[Viewable]:
        detail = self.scored.detail
        measures = [name for name in MEASURES if measure_of(detail.overall, name) is not None]
        chosen = self._slice_measure if self._slice_measure in measures else measures[0]
        select = pmui.Select(
            label="Measure of the slices",
            options={TITLES[name]: name for name in measures},
            value=chosen,
            width=260,
        )

        def draw(measure: str) -> list[Viewable]:
            self._slice_measure = measure
            rows = slice_rows(measure, detail.slices, detail.decisions)
            drawn = [row for row in rows if row.is_measured][:MOST_SLICES]
            overall = measure_of(detail.overall, measure)
            if not rows:
                return [empty("Nothing cuts these decisions into slices.")]
            chart = forest_chart(
                drawn,
                title=f"{TITLES[measure]} by slice, the worst that may be first",
                x=TITLES[measure],
                reference=None if overall is None else overall.value,
                people=self.scored.ceiling if measure == "accuracy" else None,
                open_=lambda i: self.choose(_slice_filter(drawn[i].by, drawn[i].of)),
            )
            properties = len({row.by for row in rows})
            unlisted = sum(slice_table.unlisted for slice_table in detail.slices)
            return [
                figures.show(chart),
                small_text(slices_text(len(rows), properties, len(drawn), unlisted, measure)),
                show_data(
                    mark_table(
                        ("slice", TITLES[measure]),
                        [(row.name, slice_text(row)) for row in rows],
                        label="Slices",
                        open_=lambda i: self.choose(_slice_filter(rows[i].by, rows[i].of)),
                    )
                ),
            ]

        return [heading("Slices"), *drawn_by(select, draw)]

    def _downloads(self) -> list[Viewable]:
        """Return the buttons that make files; each makes its own when it is pressed."""
        makers: dict[str, tuple[str, Callable[[], bytes]]] = {
            "Report (HTML)": ("report.html", lambda: self._report().encode()),
            "Report (JSON)": ("report.json", lambda: report_json(self.scored)),
        }
        name = self.scored.evaluation.id
        self.downloads = {
            label: Download(label, make, functools.partial(str.format, f"{name}_{{}}", filename))
            for label, (filename, make) in makers.items()
        }
        return [download.__panel__() for download in self.downloads.values()]

    def _report(self) -> str:
        worst = self._client.evaluations.records_page(
            self.scored.evaluation.id, wrong=True, order="loss", limit=50
        )
        return report_html(self.scored, worst)


def show_headline(scored: Scored) -> Viewable:
    """Show the leading figures, each with its interval and n."""
    overall, figures_shown = scored.detail.overall, []
    for title, text in headline_of(scored.detail, scored.ceiling):
        value, _, rest = text.partition(" (")
        figures_shown.append((title, value, rest.removesuffix(")")))
    text = f"{overall.n:,} answers to {overall.contexts:,} texts, with 95 % intervals."
    if scored.people is not None and scored.ceiling is not None:
        text += f" {people_note(scored.people)}"
    return stack(cards(figures_shown), small_text(text))


def slices_text(
    n_slices: int, n_properties: int, n_drawn: int, n_unlisted: int, measure: str
) -> str:
    """Return in words how many slices there are, and how that weakens a single one."""
    end = "upper" if measure in FALLING else "lower"
    parts = [
        (
            f"{n_slices:,} slices by {n_properties} properties, sorted by the {end} end of the "
            f"interval; those of fewer than {FEW} decisions are grey and last, and those of fewer "
            f"than {FEWEST} have no figure."
        ),
        CHANCE,
    ]
    if n_drawn < n_slices:
        parts.append(f"{n_drawn} are drawn.")
    if n_unlisted:
        parts.append(f"{n_unlisted:,} smaller slices were not measured.")
    parts.append("Click a slice for its rows.")
    return " ".join(parts)


def _slice_filter(by: str, of: str) -> RecordChoice:
    if by == "decision":
        return RecordChoice(decision=of)
    return RecordChoice(slice_by=by, slice=of)


def _short(measure: Measure | None) -> str:
    if measure is None:
        return "—"
    ends = interval_text(measure.low, measure.high, form=".2f", to=" to ")
    return f"{measure.value:.2f} ({ends})"


def _matrix_table(matrix: ConfusionMatrix) -> Viewable:
    rows: Sequence[Sequence[str]] = [
        (name, *(f"{count:,}" for count in counts))
        for name, counts in zip(matrix.outcomes, matrix.counts, strict=True)
    ]
    return table(
        ("right \\ answered", *matrix.outcomes),
        rows,
        label="Confusion matrix",
        numbers=range(1, len(matrix.outcomes) + 1),
    )
