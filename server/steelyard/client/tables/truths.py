"""One right answer for each question about a context, and one side: rows that break it are skipped."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from steelyard.client.packed_lines import PackedLines
from steelyard.client.tables.converted import Converted
from steelyard.datasets.canonical import canonical_json
from steelyard.datasets.wire import MAX_PAGE_ROWS, SIDES, Dataset, Example, Side
from steelyard.decisions.contexts import plain_hash
from steelyard.imports.table import Refused
from steelyard.wire.decoding import decode

if TYPE_CHECKING:
    from steelyard.client import Client

#: The place of a truth that the dataset has already.
_IN_DATASET = -1
_BUT_FOR = "but for case, blanks, markup or quoted mail"
#: Pairs of rows that a note names.
_MOST_NAMED = 5


class _Row(msgspec.Struct):
    context: Any = None
    images: Any = None
    decisions: Any = ()
    targets: Any = ()


def with_single_truths(made: Converted) -> Converted:
    """Return the rows of a file without those that label a context otherwise than a row above.

    Near copies stay; a note counts those with another label and, where the file names no sides, all.
    """
    contexts, labelled, plain = array("q"), array("q"), array("q")
    for row in map(_read, made.lines):
        contexts.append(_context(row))
        if row is not None and row.targets:
            labelled.append(contexts[-1])
            plain.append(plain_hash(row.context, row.images))
    known, counts = np.unique(np.frombuffer(contexts, np.int64), return_counts=True)
    _, first = np.unique(np.frombuffer(labelled, np.int64), return_index=True)
    forms, n_contexts = np.unique(np.frombuffer(plain, np.int64)[first], return_counts=True)
    n_near = len(first) - len(forms)
    if n_near and made.sides is None:
        say = "context says" if n_near == 1 else "contexts say"
        made.notes.append(
            f"{n_near:,} {say} the same as another of the file, {_BUT_FOR}. Where training and evaluation "
            "are split by chance, one may be on each side; leave such copies out."
        )
    single = _without_others(made, set(known[counts > 1].tolist()), {})
    return _with_near_truths(single, set(forms[n_contexts > 1].tolist()), {})


def with_truths_of(made: Converted, client: Client, dataset: Dataset) -> Converted:
    """Return the rows of a file without those that a dataset labels otherwise, or has on the other side.

    Those are near copies of contexts of its evaluation side that are not for evaluation, and the
    other way round.
    """
    contexts, plain = set[int](), set[int]()
    for row in map(_read, made.lines):
        contexts.add(_context(row))
        if row is not None:
            plain.add(plain_hash(row.context, row.images))
    truths: dict[int, tuple[int, int]] = {}
    near_truths: dict[int, tuple[int, int]] = {}
    exact, near = set[int](), dict[int, Side]()
    for side in SIDES if made.n_rows else ():
        for each in _rows_of(client, dataset, side):
            images = None if each.images is msgspec.UNSET else each.images
            row = _Row(each.context, images, each.decisions, each.targets)
            if (context := _context(row)) in contexts:
                exact.add(context)
                for key, truth, _ in _truths(row):
                    truths.setdefault(key, (truth, _IN_DATASET))
            same = plain_hash(row.context, row.images)
            if same in plain:
                near_truths |= {key: (truth, _IN_DATASET) for key, truth, _ in _truths(row, same)}
                if near.get(same) != "evaluation":
                    near[same] = side
    single = _without_copies(_without_others(made, contexts, truths), exact, near)
    return _with_near_truths(single, plain, near_truths)


def _rows_of(client: Client, dataset: Dataset, side: Side) -> Iterator[Example]:
    offset, has_more = 0, True
    while has_more:
        page = client.datasets.rows(dataset.id, partition=side, offset=offset, limit=MAX_PAGE_ROWS)
        yield from page.data
        offset, has_more = offset + len(page.data), page.has_more


def _without_copies(made: Converted, exact: Collection[int], near: Mapping[int, Side]) -> Converted:
    """Return rows without near copies of contexts that a dataset has on another side; exact ones keep theirs."""
    lines, refused = PackedLines(), list(made.refused)
    files = made.files
    n_left = n_open = 0
    for place, line in enumerate(made.lines):
        row = _read(line)
        other = None
        if row is not None and _context(row) not in exact:
            other = near.get(plain_hash(row.context, row.images))
        side = None if made.sides is None else made.sides[place]
        n_open += other == "training" and side is None
        if other is None or side == other or (other == "training" and side is None):
            lines.append(line)
            continue
        n_left += 1
        lines.append(b"\n")
        reason = (
            f"Its context is in the dataset, {_BUT_FOR}, on the {other} side; a model may not be trained "
            "and judged on it."
        )
        refused.append(_refused(made, files, place, reason))
    notes = list(made.table.notes)
    if n_left:
        have = "context is" if n_left == 1 else "contexts are"
        notes.append(f"{n_left:,} {have} in the dataset on the other side, {_BUT_FOR}: left out.")
    if n_open:
        have = "context is" if n_open == 1 else "contexts are"
        notes.append(
            f"{n_open:,} {have} in the dataset on the training side, {_BUT_FOR}; where the sides are "
            "split by chance, a copy may be evaluated. Name the side to be sure."
        )
    replies = {place: reply for place, reply in made.replies.items() if lines[place] != b"\n"}
    table = replace(made.table, notes=notes)
    return replace(made, table=table, lines=lines, refused=refused, replies=replies)


def _without_others(
    made: Converted, contexts: Collection[int], truths: dict[int, tuple[int, int]]
) -> Converted:
    lines, refused = PackedLines(), list(made.refused)
    n_in_dataset = n_in_file = 0
    files = made.files
    for place, line in enumerate(made.lines):
        row = _read(line)
        other = None
        if row is not None and _context(row) in contexts:
            of_row = list(_truths(row))
            other = next(
                (
                    (id_, known[1])
                    for key, truth, id_ in of_row
                    if (known := truths.get(key)) is not None and known[0] != truth
                ),
                None,
            )
            if other is None:
                for key, truth, _ in of_row:
                    truths.setdefault(key, (truth, place))
        if other is None:
            lines.append(line)
            continue
        # An empty line keeps the others in their places.
        lines.append(b"\n")
        id_, at = other
        if at == _IN_DATASET:
            n_in_dataset += 1
            reason = (
                f"Its context has another label of {id_} in the dataset; correct it in a draft."
            )
        else:
            n_in_file += 1
            reason = (
                f"Its context has another label of {id_} in {_refused(made, files, at, '').place}; keep "
                "the one that is right, or give the share of each in one row."
            )
        refused.append(_refused(made, files, place, reason))
    notes = list(made.table.notes)
    for n, where, do in (
        (n_in_dataset, "in the dataset", "corrections go by a draft"),
        (n_in_file, "in rows above", "one context with one question has one right answer"),
    ):
        if n:
            have = "context has" if n == 1 else "contexts have"
            notes.append(f"{n:,} {have} another label {where}: {do}.")
    replies = {place: reply for place, reply in made.replies.items() if lines[place] != b"\n"}
    table = replace(made.table, notes=notes)
    return replace(made, table=table, lines=lines, refused=refused, replies=replies)


def _with_near_truths(
    made: Converted, forms: Collection[int], truths: dict[int, tuple[int, int]]
) -> Converted:
    """Return rows with a note on those that label a near copy of a context otherwise.

    ``truths`` has those of a dataset, which are alone compared where there are any.
    """
    files = made.files
    is_in_file = not truths
    pairs: dict[int, int] = {}
    for place, line in enumerate(made.lines if forms else ()):
        row = _read(line)
        if row is None or (form := plain_hash(row.context, row.images)) not in forms:
            continue
        for key, truth, _ in _truths(row, form):
            other = truths.setdefault(key, (truth, place)) if is_in_file else truths.get(key)
            if other is not None and other[0] != truth:
                pairs.setdefault(place, other[1])
    if not pairs:
        return made
    named = [
        _refused(made, files, place, "").place
        + ("" if other == _IN_DATASET else f" and {_refused(made, files, other, '').place}")
        for place, other in list(pairs.items())[:_MOST_NAMED]
    ]
    rows = "1 row has" if len(pairs) == 1 else f"{len(pairs):,} rows have"
    note = (
        f"{rows} another label than {'a row above' if is_in_file else 'the dataset'} with the same "
        f"context, {_BUT_FOR} ({'; '.join(named)}{'; …' if len(pairs) > len(named) else ''}): one context "
        "with one question has one right answer. Correct the wrong label, or leave the copy out."
    )
    return replace(made, table=replace(made.table, notes=[*made.table.notes, note]))


def _refused(made: Converted, files: Sequence[str], place: int, reason: str) -> Refused:
    number = made.places[place]
    line, cells = made.row_at(number)
    return Refused(line, reason, cells, files[number] if files else "")


def _read(line: bytes) -> _Row | None:
    try:
        return decode(line, _Row)
    except msgspec.MsgspecError:
        return None  # a server names the problem


def _context(row: _Row | None) -> int:
    return 0 if row is None else hash((canonical_json(row.context), canonical_json(row.images)))


def _truths(row: _Row, context: int | None = None) -> Iterator[tuple[int, int, str]]:
    """Yield for each label a key of its question, its truth, and its decision's id.

    ``context`` is a hash of the context, the exact one by default.
    """
    if not isinstance(row.targets, dict) or not isinstance(row.decisions, list | tuple):
        return
    context = _context(row) if context is None else context
    questions = {
        decision.get("id"): decision.get("question")
        for decision in row.decisions
        if isinstance(decision, dict)
    }
    for id_, target in row.targets.items():
        shares = {target: 1} if isinstance(target, str) else target
        if isinstance(shares, dict):
            shares = {name: share for name, share in shares.items() if share}
        key = hash((context, id_, canonical_json(questions.get(id_))))
        yield key, hash(canonical_json(shares)), str(id_)
