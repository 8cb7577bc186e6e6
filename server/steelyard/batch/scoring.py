"""Decisions about every row of a frame or a file, with progress, and resumed after a crash."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import polars as pl

from steelyard.batch import files
from steelyard.batch.answering import Answer, NamedRow, by_server, by_this_process
from steelyard.batch.parts import Parts, opened_parts, write_part
from steelyard.batch.workers import Note, WorkerPart
from steelyard.bulk.columns import ERROR, check_columns, schema_of, with_answers
from steelyard.decisions.kinds import Decision
from steelyard.decisions.named import PRODUCTION
from steelyard.decisions.rules import Rulebook
from steelyard.decisions.validation import read_request
from steelyard.imports.delimited import Options
from steelyard.imports.table import Refused, refused_csv
from steelyard.named.content import rulebook_of
from steelyard.named.rule_rows import values_of

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.serving.decide import AnswerService

#: Rows that are scored, and then kept for good, at a time.
PART_ROWS = 1024

#: Takes how many rows are done, and how many there are.
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions for every row, and the model that answers them.

    ``client`` asks a server, for its families, routes and connected models. Without one a model of this
    process answers: that of ``load``, or else of ``steelyard.decide``.
    """

    decisions: Sequence[Mapping[str, Any]]
    model: str | None = None
    temperature: float | None = None
    client: Client | None = None
    load: Callable[[], AnswerService] | None = None
    #: The version of a named decision that has them, which the server is asked by.
    named: str | None = None
    #: Its fields and rules, and by field the column of its values.
    rulebook: Rulebook | None = None
    field_columns: Mapping[str, str] = field(default_factory=dict)
    #: What a server does where the model is unable to answer, or abstains.
    fallback: Sequence[str] | None = None
    escalate: bool | None = None

    def checked(self) -> tuple[Decision, ...]:
        """Return the decisions; raise ``InvalidRequestError`` when they cannot be asked."""
        return read_request({**self.request, "context": ""}).decisions

    @property
    def request(self) -> dict[str, Any]:
        """The request for a row, without its context."""
        options = {
            "model": self.model,
            "temperature": self.temperature,
            "fallback": self.fallback,
            "escalate": self.escalate,
        }
        return {
            "decisions": list(self.decisions),
            **{name: value for name, value in options.items() if value is not None},
        }

    def identity(self) -> dict[str, Any]:
        """Return the fields that distinguish these questions from others."""
        of_version = {} if self.named is None else {"named": self.named}
        model: list[Any] = [self.model, self.temperature]
        if self.fallback:
            model += [*self.fallback, self.escalate]
        return {"decisions": self.request["decisions"], "model": model, **of_version}

    @property
    def has_rules(self) -> bool:
        """Whether answers have the action of rules."""
        return self.rulebook is not None and bool(self.rulebook.rules)

    def rows(self, frame: Any, contexts: Sequence[Any]) -> Sequence[Any]:
        """Return what is asked about the rows of a frame: contexts, of a version with their fields."""
        if self.named is None:
            return contexts
        book, columns = self.rulebook, self.field_columns
        if book is None or not columns:
            return [NamedRow(context, {}) for context in contexts]
        cells = _records(frame, [*columns.values()])
        return [
            NamedRow(context, values_of(book, {name: row[at] for name, at in columns.items()}))
            for context, row in zip(contexts, cells, strict=True)
        ]

    def answer(self) -> Answer:
        """Return a function that answers them; load the model if it is not loaded."""
        if self.client is not None:
            return by_server(self.client, self.request, self.named)
        if self.load is not None:
            return by_this_process(self.load(), self.request)
        from steelyard.app.deployment import default_deployment  # noqa: PLC0415

        return by_this_process(default_deployment(self.model).answers, self.request)


def named_questions(
    reference: str,
    client: Client | None,
    columns: Sequence[str] = (),
    fields: Mapping[str, str] | None = None,
) -> Questions:
    """Return the questions of a named decision, of the version that a reference names now.

    Its fields are in those of ``columns`` that ``fields`` names, or that have their names.
    """
    if client is None:
        raise ValueError(
            f"{reference!r} is a named decision, which a server has; give client, such as "
            "steelyard.connect()."
        )
    name, _, at = reference.partition("@")
    version = client.named_decisions.version(name, at or PRODUCTION)
    named = f"{name}@{version.version}"
    book = rulebook_of(version.content)
    declared = {} if book is None else book.fields
    given = fields or {}
    for each, column in given.items():
        if each not in declared:
            raise ValueError(
                f"{named} has no field {each!r}; its fields: {', '.join(declared) or 'none'}."
            )
        check_columns(columns, [column], [])
    of_fields = {each: column for each in declared if (column := given.get(each, each)) in columns}
    needed = (each for each, field in declared.items() if not field.optional)
    if missing := [each for each in needed if each not in of_fields]:
        raise ValueError(
            f"{named} needs {', '.join(missing)} beside each text; name the columns as decide_frame "
            f'takes them: fields={{"{missing[0]}": "COLUMN"}}.'
        )
    return Questions(
        version.decisions,
        version.model,
        version.temperature,
        client,
        named=named,
        rulebook=book,
        field_columns=of_fields,
    )


