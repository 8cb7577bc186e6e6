"""The annotators of imported rows and their answers, recorded in a draft for Review."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from steelyard.client.tables.converted import Converted
from steelyard.datasets.wire import MAX_PAGE_ROWS, Dataset
from steelyard.errors import SteelyardError
from steelyard.review.wire import MAX_EDITS

if TYPE_CHECKING:
    from steelyard.client import Client

#: The most rows of several people that a draft takes.
_MOST_SEVERAL = 10_000

_Answers = list[dict[str, Any]]


@dataclass(slots=True)
class Recorded:
    """A draft with people's answers to rows."""

    #: The draft.
    draft_id: str
    #: Rows of which something was recorded, those of several people, those on which they differ.
    n_rows: int = 0
    n_several: int = 0
    n_disputed: int = 0
    #: Rows of several people beyond those that a draft takes.
    n_left: int = 0

    @property
    def summary(self) -> str:
        """The recorded answers, in words."""
        text = (
            f"Who said what is in the draft {self.draft_id} (Review): {self.n_rows:,} rows, "
            f"{self.n_several:,} of several people, who differ on {self.n_disputed:,}."
        )
        if self.n_left:
            text += (
                f" A draft takes {_MOST_SEVERAL:,} rows of several people; {self.n_left:,} more are "
                "in the dataset alone, with the share of each answer."
            )
        return text


def record_answers(client: Client, dataset: Dataset, made: Converted) -> Recorded | None:
    """Record the answers of a file's annotators in a new draft; ``None`` where none are named.

    ``dataset``: the draft of ``made``, or the one that got its rows.
    """
    if not made.replies:
        return None
    try:
        return _record(client, dataset, made)
    except SteelyardError as error:
        error.add_note(
            f"The dataset {dataset.id} has the rows; what people said of them was not recorded whole."
        )
        raise


def _record(client: Client, dataset: Dataset, made: Converted) -> Recorded:
    by_key: dict[str, dict[str, dict[str, Any]]] = {}
    for place, answers in made.replies.items():
        row = json.loads(made.lines[place])
        of_row = by_key.setdefault(_key(row["context"], row["targets"]), {})
        for answer in answers:
            # A text that is there twice with one label is one row.
            of_row.setdefault(answer.get("reviewer", ""), answer)
    draft = client.drafts.create(dataset.id, name=f"{dataset.name}: answers"[:128])
    recorded = Recorded(draft.id)
    by_row = {row: list(answers.values()) for row, answers in _places(client, draft.id, by_key)}
    several = [row for row, answers in by_row.items() if _n_votes(answers) > 1]
    for row in several[_MOST_SEVERAL:]:
        del by_row[row]
    recorded.n_left = max(0, len(several) - _MOST_SEVERAL)
    for batch in _batches(by_row):
        done = client.drafts.import_answers(draft.id, batch)
        recorded.n_rows += done.rows
        recorded.n_several += done.several
        recorded.n_disputed += done.disputed
    return recorded


def _n_votes(answers: _Answers) -> int:
    return sum("outcomes" in answer for answer in answers)


def _places(
    client: Client, draft_id: str, by_key: Mapping[str, dict[str, dict[str, Any]]]
) -> Iterator[tuple[int, dict[str, dict[str, Any]]]]:
    """Yield the place of each row that something was said of."""
    left = set(by_key)
    offset = 0
    while left:
        page = client.drafts.rows(draft_id, "all", offset=offset, limit=MAX_PAGE_ROWS)
        for row in page.data:
            key = _key(row.context, {} if row.targets is UNSET else row.targets)
            if key in left:
                left.discard(key)
                yield row.row, by_key[key]
        offset += len(page.data)
        if not page.has_more:
            return


def _batches(by_row: Mapping[int, _Answers]) -> Iterator[_Answers]:
    """Yield answers as calls take them: all of a row in one, rows of the same people together."""
    batch: _Answers = []
    for row in sorted(
        by_row, key=lambda row: [answer.get("reviewer", "") for answer in by_row[row]]
    ):
        if batch and len(batch) + len(by_row[row]) > MAX_EDITS:
            yield batch
            batch = []
        batch += [{"row": row, **answer} for answer in by_row[row]]
    if batch:
        yield batch


def _key(context: Any, targets: Mapping[str, Any]) -> str:
    """Return a key of a row: its context and its labels, in normal form."""
    labels = [
        (decision, outcome, round(share, 3))
        for decision, label in sorted(targets.items())
        for outcome, share in sorted((label if isinstance(label, dict) else {label: 1.0}).items())
        if share
    ]
    return json.dumps([context, labels], sort_keys=True)
