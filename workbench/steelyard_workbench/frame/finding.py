"""The search over everything: pages, datasets, models, and rows with its words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from steelyard.client import Client
from steelyard.client.display import cut_context
from steelyard.errors import SteelyardError
from steelyard.people.wire import CurrentSession
from steelyard_workbench.frame.navigation import entries_for
from steelyard_workbench.kit.components.unseen import Finder
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.parts.review.row_filter import RowFilter, write_query

#: Results of each kind.
_MOST = 5
#: Datasets and models that are looked through by name.
_LOOKED_THROUGH = 200
#: Datasets whose rows are searched: the one that is open, and the newest.
_ROWS_OF = 3
#: Characters of a search from which rows are looked for, and those of a row that are shown.
_LEAST, _SHOWN = 3, 90


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Something found, and where choosing it goes."""

    kind: str
    label: str
    note: str = ""
    goes: dict[str, Any] = field(default_factory=dict)


def find_pages(text: str, who: CurrentSession | None = None) -> list[SearchHit]:
    """Return the pages in a person's menu whose title has a text."""
    lowered = text.lower()
    return [
        SearchHit("page", entry.title, goes={"page": entry.slug})
        for entry in entries_for(who)
        if lowered in entry.title.lower()
    ]


def find_datasets(client: Client, text: str) -> list[SearchHit]:
    """Return the datasets whose name or id has a text, newest first."""
    lowered = text.lower()
    return [
        SearchHit(
            "dataset",
            dataset.name,
            f"{dataset.rows:,} rows",
            {"page": "datasets", "dataset": dataset.id, "version": 0},
        )
        for dataset in client.datasets.list(limit=_LOOKED_THROUGH).data
        if lowered in f"{dataset.name} {dataset.id}".lower()
    ][:_MOST]


def find_models(client: Client, text: str) -> list[SearchHit]:
    """Return the families and the other models whose name has a text."""
    lowered = text.lower()
    models = (
        SearchHit(
            "family", model.name, model.note, {"page": "families", "family": model.name, "job": ""}
        )
        if model.kind == "family"
        else SearchHit(
            "model",
            model.name,
            model.reason or "",
            {"page": "playground", "model": model.name, "named": ""},
        )
        for model in client.models.choices()
        if lowered in model.name.lower()
    )
    return list(islice(models, _MOST))


def find_rows(client: Client, text: str, dataset: str) -> list[SearchHit]:
    """Return rows with the words of a text, of the dataset that is open and of the newest."""
    if len(text.strip()) < _LEAST:
        return []
    names = {listed.id: listed.name for listed in client.datasets.list(limit=_LOOKED_THROUGH).data}
    ids = list(dict.fromkeys([*([dataset] if dataset in names else []), *names]))[:_ROWS_OF]
    matches: list[SearchHit] = []
    for dataset_id in ids:
        page = client.datasets.search(dataset_id, text=text, limit=_MOST - len(matches))
        query = write_query(RowFilter(words=text), "all")
        matches += [
            SearchHit(
                "row",
                cut_context(row.context)[:_SHOWN],
                names[dataset_id],
                {"page": "datasets", "dataset": dataset_id, "version": 0, "query": query},
            )
            for row in page.data
        ]
        if len(matches) >= _MOST:
            break
    return matches


class Finding:
    """The search of one browser: answers the latest text alone, and opens the selected result."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.finder = Finder()
        self.finder.on_msg(lambda event: self._on_message(**event.data))
        self.find = Task(self._find, on_failure=self._tell_failure)
        self._found: tuple[int, Sequence[SearchHit]] = (0, ())

    def open(self) -> None:
        """Show the search."""
        self.finder.opened += 1

    def choose(self, n: int, place: int) -> None:
        """Go to a result of the answer with a number."""
        number, matches = self._found
        if n == number and 0 <= place < len(matches):
            goes = dict(matches[place].goes)
            self._session.open(goes.pop("page"), **goes)

    def _on_message(self, *, n: int, text: str = "", chosen: int = -1) -> None:
        if chosen >= 0:
            self.choose(n, chosen)
        else:
            self.find.start(text[:200], n)

    async def _find(self, text: str, n: int) -> None:
        text = text.strip()
        client, dataset = self._session.client, self._session.dataset
        matches = find_pages(text, self._session.who)
        if text:
            matches += await _gather(
                lambda: find_datasets(client, text),
                lambda: find_models(client, text),
                lambda: find_rows(client, text, dataset),
            )
        self._found = (n, matches)
        self._tell(n, matches, "" if matches else "No matches. Try fewer words.")

    def _tell_failure(self, error: Exception) -> None:
        self._tell(self._found[0], [], f"Not searched: {error}")

    def _tell(self, n: int, matches: Sequence[SearchHit], message: str) -> None:
        entries = [
            {"kind": match.kind, "label": match.label, "note": match.note} for match in matches
        ]
        self.finder.answer = {"n": n, "found": entries, "said": message}


async def _gather(*searches: Callable[[], list[SearchHit]]) -> list[SearchHit]:
    """Return the results of several searches; a search that fails is left out."""
    answers = await asyncio.gather(
        *(asyncio.to_thread(search) for search in searches), return_exceptions=True
    )
    matches: list[SearchHit] = []
    for answer in answers:
        if isinstance(answer, list):
            matches += answer
        elif not isinstance(answer, SteelyardError):
            raise answer
    return matches
