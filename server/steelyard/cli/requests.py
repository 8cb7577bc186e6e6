"""A decide request from the command line: a file, the input stream, or flags that spell one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from steelyard.cli.options import together
from steelyard.cli.table_files import TABLES

#: The argument and the options that ``read_request`` reads.
request_options = together(
    click.argument(
        "request_file",
        metavar="[REQUEST.json | -]",
        required=False,
        type=click.Path(dir_okay=False, allow_dash=True, path_type=str),
    ),
    click.option("--context", help="What the decision is about."),
    click.option(
        "--context-file",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str),
        help="A file with the context, as text; - reads the input stream.",
    ),
    click.option("--question", help="The question to decide."),
    click.option(
        "--outcome",
        "outcomes",
        multiple=True,
        metavar="NAME[=DESCRIPTION]",
        help="An outcome; repeat it. A name with = in it needs a request file.",
    ),
    click.option(
        "--multi",
        is_flag=True,
        help="Any number of the outcomes may be right: a yes/no decision for each.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["single", "binary", "ordinal"]),
        help="single (one of the outcomes; the default), binary (yes or no) or ordinal (levels).",
    ),
    click.option(
        "--rubric",
        "rubric",
        multiple=True,
        help="An ordinal level's description, lowest first; repeat.",
    ),
    click.option(
        "--id", "decision_id", help="Name of the decision in the answer. [default: decision]"
    ),
)


#: Options that are fields of a request beside its context and decisions, where they are given.
_BESIDE = ("model", "temperature", "explain", "fallback", "escalate")


def read_request(ctx: click.Context, flags: dict[str, Any]) -> bytes | dict[str, Any]:
    """Return the request that a file or the flags spell."""
    request_file = flags["request_file"]
    of_request = ("context", "context_file", "question", "kind", "decision_id")
    given = [name for name in of_request if flags[name] is not None]
    given += [name for name in ("outcomes", "multi", "rubric") if flags[name]]
    given += [name for name in _BESIDE if flags.get(name) is not None]
    if request_file is None:
        return request_from_flags(ctx, flags)
    if given:
        raise click.UsageError("Give either a request file or flags that spell a request.", ctx)
    request = _read_bytes(request_file)
    if Path(request_file).suffix.lower() in TABLES:
        raise click.UsageError(
            f"{request_file} has rows, and no request. Answer them with steelyard decide --input "
            f"{request_file} --output FILE.",
            ctx,
        )
    return request


def request_from_flags(ctx: click.Context, flags: dict[str, Any]) -> dict[str, Any]:
    """Return a request of one decision from the flags that were given.

    Only the form of the command line is checked here; the request has the checks of the API.
    """
    context, context_file = flags["context"], flags["context_file"]
    if (context is None) == (context_file is None):
        raise click.UsageError(
            "Give a request file, or one of --context and --context-file with --question.", ctx
        )
    if flags["question"] is None and not flags["multi"]:
        raise click.UsageError("Give --question, the question to decide.", ctx)
    if context_file is not None:
        try:
            context = _read_bytes(context_file).decode()
        except UnicodeDecodeError:
            raise click.UsageError(
                f"{context_file} is not text in UTF-8; save it as UTF-8.", ctx
            ) from None
    request: dict[str, Any] = {"context": context, "decisions": decisions_from_flags(ctx, flags)}
    for name in _BESIDE:
        if flags.get(name) is not None:
            request[name] = flags[name]
    return request


def decisions_from_flags(ctx: click.Context, flags: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the decisions that flags spell: one, or with ``--multi`` one for each outcome."""
    if not flags["multi"]:
        return [_decision_from_flags(ctx, flags)]
    from steelyard.decisions.several import multi_label

    if flags["kind"] is not None or flags["rubric"] or not flags["outcomes"]:
        raise click.UsageError("--multi takes --outcome, and neither --kind nor --rubric.", ctx)
    labels = outcomes_from_flags(ctx, flags["outcomes"], None)
    return multi_label(flags["decision_id"] or "label", labels, flags["question"])


def _decision_from_flags(ctx: click.Context, flags: dict[str, Any]) -> dict[str, Any]:
    decision: dict[str, Any] = {
        "id": flags["decision_id"] if flags["decision_id"] is not None else "decision",
        "question": flags["question"],
    }
    if flags["kind"] is not None:
        decision["kind"] = flags["kind"]
    if flags["outcomes"]:
        decision["outcomes"] = outcomes_from_flags(ctx, flags["outcomes"], flags["kind"])
    if flags["rubric"]:
        decision["rubric"] = list(flags["rubric"])
    return decision


def asks_yes_no(decisions: Any) -> bool:
    """Return whether any of some decisions, of any form, is answered with yes or no."""
    listed = decisions if isinstance(decisions, list) else []
    return any(isinstance(each, dict) and each.get("kind") == "binary" for each in listed)


def outcomes_from_flags(
    ctx: click.Context, outcomes: tuple[str, ...], kind: str | None
) -> list[str] | dict[str, str | None]:
    """Return an ordinal's levels as a list, and other outcomes by name with their descriptions."""
    if kind == "ordinal":
        return list(outcomes)
    described: dict[str, str | None] = {}
    for outcome in outcomes:
        name, separator, description = outcome.partition("=")
        if name in described:
            raise click.UsageError(f"The outcome {name!r} was given twice.", ctx)
        described[name] = description if separator else None
    return described


def _read_bytes(path: str) -> bytes:
    """Return a file's content; of a file with a byte-order mark, as Windows writes them, in UTF-8."""
    from steelyard.imports.encodings import marked_encoding

    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise click.FileError(path, error.strerror) from None
    marked = marked_encoding(content)
    try:
        return content if marked is None else content.decode(marked.codec).encode()
    except UnicodeError:
        return content  # its reader refuses it
