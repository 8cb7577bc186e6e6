"""A question that was asked, kept as a row of a dataset with the right answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.client.answers import DecideAnswer
from steelyard.datasets.rows import read_task
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard.wire.decoding import decoder_of
from steelyard.wire.violations import Violations
from steelyard_workbench.kit.components.tab_memory import TabMemory
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.states import empty, verdict
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.parts.datasets.names import dataset_options

#: The most datasets that are looked at for one that can take the row, those used last.
_MOST_DATASETS = 25
_NONE = "—"
_NEW = "new dataset…"
#: What of a request is part of a row.
_OF_ROW = ("context", "images", "decisions")


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
        known = _by_id(rows[0].decisions if rows else [])
        by_id = _by_id(decisions)
        if not by_id or not by_id.keys() <= known.keys():
            continue
        if all(by_id[name][0] == known[name][0] for name in by_id):
            takers.append(Taker(dataset))
        elif all(set(by_id[name][1]) == set(known[name][1]) for name in by_id):
            takers.append(Taker(dataset, [known[name][2] for name in by_id]))
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


class SaveRow(Viewer):
    """Saves what was asked as a row, with the outcomes that the person says are right.

    Parameters
    ----------
    answers : sequence of DecideAnswer
        What models said; it is never taken for what is right.
    labels : mapping
        Decision to the outcome that is known to be right, of a row that was asked about.
    """

    def __init__(
        self,
        session: Session,
        request: Mapping[str, Any],
        answers: Sequence[DecideAnswer],
        labels: Mapping[str, str],
        scope: Scope,
    ) -> None:
        super().__init__()
        self._session, self._request = session, request
        self._takers: dict[str, Taker] = {}
        self.dataset = pmui.Select(
            label="Dataset", options={_NEW: ""}, value="", width=280, size="small"
        )
        self.new_name = pmui.TextInput(
            label="Name of the new dataset", value="my_questions", width=240, size="small"
        )
        self.side = pmui.Select(
            label="Side", options=["training", "evaluation"], width=140, size="small"
        )
        self.right = {
            name: pmui.Select(
                label=f"Right for {name}",
                options=[_NONE, *answers[0].decisions[name].probabilities],
                value=labels.get(name, _NONE),
                width=200,
                size="small",
            )
            for name in answers[0].decisions
        }
        self.said = pn.Column(sizing_mode="stretch_width")
        self.save = Write(
            self._save,
            "Not saved:",
            self.said,
            refused="Save as a row",
            scope=scope,
            fields={"name": self.new_name},
        )
        button = pmui.Button(label="Save as a row", variant="outlined", size="small")
        button.on_click(self.save.on_event)
        pn.bind(self._fit, self.dataset, watch=True)
        self._memory = TabMemory(
            key=f"waiting rows {session.account}", text=_write(session.waiting_rows)
        )
        pn.bind(self._remember, self._memory.param.text, watch=True)
        self.fields = pn.Column(
            pmui.Typography("Keep it as a row of a dataset: say what is right.", variant="body2"),
            pn.FlexBox(*self.right.values()),
            pn.FlexBox(self.dataset, self.new_name, self.side, button, align_items="center"),
            self._memory,
            self.said,
            sizing_mode="stretch_width",
        )
        self.part: Loaded[list[Taker]] = Loaded("The datasets", self._fetch, self._show, n_lines=1)

    def __panel__(self) -> Viewable:
        return self.part.__panel__()

    def _fetch(self) -> list[Taker]:
        return find_takers(self._session.client, self._request["decisions"])

    def _show(self, takers: Sequence[Taker]) -> Viewable:
        self._takers = {taker.dataset.id: taker for taker in takers}
        chosen = self._session.dataset
        self.dataset.param.update(
            options={_NEW: "", **_names_of(takers)},
            value=chosen if chosen in self._takers else "",
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

    def _fit(self, chosen: str) -> None:
        self.new_name.visible = not chosen

    async def _save(self) -> None:
        labels = {name: field.value for name, field in self.right.items() if field.value != _NONE}
        if not labels:
            self.said[:] = [empty("Say which outcome is right, of one decision at least.")]
            return
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
        given: dict[str, Any] = {str(self.side.value): [row]}
        made = await asyncio.to_thread(
            self._session.client.datasets.add_rows, taker.dataset.id, **given
        )
        text = f"version {made.version} of {taker.dataset.name} has it."
        self._tell_saved(taker.dataset.id, text)

    async def _start_dataset(self, row: dict[str, Any]) -> None:
        """Make a dataset of the rows that wait for it, once there are as many as one needs."""
        name = str(self.new_name.value).strip()
        if not name:
            self.said[:] = [empty("Give the new dataset a name.")]
            return
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
            self.said[:] = [verdict("running", f"It waits for {name}.", status)]
            return
        given: dict[str, Any] = {
            side: [waiting_row["row"] for waiting_row in rows if waiting_row["side"] == side]
            for side in ("training", "evaluation")
        }
        made = await asyncio.to_thread(
            client.datasets.create, name, **{side: sent for side, sent in given.items() if sent}
        )
        self._wait({key: waiting_rows for key, waiting_rows in waiting.items() if key != name})
        self._session.dataset = made.id
        self._tell_saved(made.id, f"{name} has {made.rows} rows.")
        self.part.start()

    def _tell_saved(self, dataset_id: str, text: str) -> None:
        go = pmui.Button(label="Open the dataset", variant="text", size="small")
        go.on_click(lambda _: self._session.open("datasets", dataset=dataset_id, version=0))
        if not self.save.scope.say_if_ended(f"Saved: {text}"):
            self.said[:] = [verdict("good", f"Saved: {text}"), go]


_decode_waiting = decoder_of(dict[str, list[dict[str, Any]]]).decode


def _write(waiting: Mapping[str, Any]) -> str:
    return msgspec.json.encode(waiting).decode() if waiting else ""


def _names_of(takers: Sequence[Taker]) -> dict[str, str]:
    reworded = {taker.dataset.id for taker in takers if taker.decisions is not None}
    options = dataset_options([taker.dataset for taker in takers])
    return {
        f"{name}, with its wording" if id_ in reworded else name: id_
        for name, id_ in options.items()
    }
