"""``steelyard decision rules``: rules in words, and how many rows of a file or a dataset each takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_table
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import FILE
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client

#: Rows that are asked at once.
_AT_ONCE = 8
_EPILOG = """\b
Examples:
  steelyard decision rules refund_desk
  steelyard decision rules refund_desk@staging --rows orders.csv
  steelyard decision rules decisions/refund_desk.toml --dataset ds_1
"""


@asking("rules", "decision", epilog=_EPILOG)
@click.option(
    "--rows",
    "source",
    type=FILE,
    help="A table (CSV, Excel, Parquet, JSON Lines) with a column for the context and one for each "
    "field.",
)
@click.option(
    "--dataset",
    help="In place of --rows: the id of a dataset, whose rows have the fields in their metadata.",
)
@click.option("--context", "column", default="text", help="The column of --rows.")
@click.option("--most", type=click.IntRange(1, 500), default=200, help="Rows, at most.")
def command(
    client: Client,
    decision: str,
    *,
    source: Path | None,
    dataset: str | None,
    column: str,
    most: int,
) -> Shown:
    """Show the rules of DECISION in words; with rows, how many of them each rule takes.

    DECISION is NAME, NAME@ALIAS, NAME@7 or a file. The rows are asked of its model, and paid like any
    request; nothing is stored.
    """
    from steelyard.asking.rows import ask_in_threads
    from steelyard.asking.window import RowResult
    from steelyard.decisions.rules_wire import RuleResult
    from steelyard.errors import InvalidRequestError
    from steelyard.named.content import questions_of, rulebook_of
    from steelyard.named.rule_rows import count_rules, values_of

    content = _content_of(client, decision)
    book = rulebook_of(content)
    if book is None or not book.rules:
        raise click.ClickException(f"{decision} has no rules; add some in a version of it.")
    if source is None and dataset is None:
        return book.in_words(), lambda lines: click.echo("\n".join(map(printable, lines)))
    rows = _read_rows(source, column) if source else _dataset_rows(client, str(dataset), most)
    questions = questions_of(content)

    def ask(row: tuple[int, Any, Mapping[str, Any]]) -> RuleResult | str | None:
        place, context, cells = row
        values = values_of(book, cells)
        try:
            book.check(values, decision)
            answer = client.decide(context, **questions, store=False)
        except InvalidRequestError as error:
            return f"row {place}: {error.message}"
        return book.decide(answer.decisions, values)

    numbered = ((place, *row) for place, row in enumerate(islice(rows, most), start=1))
    answers = ask_in_threads(numbered, ask, RowResult.result, _AT_ONCE)
    refused = [answer for answer in answers if isinstance(answer, str)]
    results = [answer for answer in answers if isinstance(answer, RuleResult)]
    counts = [count._asdict() for count in count_rules(book, results)]

    def show(tried: dict[str, Any]) -> None:
        lines = [
            [each["number"] or "", each["action"], each["why"], each["rows"]]
            for each in tried["rules"]
        ]
        show_table(("RULE", "ACTION", "WHERE", "ROWS"), lines)
        for line in tried["refused"]:
            click.echo(printable(line), err=True)

    return {"rules": counts, "refused": refused}, show, bool(refused)


def _content_of(client: Client, decision: str) -> Mapping[str, Any]:
    from steelyard.decisions.named import PRODUCTION
    from steelyard.named.files import read_file

    if decision.endswith(".toml"):
        return read_file(Path(decision).read_text(encoding="utf-8")).content
    name, _, at = decision.partition("@")
    return client.named_decisions.version(name, at or PRODUCTION).content


def _read_rows(path: Path, column: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    from steelyard.imports.reading import read_table

    try:
        table = read_table(path, path.name)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    if column not in table.columns:
        raise click.UsageError(
            f"{path.name} has no column {column}; give --context one of {', '.join(table.columns)}."
        )
    for _, cells in table.rows:
        row = dict(zip(table.columns, cells, strict=True))
        yield row[column] or "", row


def _dataset_rows(
    client: Client, dataset_id: str, most: int
) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for row in client.datasets.rows(dataset_id, limit=most).data:
        yield row.context, row.metadata or {}
