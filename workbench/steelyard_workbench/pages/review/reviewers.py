"""Who labels which rows of a draft: how far each is, how far two agree, and rows to assign."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.review.duties_wire import Assignments, DraftAgreement
from steelyard.review.requests import MAX_KNOWN_SHARE
from steelyard.review.wire import Draft, Queue
from steelyard.wire.origins import LabelledBy
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.views import empty, heading, table
from steelyard_workbench.kit.words import counted, escape_markdown, measure_text, share_text
from steelyard_workbench.pages.review.queue_tabs import TITLES
from steelyard_workbench.parts.review.row_filter import RowFilter

_NOT_YOURS = "An owner or a developer of the account assigns rows."
_NOBODY = "nobody"
_ABOUT_KNOWN = "Known rows score reviewers and keep their labels. With them, reviewers see no label of any row."
#: Where labels came from, as the choice of it has them.
_ORIGINS = {"anywhere": "", **{name: name for name in get_args(LabelledBy)}}


@dataclass(frozen=True, slots=True)
class ReviewerShares:
    """A draft's reviewers and their progress."""

    assignments: Assignments
    agreement: DraftAgreement


class Reviewers(Boxed):
    """Shows reviewers and their agreement, and assigns rows.

    ``chosen`` returns the queue and the filter whose rows are assigned; ``reviewer``, the name of
    the user or ``None``. Signed in, reviewers are members of the account. ``on_queue`` is called
    with a queue to look at, ``on_assigned`` once rows have other reviewers.
    """

    def __init__(
        self,
        client: Client,
        draft: Draft,
        *,
        chosen: Callable[[], tuple[Queue, RowFilter]],
        reviewer: Callable[[], str | None],
        is_signed_in: bool,
        may_assign: bool,
        on_queue: Callable[[Queue], None],
        on_assigned: Callable[[], None],
    ) -> None:
        super().__init__()
        self._client, self._draft_id = client, draft.id
        self._chosen, self._reviewer = chosen, reviewer
        self._is_signed_in, self._may_assign = is_signed_in, may_assign
        self._on_queue, self._on_assigned = on_queue, on_assigned
        self.typed = pmui.TextInput(
            label="Reviewers, with commas", sizing_mode="stretch_width", size="small"
        )
        self.members = pmui.MultiChoice(label="Reviewers", options=[], sizing_mode="stretch_width")
        self.overlap = pmui.IntInput(
            label="Labelled by two, %", value=0, start=0, end=100, width=150, size="small"
        )
        self.limit = pmui.IntInput(
            label="At most rows", value=None, start=1, width=150, size="small"
        )
        self.known = pmui.IntInput(
            label="Known answers, %",
            value=0,
            start=0,
            end=round(100 * MAX_KNOWN_SHARE),
            width=150,
            size="small",
        )
        self.known_by = pmui.Select(
            label="Known are labels by",
            options=list(get_args(LabelledBy)),
            value="expert",
            size="small",
            width=150,
        )

        self.from_ = pmui.Select(label="Unfinished rows of", options=[])
        self.to = pmui.TextInput(label="Goes to (empty: no reviewer)", size="small")

        self.by = pmui.Select(
            label="Of rows whose labels came from",
            options=_ORIGINS,
            value="",
            size="small",
            width=230,
        )
        self._said = small_text("")
        self._problem = stack()
        self.assign = Write(self._assign_rows, "Not assigned:", self._problem, refused="Assign")
        self.move = Write(self._move_rows, "Not handed over:", self._problem, refused="Hand over")
        self._assign = action_button(
            "Assign", self.assign.on_event, variant="contained", size="small"
        )
        self._move = action_button("Hand over", self.move.on_event, size="small")
        self.part: Loaded[ReviewerShares] = Loaded("The reviewers", self._fetch, self._show)
        pn.bind(lambda _: self.part.refresh.start(quietly=True), self.by, watch=True)
        self._box = self.part

    def forbid(self) -> None:
        """Disable every change."""
        self._assign.disabled = self._move.disabled = True

    def _fetch(self) -> ReviewerShares:
        drafts = self._client.drafts
        by: LabelledBy | None = self.by.value or None
        return ReviewerShares(
            drafts.assignments(self._draft_id), drafts.agreement(self._draft_id, by=by)
        )

    def _show(self, shares: ReviewerShares) -> Viewable:
        assignments, agreement = shares.assignments, shares.agreement
        parts: list[Viewable] = []
        if assignments.data:
            parts += _show_progress(assignments)
        else:
            parts.append(empty("No rows are assigned. Reviewers take the rows in **To review**."))
        parts.append(
            small_text(f"Without a reviewer: {counted(assignments.unassigned, 'undecided row')}.")
        )
        if agreement.blind or self.by.value:
            parts += self._show_agreement(agreement)
        if self._may_assign:
            parts += self._show_forms(assignments)
        return stack(*parts, self._said, self._problem)

    def _show_agreement(self, agreement: DraftAgreement) -> list[Viewable]:
        summary = (
            f"Of {agreement.blind:,} rows that several label apart, all answered {agreement.answered:,}: the "
            f"same on {agreement.agreed:,}. Of {agreement.disputed:,} disputed, {agreement.to_adjudicate:,} wait "
            "for a decision."
        )
        if agreement.exclusions:
            summary += f" {agreement.exclusions:,} with an exclusion count for no decision."
        views: list[Viewable] = [heading("Agreement"), self.by]
        if not agreement.blind:
            return [*views, pmui.Typography("No row with such labels has two reviewers.")]
        views.append(small_text(summary))
        if agreement.decisions:
            views.append(
                table(
                    ("decision", "Krippendorff's alpha", "same label"),
                    [
                        (
                            decision.decision_id,
                            measure_text(decision.alpha),
                            measure_text(decision.agreement),
                        )
                        for decision in agreement.decisions
                    ],
                    label="Agreement by decision, with 95 % intervals",
                )
            )
        if agreement.to_adjudicate:
            label = f"Decide {agreement.to_adjudicate:,} disputed"
            decide = action_button(label, lambda _: self._on_queue("disagreement"), size="small")
            views.append(decide)
        return views

    def _show_forms(self, assignments: Assignments) -> list[Viewable]:
        if self._is_signed_in and assignments.candidates is None:
            return [small_text(_NOT_YOURS)]
        if assignments.candidates is not None:
            self.members.options = {
                _name_text(name, assignments): name for name in assignments.candidates
            }
        names = [
            progress.reviewer for progress in assignments.data if progress.done < progress.rows
        ]
        self.from_.param.update(
            options=names, value=self.from_.value if self.from_.value in names else None
        )
        moving = [pn.Column(self.from_, self.to, self._move)] if names else []
        return [
            heading("Assign rows"),
            small_text(
                "Splits the undecided rows of the present queue and filter evenly and at random. "
                "Assigned rows are left out."
            ),
            self.typed if assignments.candidates is None else self.members,
            number_fields(self.overlap, self.limit),
            number_fields(self.known, self.known_by),
            small_text(_ABOUT_KNOWN),
            self._assign,
            *moving,
        ]

    @property
    def _names(self) -> list[str]:
        if self.members.options:
            return list(self.members.value)
        typed = (name.strip() for name in (self.typed.value or "").split(","))
        return list(dict.fromkeys(name for name in typed if name))

    async def _assign_rows(self) -> None:
        queue, row_filter = self._chosen()
        options: dict[str, Any] = {
            "overlap": (self.overlap.value or 0) / 100,
            "known_share": (self.known.value or 0) / 100 or None,
            "known_by": self.known_by.value if self.known.value else None,
            "where": row_filter.where,
            "text": row_filter.text,
            "queue": queue,
            "limit": self.limit.value,
            "reviewer": self._reviewer(),
        }
        assignment = await asyncio.to_thread(
            self._client.drafts.assign, self._draft_id, self._names, **options
        )
        shares = ", ".join(
            f"{escape_markdown(name)} {n:,}" for name, n in assignment.reviewers.items()
        )
        known = f", {assignment.known:,} known" if assignment.known else ""
        self._show_message(
            f"{assignment.rows:,} rows of {TITLES[queue]} assigned, {assignment.blind:,} of them to "
            f"two{known}: {shares}."
        )

    async def _move_rows(self) -> None:
        from_, to = str(self.from_.value or ""), (self.to.value or "").strip() or None
        moved = await asyncio.to_thread(
            self._client.drafts.move_assigned, self._draft_id, from_, to
        )
        message = f"{moved.moved:,} rows of {escape_markdown(from_)} are {escape_markdown(to or _NOBODY)}'s."
        if moved.kept:
            message += f" {moved.kept:,} stay."
        self._show_message(message)

    def _show_message(self, text: str) -> None:
        self._problem[:] = []
        self._said.object = text
        self.part.refresh.start(quietly=True)
        self._on_assigned()


def _show_progress(assignments: Assignments) -> list[Viewable]:
    progress = table(
        ("reviewer", "done", "of", "apart"),
        [
            (
                _name_text(progress.reviewer, assignments),
                f"{progress.done:,}",
                f"{progress.rows:,}",
                f"{progress.blind:,}",
            )
            for progress in assignments.data
        ],
        label="Reviewers and their rows",
        numbers=(1, 2, 3),
    )
    scores = [
        (each.reviewer, share_text(each.known))
        for each in assignments.data
        if each.known is not None
    ]
    if not scores:
        return [progress]
    label = "Reviewers and their known rows, with 95 % intervals"
    return [progress, table(("reviewer", "right of known rows"), scores, label=label)]


def _name_text(name: str, assignments: Assignments) -> str:
    return f"{name} (invited)" if name in assignments.invited else name
