"""``steelyard decide``: answer a request in this process, from a file, a pipe or flags."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.options import setting_option
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from rich.table import Table

#: A table shows this many outcomes of a decision, the likeliest; --json shows all.
_SHOWN_OUTCOMES = 12
_BAR_WIDTH = 24

_EPILOG = """\b
Examples:
  steelyard decide --context "My card was charged twice for one order." \\
      --question "Which team should own this?" \\
      --outcome "billing=charges, invoices, refunds" --outcome "shipping=where a parcel is"
  steelyard decide --context-file mail.txt --kind ordinal --question "How urgent is it?" \\
      --rubric "can wait" --rubric "today" --rubric "at once"
  steelyard decide request.json
  cat request.json | steelyard decide - --json
"""


@click.command("decide", epilog=_EPILOG)
@click.argument(
    "request_file",
    metavar="[REQUEST.json | -]",
    required=False,
    type=click.Path(dir_okay=False, allow_dash=True, path_type=str),
)
@click.option("--context", help="What the decision is about.")
@click.option(
    "--context-file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str),
    help="A file with the context, as text; - reads the input stream.",
)
@click.option("--question", help="The question to decide.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    metavar="NAME[=DESCRIPTION]",
    help="An outcome; repeat it. A name with = in it needs a request file.",
)
@click.option(
    "--kind",
    type=click.Choice(["single", "binary", "ordinal"]),
    help="single (one of the outcomes; the default), binary (yes or no) or ordinal (levels).",
)
@click.option(
    "--rubric",
    "rubric",
    multiple=True,
    help="An ordinal level's description, lowest first; repeat.",
)
@click.option("--id", "decision_id", help="Name of the decision in the answer. [default: decision]")
@click.option("--model", help="Base model to ask. [default: the shipped one]")
@click.option(
    "--temperature",
    type=float,
    help="0.2 to 5: below 1 sharper, above 1 softer. [default: the model's own]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@setting_option("engine")
@setting_option("threads")
@click.pass_context
def command(ctx: click.Context, /, **flags: Any) -> None:
    """Answer decisions about one context, in this process.

    The request is a JSON file with the body of POST /v1/decide (- reads it from the input stream),
    or, for one decision, flags.
    """
    from steelyard.bootstrap import open_deployment
    from steelyard.settings import read_settings

    payload = read_request(ctx, flags)
    settings = read_settings({"engine": flags["engine"], "threads": flags["threads"]})
    with open_deployment(settings) as deployment:
        answer = deployment.answers.answer_dict(payload)
    if flags["as_json"]:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))
        return
    show_answer(answer)


def read_request(ctx: click.Context, flags: dict[str, Any]) -> bytes | dict[str, Any]:
    """Give the request that a file or the flags spell.

    Raises
    ------
    click.UsageError
        When a file and flags are mixed, or neither says enough.
    """
    request_file = flags["request_file"]
    of_request = ("context", "context_file", "question", "kind", "decision_id", "model")
    given = [name for name in of_request if flags[name] is not None]
    given += [name for name in ("outcomes", "rubric") if flags[name]]
    given += ["temperature"] if flags["temperature"] is not None else []
    if request_file is None:
        return request_from_flags(ctx, flags)
    if given:
        raise click.UsageError("Give either a request file or flags that spell a request.", ctx)
    return _read_bytes(request_file)


def request_from_flags(ctx: click.Context, flags: dict[str, Any]) -> dict[str, Any]:
    """Give a request of one decision from the flags that were given.

    Only the form of the command line is checked here; the request has the checks of the API.
    """
    context, context_file = flags["context"], flags["context_file"]
    if (context is None) == (context_file is None):
        raise click.UsageError(
            "Give a request file, or one of --context and --context-file with --question.", ctx
        )
    if flags["question"] is None:
        raise click.UsageError("Give --question, the question to decide.", ctx)
    if context_file is not None:
        try:
            context = _read_bytes(context_file).decode()
        except UnicodeDecodeError:
            raise click.UsageError(f"{context_file} is not text in UTF-8.", ctx) from None
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
    request: dict[str, Any] = {"context": context, "decisions": [decision]}
    for name in ("model", "temperature"):
        if flags[name] is not None:
            request[name] = flags[name]
    return request


def outcomes_from_flags(
    ctx: click.Context, outcomes: tuple[str, ...], kind: str | None
) -> list[str] | dict[str, str | None]:
    """Give an ordinal's levels as a list, and other outcomes by name with their descriptions."""
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
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise click.FileError(path, error.strerror) from None


def show_answer(answer: dict[str, Any]) -> None:
    """Print one table a decision, and a line on what answered."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for name, decision in answer["decisions"].items():
        console.print(decision_table(name, decision, is_utf8=console.encoding.startswith("utf")))
        console.print(f"action: {printable(decision['action'])}")
        if "expected_level" in decision:
            console.print(f"expected level: {decision['expected_level']:.3f}")
        console.print()
    tokens, total_ms = answer["usage"]["input_tokens"], answer["timing_ms"]["total"]
    console.print(f"{answer['model']}, {tokens} input tokens, {total_ms:.1f} ms")


def decision_table(name: str, decision: dict[str, Any], *, is_utf8: bool = True) -> Table:
    """Give the table of one decision, outcomes in their order."""
    from rich.table import Table
    from rich.text import Text

    probabilities = decision["probabilities"]
    ranked = sorted(probabilities, key=probabilities.__getitem__, reverse=True)
    shown = set(ranked[:_SHOWN_OUTCOMES])
    title = Text(printable(f"{name} ({decision['kind']})"))
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("outcome", overflow="fold")
    table.add_column("probability", justify="right")
    table.add_column("")
    block = "█" if is_utf8 else "#"
    for outcome, probability in probabilities.items():
        if outcome not in shown:
            continue
        style = "bold" if outcome == decision["top"] else None
        bar = block * round(probability * _BAR_WIDTH)
        table.add_row(Text(printable(outcome)), f"{probability:.4f}", bar, style=style)
    if len(shown) < len(probabilities):
        table.caption = f"{len(probabilities) - len(shown)} less likely outcomes; --json shows all"
    return table
