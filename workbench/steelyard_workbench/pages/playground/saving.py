"""Was it right? One press says so of the answer, and keeps the request as a row of a dataset."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.answers import DecideAnswer
from steelyard.datasets.rows import read_task
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard.wire.decoding import decoder_of
from steelyard.wire.violations import Violations
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.unseen import TabMemory
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.kit.views import card, empty, heading, verdict
from steelyard_workbench.kit.words import escape_markdown, is_free
from steelyard_workbench.parts.datasets.names import dataset_options

#: The most datasets that are looked at for one that can take the row, those used last.
_MOST_DATASETS = 25
_NONE = "—"
_NEW = "new dataset…"
#: What of a request is part of a row.
_OF_ROW = ("context", "images", "decisions")
_decode_waiting = decoder_of(dict[str, list[dict[str, Any]]]).decode


@dataclass(frozen=True, slots=True)
class Taker:
    """A dataset that can take a row, with its own decisions where it words them otherwise."""

    dataset: Dataset
    decisions: list[Any] | None = None


def find_takers(client: Client, decisions: Sequence[Any]) -> list[Taker]:
    """Return the datasets that ask these decisions: of the same ids and outcomes."""
    takers = []
    for dataset in client.datasets.list(limit=_MOST_DATASETS).data:
        if dataset.method != "sft" or dataset.archived_at is not None:
            continue
        try:
            rows = client.datasets.search(dataset.id, limit=1).data
        except SteelyardError:  # it was deleted meanwhile, or its rows cannot be read
            continue
        own = _by_id(rows[0].decisions if rows else [])
        by_id = _by_id(decisions)
        if not by_id or not by_id.keys() <= own.keys():
            continue
        if all(by_id[name][0] == own[name][0] for name in by_id):
            takers.append(Taker(dataset))
        elif all(set(by_id[name][1]) == set(own[name][1]) for name in by_id):
            takers.append(Taker(dataset, [own[name][2] for name in by_id]))
    return takers


def _by_id(decisions: Sequence[Any]) -> dict[str, tuple[bytes, tuple[str, ...], Any]]:
    """Return the wording, the outcomes and the decision itself, by id; nothing of a bad one."""
    task, outcomes = read_task({"decisions": list(decisions)}, Violations())
    if task is None:
        return {}
    return {
        read.id: (read.fingerprint, outcomes[read.id] or (), sent)
        for read, sent in zip(task.decisions, decisions, strict=True)
    }


def _outcome_field(name: str, outcomes: Iterable[str], value: str) -> pmui.Select:
    options = [_NONE, *outcomes]
    return pmui.Select(
        label=f"Right for {name}", options=options, value=value, width=200, size="small"
    )


class WasItRight(Boxed):
    """Asks whether answers were right: feedback on them, and a row with the outcomes that are.

    Answers of different models count as right only once pressed. ``labels`` are the known outcomes
    of a row that was asked about. ``ask_again`` asks the same and stores the answer, where it was
    not stored and costs nothing; it blocks.
    """

    def __init__(
        self,
        session: Session,
        request: Mapping[str, Any],
        answers: Sequence[DecideAnswer],
        labels: Mapping[str, str],
        scope: Scope,
        ask_again: Callable[[], DecideAnswer] | None = None,
    ) -> None:
        super().__init__()
        self._session, self._request, self._ask_again = session, request, ask_again
        self._takers: dict[str, Taker] = {}
        #: Stored answers, on which feedback is given.
        self._ids = [answer.id for answer in answers] if request["store"] else []
        self.dataset = pmui.Select(
            label="Keeps the text in", options={_NEW: ""}, value="", width=220, size="small"
        )
        self.new_name = pmui.TextInput(
            label="Name of the new dataset", value="my_questions", width=200, size="small"
        )
        sides = {"training": "training", "the check": "evaluation"}
        self.side = pmui.Select(
            label="For", options=sides, value="training", width=120, size="small"
        )
        decisions, self._price_usd = answers[0].decisions, answers[0].charge.amount_usd
        self._tops = {name: result.top for name, result in decisions.items()}
        self.right = {
            name: _outcome_field(name, result.probabilities, labels.get(name, _NONE))
            for name, result in decisions.items()
        }
        self.said = stack()
        named = {"name": self.new_name}
        self.save = Write(
            self._save, "Not kept:", self.said, refused="Keep it", scope=scope, fields=named
        )
        keep = Choices([Choice("Keep it", self.save.start, look="filled")])
        self.choose = pn.FlexBox(*self.right.values(), keep)
        is_single = len(answers) == 1
        self.choose.visible = bool(labels) or not is_single
        self.buttons = Choices(self._offer_presses() if is_single else [], layout="row")
        fit = self.new_name.param.update
        pn.bind(lambda id_: fit(visible=not id_), self.dataset, watch=True)
        self._memory = TabMemory(
            key=f"waiting rows {session.account}", text=_write(session.waiting_rows)
        )
        pn.bind(self._remember, self._memory.param.text, watch=True)
        place = pn.FlexBox(self.dataset, self.new_name, self.side, visible=False)
        change = action_button(
            "Change where",
            lambda _: place.param.update(visible=not place.visible),
            variant="text",
            size="small",
        )
        keeps = small_text(pn.bind(self._keeps, self.dataset, self.new_name, self.side))
        head = pn.FlexBox(
            heading("Was it right?"), self.buttons, align_items="center", gap="0 16px"
        )
        self.fields = card(
            head,
            self.choose,
            pn.FlexBox(keeps, change, align_items="center"),
            place,
            self._memory,
            self.said,
        )
        fetch = partial(find_takers, session.client, request["decisions"])
        self.part: Loaded[list[Taker]] = Loaded("The datasets", fetch, self._show, n_lines=1)
        self._box = self.part

    def _keeps(self, dataset_id: str, new_name: str, side: str) -> str:
        """Return where a press keeps the text, in words."""
        taker = self._takers.get(dataset_id)
        name = escape_markdown(new_name if taker is None else taker.dataset.name)
        use = "to train on" if side == "training" else "for the check"
        return f"One press tells Live, and keeps the text in **{name}**, {use}."

    def _offer_presses(self) -> list[Choice]:
        """Return yes, and no: with the other outcome where there are two, else with a choice."""
        tops = self._tops
        yes = Choice("Yes, it was", lambda: self._keep(tops), look="outlined")
        if len(tops) == 1:
            [(name, top)] = tops.items()
            others = [other for other in self.right[name].options if other not in {_NONE, top}]
            if len(others) == 1:
                label, keep = f"No, it is “{others[0]}”", partial(self._keep, {name: others[0]})
                return [yes, Choice(label, keep, look="outlined")]
        open_ = partial(self.choose.param.update, visible=True)
        return [yes, Choice("No…", open_, look="outlined")]

    def _keep(self, outcomes: Mapping[str, str]) -> None:
        """Choose the right outcome, and keep it."""
        for name, outcome in outcomes.items():
            self.right[name].value = outcome
        self.save.start()

    def _show(self, takers: Sequence[Taker]) -> Viewable:
        self._takers = {taker.dataset.id: taker for taker in takers}
        dataset_id = self._session.dataset
        self.dataset.param.update(
            options={_NEW: "", **_names_of(takers)},
            value=dataset_id if dataset_id in self._takers else "",
        )
        return self.fields

    def _remember(self, text: str) -> None:
        """Take the rows that waited before the page was loaded again."""
        if text and not self._session.waiting_rows:
            with contextlib.suppress(msgspec.MsgspecError):  # of another version: forgotten
                self._session.waiting_rows = _decode_waiting(text)
            names = ", ".join(self._session.waiting_rows)
            self.said[:] = [verdict("running", "Rows wait.", f"They are kept for {names}.")]

    def _wait(self, waiting: dict[str, list[Any]]) -> None:
        """Note which rows wait, in this session and in the tab."""
        self._session.waiting_rows = waiting
        self._memory.text = _write(waiting)

    async def _save(self) -> None:
        labels = {name: field.value for name, field in self.right.items() if field.value != _NONE}
        if not labels:
            self.choose.visible = True
            self.said[:] = [empty("Say which answer is right, of one question at least.")]
            return
        await asyncio.to_thread(self._send_feedback, labels)
        row = {
            **{name: self._request[name] for name in _OF_ROW if name in self._request},
            "targets": {name: {outcome: 1.0} for name, outcome in labels.items()},
        }
        taker = self._takers.get(str(self.dataset.value))
        if taker is None:
            await self._start_dataset(row)
            return
        if taker.decisions is not None:
            row["decisions"] = taker.decisions
        rows: dict[str, Any] = {str(self.side.value): [row]}
        version = await asyncio.to_thread(
            self._session.client.datasets.add_rows, taker.dataset.id, **rows
        )
        text = f"version {version.version} of {taker.dataset.name} has it."
        self._tell_saved(taker.dataset.id, text)

    def _send_feedback(self, labels: Mapping[str, str]) -> None:
        """Send the right outcomes of the stored answers; one that costs nothing is stored for it."""
        if not self._ids and self._ask_again is not None and is_free(self._price_usd):
            self._ids = [self._ask_again().id]
        for decision_id in self._ids:
            self._session.client.feedback(decision_id, labels, by="person")

    async def _start_dataset(self, row: dict[str, Any]) -> None:
        """Make a dataset of the rows that wait for it, once there are as many as one needs."""
        name = needed(self.new_name, "Write a name for the new dataset.")
        client, waiting = self._session.client, self._session.waiting_rows
        rows = [waiting_row for waiting_row in waiting.get(name, []) if waiting_row["row"] != row]
        rows.append({"row": row, "side": str(self.side.value)})
        limits = await asyncio.to_thread(client.capabilities)
        least = limits.limits["dataset_min_rows"]
        if len(rows) < least:
            self._wait({**waiting, name: rows})
            status = (
                f"{len(rows)} of the {least} rows that a dataset needs. Ask another question and "
                f"save it under the same name: both are then stored. Until then this browser tab has it."
            )
            self.said[:] = [
                verdict("running", f"It waits for {name}.", status + self._feedback_text())
            ]
            return
        by_side: dict[str, Any] = {
            side: [waiting_row["row"] for waiting_row in rows if waiting_row["side"] == side]
            for side in ("training", "evaluation")
        }
        dataset = await asyncio.to_thread(
            client.datasets.create, name, **{side: sent for side, sent in by_side.items() if sent}
        )
        self._wait({key: waiting_rows for key, waiting_rows in waiting.items() if key != name})
        self._session.dataset = dataset.id
        self._tell_saved(dataset.id, f"{name} has {dataset.rows} rows.")
        self.part.start()

    def _feedback_text(self) -> str:
        return " Live has it as feedback." if self._ids else ""

    def _tell_saved(self, dataset_id: str, text: str) -> None:
        go = action_button(
            "Open the dataset",
            lambda _: self._session.open("datasets", dataset=dataset_id, version=0),
            variant="text",
            size="small",
        )
        if not self.save.scope.say_if_ended(f"Kept: {text}"):
            self.said[:] = [verdict("good", f"Kept: {text}", self._feedback_text()), go]


def _write(waiting: Mapping[str, Any]) -> str:
    return msgspec.json.encode(waiting).decode() if waiting else ""


def _names_of(takers: Sequence[Taker]) -> dict[str, str]:
    reworded = {taker.dataset.id for taker in takers if taker.decisions is not None}
    options = dataset_options([taker.dataset for taker in takers])
    return {
        f"{name}, with its wording" if id_ in reworded else name: id_
        for name, id_ in options.items()
    }