class Elsewhere(Protocol):
    """The processes that answer parts beside this one: its own workers, or those of a state."""

    def answer(
        self, parts: Iterable[WorkerPart], request: dict[str, Any], stored: Parts, note: Note
    ) -> None:
        """Answer parts and store them in a run's folder; call ``note`` for each stored part."""


@dataclass(frozen=True, slots=True)
class ScoringSummary:
    """How scoring a file ended: its rows, those without an answer, and those an earlier run had.

    ``left_out`` has the rows that could not be read; ``read_as`` and ``notes`` say how the file was read.
    """

    rows: int
    errors: int
    resumed: int
    left_out: Sequence[Refused] = ()
    read_as: str = ""
    notes: Sequence[str] = ()


def decide_rows(
    frame: Any,
    questions: Questions,
    *,
    context: str | Sequence[str] = "text",
    progress: Progress | None = None,
    resume: Path | None = None,
) -> Any:
    """Return a frame with the columns that decisions about each row add; see ``decide_frame``."""
    if isinstance(frame, pl.LazyFrame):
        raise TypeError(
            "The frame is lazy; give frame.collect(), or score a file with decide_file."
        )
    is_polars = isinstance(frame, pl.DataFrame)
    names = list(map(str, frame.columns))
    columns = [context] if isinstance(context, str) else list(context)
    decisions = questions.checked()
    schema = schema_of(decisions, has_rules=questions.has_rules)
    check_columns(names, columns, list(schema))
    contexts = files.contexts_of(frame, columns) if is_polars else _pandas_contexts(frame, columns)
    contexts = [*questions.rows(frame, contexts)]
    try:
        encoded = msgspec.json.encode(contexts, enc_hook=str)
    except UnicodeEncodeError:  # half a character, which its row is refused for
        encoded = json.dumps(contexts, default=str).encode()
    sha256 = hashlib.sha256(encoded).hexdigest()
    with ExitStack() as closing:
        folder = resume or Path(closing.enter_context(tempfile.TemporaryDirectory()), "parts")
        of = {"rows": sha256, **questions.identity()}
        parts = closing.enter_context(opened_parts(folder, of))
        missing = (
            WorkerPart(number, pl.DataFrame(), contexts[start : start + PART_ROWS])
            for number, start in enumerate(range(0, len(contexts), PART_ROWS))
            if number not in parts.numbers
        )
        _score(missing, decisions, questions, parts, len(contexts), progress)
        scored = parts.scan().collect() if parts.numbers else pl.DataFrame(schema=schema)
    if is_polars:
        return frame.hstack(scored)
    return frame.assign(**{name: scored[name].to_list() for name in scored.columns})


