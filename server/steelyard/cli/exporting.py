"""Exports from the command line: where they go, in which format, and how far they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.nouns import Shown
from steelyard.cli.terminal import bytes_bar, printable

if TYPE_CHECKING:
    from steelyard.wire.queries import ExportFormat

_ENDINGS: dict[ExportFormat, str] = {"csv": ".csv", "parquet": ".parquet", "hf": ""}


@dataclass(frozen=True, slots=True)
class ExportAs:
    """The place and format of an export."""

    output: Path | None
    format: ExportFormat | None
    force: bool

    def save(self, name: str, export_to: Callable[..., Path], *of: str, **which: Any) -> Shown:
        """Write an export of the client with a bar; refuse to replace another."""
        from steelyard.client.saving import format_of

        chosen: ExportFormat = self.format or (
            "parquet" if self.output is None else format_of(self.output)
        )
        path = self.output or Path(f"{name}{_ENDINGS[chosen]}")
        try:
            with bytes_bar(path.name) as progress:
                how = {"format": chosen, "force": self.force, "progress": progress}
                export_to(*of, path=path, **how, **which)
        except (FileExistsError, FileNotFoundError) as error:
            raise click.UsageError(str(error).replace("with force", "with --force")) from None
        n_bytes = sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())
        summary = {"path": str(path), "format": chosen, "bytes": n_bytes}
        return summary, f"{printable(str(path))}: {n_bytes:,} bytes"


def export_options(command: Callable[..., Shown]) -> Callable[..., Shown]:
    """Add the options for the place and format of an export, as the argument ``export_as``."""

    @click.option(
        "--output",
        "-o",
        type=click.Path(path_type=Path),
        help="File or folder to write. [default: named for the id]",
    )
    @click.option(
        "--format",
        "format_",
        type=click.Choice(["csv", "parquet", "hf"]),
        help="CSV, Parquet, or a folder of Hugging Face datasets (packed where the output ends with "
        ".zip). [default: by the output's ending, else parquet]",
    )
    @click.option("--force", is_flag=True, help="Replace an export that is there.")
    @functools.wraps(command)
    def exporting(
        *args: Any, output: Path | None, format_: ExportFormat | None, force: bool, **given: Any
    ) -> Shown:
        return command(*args, export_as=ExportAs(output, format_, force), **given)

    return exporting
