"""The options of every command that reads a table, and its report."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.options import together
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client.tables import Converted, Table
    from steelyard.imports.table import Refused

#: Reasons that are listed; the file of bad rows has all.
_MOST_LISTED = 5
#: Bytes in which the first row of a file is looked for.
_FIRST_BYTES = 1 << 20
#: Endings of files that have tables, without decisions.
TABLES = frozenset({".csv", ".tsv", ".xlsx", ".xls", ".parquet", ".zip"})


def _check_mark(mark: str | None) -> str | None:
    if mark is not None and len(mark) > 1:
        raise click.BadParameter(f"{mark!r} has {len(mark)} characters; give one, or '' for none.")
    return mark


encoding_option = click.option(
    "--encoding",
    help="Of text: how it is encoded, as UTF-8, Windows-1252 or Shift_JIS. [default: found]",
)
bad_rows_option = click.option(
    "--bad-rows",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="CSV to write the rows to that were left out, each with its line and the reason.",
)
license_option = click.option(
    "--license",
    metavar="TEXT",
    help="Licence of the data, as CC-BY-4.0: kept in the metadata of each row that names none, and "
    "shown in the dossier of a family.",
)
READING = (
    click.option(
        "--sheet",
        help="Of Excel: the sheet. [default: those named train, test and so on, else the first with a "
        "table]",
    ),
    encoding_option,
    click.option(
        "--long-cells",
        is_flag=True,
        help="Of CSV: take cells whose lines look like rows as they are.",
    ),
    click.option(
        "--quote",
        metavar="MARK",
        callback=lambda _ctx, _option, mark: _check_mark(mark),
        help="Of CSV: the quotation mark; '' for none. [default: found]",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Of CSV and Excel: whether the first line has the names of the columns. [default: found]",
    ),
    bad_rows_option,
)


@dataclass(frozen=True, slots=True)
class FileReading:
    """How a user says that a file is to be read."""

    sheet: str | None
    encoding: str | None
    long_cells: bool
    bad_rows: Path | None
    quote: str | None = None
    header: bool | None = None
    left_out: list[Refused] = field(default_factory=list)

    def read(self, file: Path, shape: str | None = None) -> Table:
        """Return a file as a table; a file that cannot be read is a usage error."""
        from steelyard.client.tables import read_table

        check_bad_rows(self.bad_rows, file)
        try:
            return read_table(
                file,
                file.name,
                sheet=self.sheet,
                encoding=self.encoding,
                long_cells=self.long_cells,
                shape=shape,
                quote=self.quote,
                has_header=self.header,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def lines(self, file: Path) -> Converted:
        """Return rows with their decisions, JSON Lines, as they are sent; - is the input."""
        from steelyard.client.tables import read_lines, with_single_truths
        from steelyard.imports.encodings import Source

        check_bad_rows(self.bad_rows, file)
        try:
            content = sys.stdin.buffer.read() if file == Path("-") else file
            return with_single_truths(read_lines(Source(file.name, content), self.encoding))
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def keep(self, columns: Sequence[str], refused: Sequence[Refused]) -> None:
        """Write the rows that were left out, with those of before, where the user wants them."""
        from steelyard.client.tables import refused_csv

        self.left_out.extend(refused)
        if self.bad_rows is not None:
            self.bad_rows.write_bytes(refused_csv(columns, self.left_out))


def check_bad_rows(bad_rows: Path | None, *files: Path) -> None:
    """Refuse to write the rows that were left out over a file that the command reads or writes."""
    for file in files:
        if bad_rows is not None and bad_rows.exists() and file.exists() and bad_rows.samefile(file):
            raise click.UsageError(f"--bad-rows would replace {file}; name another file.")


def read_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of reading, in their order; the command gets them as ``read_as``."""

    @wraps(command)
    def call(
        *args: Any,
        sheet: str | None,
        encoding: str | None,
        long_cells: bool,
        bad_rows: Path | None,
        quote: str | None,
        header: bool | None,
        **given: Any,
    ) -> Any:
        read_as = FileReading(sheet, encoding, long_cells, bad_rows, quote, header)
        return command(*args, read_as=read_as, **given)

    return together(*READING)(call)


def is_table(file: Path) -> bool:
    """Return whether a file has a table, by its ending or its first row, and no rows with decisions."""
    if file.suffix.lower() in TABLES or not file.is_file():
        return file.suffix.lower() in TABLES
    with file.open("rb") as lines:
        start = lines.read(_FIRST_BYTES)
    return start.lstrip()[:1] in (b"{", b"[") and not re.search(rb'"(?:context|decisions)"', start)


def has_rows(file: Path) -> bool:
    """Return whether a file has rows with their decisions already, as JSON Lines."""
    from steelyard.client.tables import are_rows

    with file.open("rb") as lines:
        return are_rows(lines.read(_FIRST_BYTES))


def show_read(table: Table, details: Sequence[str], refused: Sequence[Refused]) -> None:
    """Write to the error stream how a file was read, and its skipped rows."""
    n_rows = len(table.rows) + len(table.refused)
    lines = [f"Read as {table.read_as}" + (f": {n_rows:,} rows." if table.rows else ".")]
    lines += [f"  note     {note}" for note in table.notes]
    lines += details
    for line in lines:
        click.echo(printable(line), err=True)
    show_refused("", refused)


def show_refused(because: str, refused: Sequence[Refused]) -> None:
    """Write to the error stream which rows are left out, and why."""
    if not refused:
        return
    are = "is" if len(refused) == 1 else "are"
    lines = [f"{len(refused):,} {are} left out{because}:"]
    lines += [f"  {row.place}: {row.reason}" for row in refused[:_MOST_LISTED]]
    if len(refused) > _MOST_LISTED:
        lines.append(f"  … and {len(refused) - _MOST_LISTED:,} more (--bad-rows FILE).")
    for line in lines:
        click.echo(printable(line), err=True)