def decide_file(
    source: Path,
    target: Path,
    questions: Questions,
    *,
    context: Sequence[str] = ("text",),
    progress: Progress | None = None,
    restart: bool = False,
    overwrite: bool = False,
    workers: Elsewhere | None = None,
    options: Options | None = None,
    bad_rows: Path | None = None,
) -> ScoringSummary:
    """Write the rows of a file with the columns that decisions add, in the format of its ending.

    Scored rows are kept beside the output until all are there: a run that died goes on from them.
    With ``workers`` these answer, each with a model of its own, and not this process. Rows that
    cannot be read are left out, and go to ``bad_rows``, a CSV. Raise ``ValueError`` when a file, a
    format or a column cannot be used.
    """
    files.check_format(target)
    if target.exists() and not overwrite:
        raise ValueError(f"{target} is there already; name another output, or overwrite it.")
    decisions = questions.checked()
    rows_file = files.RowFile(source, options)
    added = list(schema_of(decisions))
    if rows_file.columns is not None:
        check_columns(rows_file.columns, context, added)
    of = {
        "input": _identity_of(source),
        "columns": list(context),
        "reading": [rows_file.read_as, *_options_of(options)],
        **questions.identity(),
    }
    folder = target.with_name(f"{target.name}.parts")
    with opened_parts(folder, of, restart=restart) as parts:
        resumed = parts.n_rows
        first = parts.first_missing
        batches = rows_file.batches(context, PART_ROWS, start=first * PART_ROWS)
        n_blank = 0

        def missing() -> Iterator[WorkerPart]:
            nonlocal n_blank
            for number, batch in enumerate(batches, first):
                if number not in parts.numbers:
                    n_blank += sum(not str(each).strip() for each in batch.contexts)
                    yield WorkerPart(number, batch.rows, batch.contexts)

        _score(missing(), decisions, questions, parts, rows_file.count(), progress, workers)
        if not parts.numbers:
            parts.remove()
            reasons = "".join(f" {row.sentence}" for row in rows_file.refused[:1])
            raise ValueError(f"{source} has no rows.{reasons}")
        n_errors = _write_parts(parts, target, added, is_json=rows_file.is_json)
        if bad_rows is not None:
            bad_rows.write_bytes(refused_csv(rows_file.columns or ["row"], rows_file.refused))
        notes = [*rows_file.notes]
        if n_blank:
            have = "row has" if n_blank == 1 else "rows have"
            notes.append(f"{n_blank:,} {have} an empty context: only the wording decides there.")
        done = ScoringSummary(
            parts.n_rows, n_errors, resumed, rows_file.refused, rows_file.read_as, notes
        )
        parts.remove()
    return done


def _write_parts(parts: Parts, target: Path, added: Sequence[str], *, is_json: bool) -> int:
    """Write the stored parts as one file, and return how many of its rows have an error."""
    rows = parts.scan()
    before = [name for name in rows.collect_schema().names() if name not in added]
    files.write_rows(
        rows.select([*before, *added]), target, before if is_json else (), parts.frames()
    )
    return int(rows.select(pl.col(ERROR).is_not_null().sum()).collect().item())


def _identity_of(source: Path) -> list[Any]:
    """Return the facts that distinguish a file from others, and from its earlier content."""
    about = source.stat()
    return [str(source.resolve()), about.st_size, about.st_mtime_ns]


def _options_of(options: Options | None) -> list[Any]:
    """Return the options that change the rows of a file."""
    if options is None:
        return [False]
    named = (options.quote, options.has_header)
    return [options.takes_long_cells, *(value for value in named if value is not None)]


def _score(
    missing: Iterable[WorkerPart],
    decisions: Sequence[Decision],
    questions: Questions,
    parts: Parts,
    n_rows: int,
    progress: Progress | None,
    workers: Elsewhere | None = None,
) -> None:
    """Score the missing parts, and store each."""
    added = list(schema_of(decisions, has_rules=questions.has_rules))

    def checked() -> Iterator[WorkerPart]:
        for part in missing:
            check_columns([*part.rows.columns], [], added)
            yield part

    def note(number: int, n_added: int) -> None:
        parts.note(number, n_added)
        if progress is not None:
            progress(parts.n_rows, n_rows)

    if progress is not None:
        progress(parts.n_rows, n_rows)
    if workers is not None:
        workers.answer(checked(), questions.request, parts, note)
    else:
        _score_here(checked(), decisions, questions, parts, note)
    if progress is not None:
        progress(parts.n_rows, parts.n_rows)


def _score_here(
    missing: Iterable[WorkerPart],
    decisions: Sequence[Decision],
    questions: Questions,
    parts: Parts,
    note: Note,
) -> None:
    answer: Answer | None = None
    for part in missing:
        answer = answer or questions.answer()
        first = part.number * PART_ROWS
        keys = [f"{parts.run}-{first + place}" for place in range(len(part.contexts))]
        answers = answer(part.contexts, keys)
        answered = with_answers(part.rows, decisions, answers, has_rules=questions.has_rules)
        write_part(parts.folder, part.number, answered)
        note(part.number, len(part.contexts))


def _pandas_contexts(frame: Any, columns: Sequence[str]) -> list[Any]:
    """Return the contexts of a pandas frame; a missing cell is ``None``."""
    records = _records(frame, columns)
    return [record[columns[0]] if len(columns) == 1 else record for record in records]


def _records(frame: Any, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of a Polars or pandas frame by row; a missing cell is ``None``."""
    selected = frame[list(dict.fromkeys(columns))]
    if isinstance(selected, pl.DataFrame):
        return selected.to_dicts()
    selected = selected.astype(object)
    records: list[dict[str, Any]] = selected.where(selected.notna(), None).to_dict("records")
    return records
