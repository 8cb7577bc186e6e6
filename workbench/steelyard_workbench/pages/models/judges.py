"""Connected models and judges: from a download to a check, a calibration and the use in a route."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard.models.judge_wire import Judge, JudgeList, SetupTask, ThinkingEffect
from steelyard.models.qualification_wire import QualificationList
from steelyard.serving.judge.memory import WORKING_BYTES
from steelyard.serving.reader.catalogue import SHIPPED
from steelyard.wire.limits import MAX_THOUGHT_TOKENS, THOUGHT_TOKENS
from steelyard.wire.origins import LabelledBy
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.views import empty, facts, heading, table, verdict, with_details
from steelyard_workbench.kit.words import (
    ago,
    change_text,
    escape_markdown,
    measure_text,
    percent_text,
    share_text,
)
from steelyard_workbench.parts.setup_tasks import DOING, show_task, size_text, so_far

_ABOUT = (
    "A reader is a small model that answers a yes/no about a text in tens of milliseconds. A judge is a "
    "language model that reads a text and answers a question about it. Both run on this server, and "
    "decide what the shipped model is not sure of."
)
_NOT_INSTALLED = with_details(
    "**Judges cannot run here yet**: whoever runs the server installs what runs them.",
    "`pip install 'steelyard[judge]'`",
)
_FILES = (
    "**A file on this server**: a language model (GGUF) or a reader's folder that is copied into {} "
    "stands here as a card too."
)
_NOT_MEASURED = "not measured by us"
_ABOUT_THINKING = (
    "Where the top probability of its first answer is below a bound, it writes before it answers again. "
    "Each change ends its calibration and qualifications; Calibrate then measures gain and cost of thinking."
)
_THINK_BELOW = 0.6
_MOST_DATASETS, _MOST_SHOWN = 200, 5
#: What is recommended, in the order in which it is offered; the last is what is here already.
_SIZES = ("small", "good", "best", "")
#: Whose labels a judge is held to; the samples do not say by whom theirs are.
_LABELLED_BY: dict[str, list[LabelledBy] | None] = {
    "people and experts": None,
    "people, or not said": ["person", "expert", "unknown"],
}
#: Where a connected model that is not of the catalogue is, by how it is asked.
_ORIGINS = {
    "gguf": "a file of this server",
    "hub": "exported into this server",
    "entailment": "a folder of this server",
}


class JudgeSection(Section):
    """The list, and the model that is set up beside it."""

    def build(self) -> list[Viewable]:
        """Return the list and the judge that is open."""
        self.chosen = ""
        #: When a task was seen first, by the judge's name, and how much of it was done then.
        self._began: dict[str, tuple[float, int]] = {}
        self.judges = Loaded("Connected models and judges", self.client.judges.list, self._show)
        self.opened.width = 440
        return [
            heading("Connected models and judges"),
            small_text(_ABOUT),
            self.said,
            self.question,
            side_by_side(self.part(self.judges), self.opened),
        ]

    async def look(self) -> None:
        """Bring a download, a check or a calibration up to date."""
        listed = self.judges.data
        if listed is None or not any(_runs(judge) for judge in listed.data):
            return
        await self.judges.refresh(quietly=True)

    def _show(self, judges: JudgeList) -> Viewable:
        open_judge = next((judge for judge in judges.data if judge.name == self.chosen), None)
        if open_judge is not None:
            self.open_judge(open_judge)
        # Those to try, and those that are here; the rest of the catalogue stands below.
        first = [
            judge
            for judge in judges.data
            if judge.recommended or judge.downloaded or judge.connected or _runs(judge)
        ]
        first.sort(key=lambda judge: _SIZES.index(judge.recommended or ""))
        rest = [judge for judge in judges.data if judge not in first]
        shown: list[Viewable] = [] if judges.runs_here else [empty(_NOT_INSTALLED)]
        shown.append(Choices([self._card(judge) for judge in first], layout="cards", is_small=True))
        if judges.folder:
            shown.append(small_text(_FILES.format(escape_markdown(judges.folder))))
        if rest:
            more = mark_table(
                ("model", "size", "licence", "quality", "state"),
                [
                    (
                        judge.name,
                        _size_of(judge) or "—",
                        judge.licence or "—",
                        _quality_of(judge),
                        _state_of(judge),
                    )
                    for judge in rest
                ],
                label="More models",
                numbers=(1,),
                open_=lambda place: self._open(rest[place]),
                opens="Set it up",
            )
            shown.append(
                pmui.Accordion(("More models", more), sizing_mode="stretch_width", margin=(5, 10))
            )
        return stack(*shown)

    def _card(self, judge: Judge) -> Choice:
        """Return a judge as a card: its identity, how good and how fast it is, and its next step."""
        task = judge.task if _runs(judge) else None
        memory = ((judge.bytes or 0) + WORKING_BYTES) / 1e9
        size = f"{_size_of(judge)}, in {memory:.1f} GB of memory or more" if judge.bytes else ""
        ms = None if judge.check is None else judge.check.p50_ms
        speed = "Speed not measured here" if ms is None else f"{ms:,.0f} ms an answer"
        measured = judge.measured or _NOT_MEASURED
        progress = "" if task is None else f"{so_far(task)}{self._time_left(judge.name, task)}"
        # Exact measures stand in the hint.
        quality = measured.partition(", log loss")[0].capitalize()
        lines = (size, judge.licence, speed, quality, progress)
        label = "Look" if judge.connected or task else "Set it up"
        if task is None and not judge.downloaded:
            label = f"Get it, {_size_of(judge)}".removesuffix(", ")
        return Choice(
            label,
            partial(self._get, judge) if label.startswith("Get it") else partial(self._open, judge),
            title=f"{judge.name} ({judge.recommended})" if judge.recommended else judge.name,
            text="\n".join(line for line in lines if line),
            pill=f"{judge.kind}, {_state_of(judge)}",
            look="filled" if label.startswith("Get it") and judge.recommended else "outlined",
            hint=f"{label}: {judge.name}; {measured}",
        )

    def _open(self, judge: Judge) -> None:
        self.said[:] = []
        self.open_judge(judge)

    def _get(self, judge: Judge) -> None:
        """Open a judge and begin its download."""
        self._open(judge)
        self.first_step.clicks += 1

    def _time_left(self, name: str, task: SetupTask) -> str:
        """Return how long a task goes on at the pace so far; empty while that is not known."""
        at, n = self._began.setdefault(name, (time.monotonic(), task.done))
        done = task.done - n
        if done <= 0 or not task.total:
            return ""
        left = (task.total - task.done) * (time.monotonic() - at) / done
        return f", {left / 60:.0f} min left" if left >= 90 else f", {left:.0f} s left"

    def open_judge(self, judge: Judge) -> None:
        """Show how far a judge is set up, and the next step of it."""
        self.chosen = judge.name
        values = {
            "From": judge.repository or _ORIGINS.get(judge.wire or "gguf", "another server"),
            "Licence": judge.licence or "—",
            "Quality": _quality_of(judge),
            "State": _state_of(judge),
        }
        if judge.context_tokens:
            values["Reads"] = f"{judge.context_tokens:,} tokens"
        if judge.think is not None:
            values["Thinks"] = (
                f"up to {judge.think.tokens:,} tokens where its first answer is below "
                f"{percent_text(judge.think.below)}"
            )
        shown: list[Viewable] = [heading(judge.name, 3), facts(values)]
        if judge.problem is not None:
            shown.append(verdict("unsure", "Not here now.", escape_markdown(judge.problem)))
        if judge.task is not None:
            shown += show_task(judge.task)
        shown += _show_results(judge)
        if not _runs(judge):
            shown += self._steps(judge)
        elif judge.task is not None and judge.task.kind == "download":
            shown.append(self._step("Stop", lambda: self.client.judges.stop(judge.name)))
        self.opened[:] = [*shown, self.close_button()]
        self.opened.visible = True

    def close(self) -> None:
        """Show no judge."""
        self.chosen = ""
        super().close()

    def _steps(self, judge: Judge) -> list[Viewable]:
        judges, name = self.client.judges, judge.name
        if not judge.downloaded:
            label = f"Download {_size_of(judge)}".strip()
            self.first_step = self._step(label, partial(judges.download, name), "contained")
            return [self.first_step]
        if not judge.connected:
            return [self._step("Connect it", partial(judges.connect, name), "contained")]
        route = self._step("Ask it in auto", partial(judges.use_in_route, name))
        # The route auto goes through a reader by itself.
        asks = [] if judge.routes or judge.kind == "reader" else [route]
        check = self._step("Check it", partial(judges.check, name), "contained")
        # The reader that ships stays.
        ends = [] if name == SHIPPED else [self._disconnect_button(name)]
        steps: list[Viewable] = [pn.FlexBox(check, *asks, *ends)]
        self.dataset = pmui.Select(label="Dataset", options={}, width=230)
        self.labelled_by = pmui.Select(label="Labels by", options=list(_LABELLED_BY), width=230)
        datasets = Loaded("The datasets", self._fetch_datasets, self._show_datasets, n_lines=1)
        qualifications = partial(judges.qualifications, name)
        qualified = Loaded("The qualifications", qualifications, show_qualifications, n_lines=2)
        for part in (datasets, qualified):
            part.refresh.scope = self.scope
            part.start()
        return [*steps, datasets.__panel__(), *self._thinking(judge), qualified.__panel__()]

    def _disconnect_button(self, name: str) -> pmui.Button:
        async def do() -> None:
            await asyncio.to_thread(self.client.judges.disconnect, name)
            self.close()
            await self.judges.refresh(quietly=True)

        text = (
            "Requests that name it are refused from then on. Its file and its stored answers stay."
        )
        question, action = f"Disconnect {name}?", "Disconnect it"
        return self.harmful("Disconnect …", question, text, action, do, "Not disconnected.")

    def _thinking(self, judge: Judge) -> list[Viewable]:
        """Return the fields that say when a judge writes before it answers; none of other models."""
        if judge.wire != "gguf":
            return []
        think, set_ = judge.think, partial(self.client.judges.think, judge.name)
        self.below = pmui.FloatInput(
            label="Think below",
            value=_THINK_BELOW if think is None else think.below,
            start=0.01,
            end=0.99,
            step=0.05,
            width=120,
        )
        self.tokens = pmui.IntInput(
            label="Tokens at most",
            value=THOUGHT_TOKENS if think is None else think.tokens,
            start=1,
            end=MAX_THOUGHT_TOKENS,
            step=50,
            width=130,
        )
        fields = {"below": self.below, "tokens": self.tokens}
        steps = [
            self._step(
                "Think",
                lambda: set_(float(self.below.value), tokens=int(self.tokens.value)),
                fields=fields,
            )
        ]
        if think is not None:
            steps.append(self._step("Answer at once", set_))
        return [
            heading("Thinking", 3),
            small_text(_ABOUT_THINKING),
            pn.FlexBox(self.below, self.tokens, *steps, align_items="center"),
        ]

    def _fetch_datasets(self) -> list[Dataset]:
        newest = islice(self.client.datasets.iterate(), _MOST_DATASETS)
        return [dataset for dataset in newest if dataset.method == "sft"]

    def _show_datasets(self, datasets: Sequence[Dataset]) -> Viewable:
        if not datasets:
            return small_text("A calibration, and a qualification, need a dataset with labels.")
        name, judges = self.chosen, self.client.judges
        self.dataset.options = {dataset.name: dataset.id for dataset in datasets}
        self.dataset.value = datasets[0].id
        fields: dict[str, Any] = {"dataset_id": self.dataset}
        start = self._step(
            "Calibrate", lambda: judges.calibrate(name, str(self.dataset.value)), fields=fields
        )
        qualify = self._step(
            "Qualify",
            lambda: judges.qualify(
                name, str(self.dataset.value), labelled_by=_LABELLED_BY[str(self.labelled_by.value)]
            ),
            fields=fields | {"labelled_by": self.labelled_by},
        )
        return pn.FlexBox(self.dataset, start, self.labelled_by, qualify, align_items="center")

    def _step(
        self,
        label: str,
        act: Callable[[], Judge],
        variant: str = "outlined",
        fields: Mapping[str, Any] | None = None,
    ) -> pmui.Button:
        async def do() -> None:
            await asyncio.to_thread(act)
            await self.judges.refresh(quietly=True)

        work: Callable[[], Awaitable[None]] = do
        return self.button(label, work, f"{label}: not done.", fields=fields, variant=variant)


def show_qualifications(listed: QualificationList) -> Viewable:
    """Return whether a judge may be relied on, by which rows, and its earlier qualifications."""
    title = heading("Agreement with people", 3)
    if not listed.data:
        text = (
            "Qualify asks it rows for the check that people labelled, 50 or more, and keeps how far it agrees "
            "with them."
        )
        return pn.Column(title, verdict("off", "Not qualified.", text))
    newest = listed.data[0]
    if newest.voided_by:
        changed = ", ".join(newest.voided_by)
        show = partial(verdict, "unsure", f"Void: it is another by now ({changed}).")
    elif listed.is_qualified:
        show = partial(verdict, "good", "Qualified.")
    else:
        show = partial(verdict, "bad", "Not qualified.")
    kin = f" Of the same file or model, and likely to err alike: {', '.join(newest.kin)}."
    text = (
        f"It agrees in {share_text(newest.agreement)}; {percent_text(newest.floor)} are needed."
        f"{kin if newest.kin else ''}"
    )
    lines = [
        (
            str(each.number),
            share_text(each.agreement),
            share_text(each.accuracy),
            measure_text(each.log_loss),
            ago(each.created_at),
        )
        for each in listed.data[:_MOST_SHOWN]
    ]
    columns = ("no.", "agrees", "right", "log loss", "when")
    return stack(
        title, show(escape_markdown(text)), table(columns, lines, label="What it qualified by")
    )


def _show_results(judge: Judge) -> list[Viewable]:
    shown: list[Viewable] = []
    if judge.check is not None:
        check = judge.check
        values = {
            "Answered": f"{check.answered} of {check.asked}",
            "Typical time": "—" if check.p50_ms is None else f"{check.p50_ms:,.0f} ms",
            "Answers that change with the order (0 % is right)": _share(check.flips_when_reordered),
            "Answers that turn with a negated question (100 % is right)": _share(
                check.flips_when_negated
            ),
            "Says yes (50 % is right)": _share(check.share_of_yes),
            "Probability on the answers (100 % is right)": _share(check.share_on_outcomes),
        }
        if check.share_thought is not None:
            values["Thought first"] = _share(check.share_thought)
        shown += [heading("Check", 3), facts(values)]
    if judge.calibration is not None:
        fit = judge.calibration
        text = (
            f"Loss on rows that it has not seen {fit.log_loss_before:.3f} before, {fit.log_loss_after:.3f} after, on "
            f"{fit.held_out:,} decisions."
        )
        word = "In use." if fit.in_use else "Not kept: the loss is not lower."
        shown += [heading("Calibration", 3), verdict("good" if fit.in_use else "off", word, text)]
        if fit.thinking is not None:
            shown += _show_effect(fit.thinking)
    return shown


def _show_effect(effect: ThinkingEffect) -> list[Viewable]:
    """Show what thinking gained and what it cost, on the rows that a calibration was judged on."""
    changes = {
        "right": (effect.right, ".3f"),
        "log loss": (effect.log_loss, ".3f"),
        "processor ms": (effect.cpu_ms, ",.0f"),
    }
    lines = [
        (name, f"{change.before:{form}}", f"{change.after:{form}}", change_text(change, form))
        for name, (change, form) in changes.items()
        if change is not None
    ]
    tokens = "" if effect.tokens is None else f", {effect.tokens:.0f} tokens each"
    return [
        table(
            ("a decision", "at once", "thinking", "change"),
            lines,
            label="Gain and cost of thinking",
        ),
        small_text(f"It thought about {percent_text(effect.thought.value)} of them{tokens}."),
    ]


def _size_of(judge: Judge) -> str:
    return size_text(judge.bytes) if judge.bytes else ""


def _quality_of(judge: Judge) -> str:
    quality = judge.measured or _NOT_MEASURED
    return quality if judge.recommended is None else f"recommended ({judge.recommended}); {quality}"


def _state_of(judge: Judge) -> str:
    if _runs(judge) and judge.task is not None:
        return DOING[judge.task.kind].lower()
    if not judge.downloaded:
        return "not here"
    if not judge.connected:
        return "here, not connected"
    parts = ["connected", *(["calibrated"] if judge.calibrated else [])]
    parts += [f"asked in {route}" for route in judge.routes]
    return ", ".join(parts)


def _runs(judge: Judge) -> bool:
    return judge.task is not None and judge.task.status == "running"


def _share(value: float | None) -> str:
    return "—" if value is None else percent_text(value)
