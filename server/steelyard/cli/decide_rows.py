"""``steelyard decide --input``: decisions about every row of a file."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.connecting import Server
from steelyard.cli.failures import FAILED, disk_failures
from steelyard.cli.local_state import show_json
from steelyard.cli.options import FILE, NEW_FILE, read_json, together
from steelyard.cli.requests import asks_yes_no, decisions_from_flags
from steelyard.cli.table_files import READING, check_bad_rows, show_refused
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.batch.scoring import Elsewhere, ScoringSummary
    from steelyard.settings import Settings

#: Note on a yes/no where no model is named.
_YES_NO = (
    "The base model alone answers here, and it is little better than a coin at a plain yes/no. A server "
    "(steelyard up) has its reader answer: --url http://127.0.0.1:8420 --model auto."
)

rows_options = together(
    click.option(
        "--input",
        "source",
        type=FILE,
        help="A file of rows to answer: CSV, TSV, JSON Lines, Parquet or Excel, by its ending.",
    ),
    click.option(
        "--output",
        "target",
        type=NEW_FILE,
        help="Where the answered rows go: CSV, TSV, JSON Lines or Parquet.",
    ),
    click.option(
        "--column",
        "columns",
        multiple=True,
        help="The column of contexts; several make an object. [default: text]",
    ),
    click.option(
        "--decisions",
        "decisions_file",
        type=FILE,
        help="A JSON file with decisions, or with a request that has them; else flags spell one.",
    ),
    click.option("--url", help="Ask this server: for families, routes and connected models."),
    click.option(
        "--workers",
        type=click.IntRange(1, 64),
        help="Processes of this machine that answer parts of the rows beside each other. [default: "
        "this one alone]",
    ),
    click.option(
        "--queue",
        "is_queued",
        is_flag=True,
        help="Let the workers of the state answer parts: 'steelyard worker', on any number of machines.",
    ),
    *READING,
    click.option("--restart", is_flag=True, help="Answer rows again that an earlier run answered."),
    click.option("--overwrite", is_flag=True, help="Replace an output that is there."),
)


def decide_rows(ctx: click.Context, flags: dict[str, Any]) -> None:
    """Answer the rows of a file, and say how it ended; exit status 1 when some have no answer.

    Rows that cannot be read have none, unless a file for them is named.
    """
    from steelyard.app.deployment import open_deployment
    from steelyard.batch.scoring import Questions, decide_file
    from steelyard.client.progress import progress_bar
    from steelyard.imports.delimited import Options
    from steelyard.settings import read_settings

    source, target = flags["source"], flags["target"]
    _check_flags(ctx, flags)
    decisions = _decisions(ctx, flags)
    if flags["url"] is None and flags["model"] is None and asks_yes_no(decisions):
        click.echo(_YES_NO, err=True)
    names = ("engine", "threads", "home", "state_url")
    settings = read_settings({name: flags[name] for name in names})
    with ExitStack() as closing:
        client = None
        if flags["url"] is not None:
            client = closing.enter_context(Server(flags["url"], None, as_json=False).connected())
        questions = Questions(
            decisions,
            flags["model"],
            flags["temperature"],
            client,
            fallback=flags["fallback"],
            escalate=flags["escalate"],
            load=lambda: closing.enter_context(open_deployment(settings)).answers,
        )
        show = closing.enter_context(progress_bar(source.name))
        closing.enter_context(disk_failures())
        try:
            done = decide_file(
                source,
                target,
                questions,
                context=flags["columns"] or ("text",),
                progress=lambda n_done, n_rows: show(n_done, n_rows, "rows"),
                restart=flags["restart"],
                overwrite=flags["overwrite"],
                workers=_open_workers(flags, settings, closing),
                options=Options(
                    flags["encoding"],
                    flags["long_cells"],
                    sheet=flags["sheet"],
                    quote=flags["quote"],
                    has_header=flags["header"],
                ),
                bad_rows=flags["bad_rows"],
            )
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from None
    _show_done(done, target, as_json=flags["as_json"])
    if done.errors or (done.left_out and flags["bad_rows"] is None):
        raise click.exceptions.Exit(FAILED)


def _open_workers(
    flags: dict[str, Any], settings: Settings, closing: ExitStack
) -> Elsewhere | None:
    """Return the processes that answer instead of this one, or ``None`` where it answers itself."""
    from steelyard.batch.queued import open_queue
    from steelyard.batch.workers import Workers

    if flags["is_queued"]:
        return closing.enter_context(open_queue(settings, partial(click.echo, err=True)))
    if flags["workers"] is not None:
        return Workers(flags["workers"], settings.engine, settings.threads)
    return None


def _show_done(done: ScoringSummary, target: Path, *, as_json: bool) -> None:
    if as_json:
        counts = {"rows": done.rows, "errors": done.errors, "resumed": done.resumed}
        show_json({**counts, **({"left_out": len(done.left_out)} if done.left_out else {})})
    else:
        resumed = f", {done.resumed:,} of them by an earlier run" if done.resumed else ""
        click.echo(f"Read as {done.read_as}.", err=True)
        for note in done.notes:
            click.echo(printable(note), err=True)
        click.echo(f"{done.rows:,} rows answered in {target}{resumed}")
    show_refused("", done.left_out)
    if done.errors:
        click.echo(f"{done.errors:,} rows have no answer; their column error says why.", err=True)


def _check_flags(ctx: click.Context, flags: dict[str, Any]) -> None:
    """Refuse options that exclude each other, or that need another."""
    if flags["source"] is None or flags["target"] is None:
        raise click.UsageError("Give both --input and --output.", ctx)
    check_bad_rows(flags["bad_rows"], flags["source"], flags["target"])
    if any(flags[name] is not None for name in ("request_file", "context", "context_file")):
        raise click.UsageError("With --input the contexts are a column; name it by --column.", ctx)
    if flags["url"] is not None and (flags["workers"] is not None or flags["is_queued"]):
        raise click.UsageError(
            "With --url the server answers; leave --workers and --queue out, and start it with more "
            "workers.",
            ctx,
        )
    if flags["is_queued"]:
        given = [name for name in ("workers", "engine", "threads") if flags[name] is not None]
        if given:
            raise click.UsageError(
                f"With --queue the workers have their own settings; leave --{given[0]} out.", ctx
            )
        return
    given = [name for name in ("home", "state_url") if flags[name] is not None]
    if given:
        raise click.UsageError(
            f"Only with --queue is there a state; leave --{given[0].replace('_', '-')} out.", ctx
        )


def _decisions(ctx: click.Context, flags: dict[str, Any]) -> list[Any]:
    path, question = flags["decisions_file"], flags["question"]
    if (path is None) == (question is None and not flags["multi"]):
        raise click.UsageError("Give --decisions, or --question with its outcomes.", ctx)
    if path is None:
        return decisions_from_flags(ctx, flags)
    content = read_json(path.read_bytes(), "--decisions")
    decisions = content.get("decisions") if isinstance(content, dict) else content
    if not isinstance(decisions, list):
        raise click.UsageError(
            f"{path} has no list of decisions; give [{{…}}, …], or a request that has them.", ctx
        )
    return decisions
