"""``steelyard decide``: answer a request in this process, from a file, a pipe or flags."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.decide_rows import decide_rows, rows_options
from steelyard.cli.local_state import show_json
from steelyard.cli.options import setting_options
from steelyard.cli.requests import asks_yes_no, read_request, request_options
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.client import Client

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
  steelyard decide request.json --url http://127.0.0.1:8420
  steelyard decide --context-file mail.txt --question "Which team should own this?" \\
      --outcome billing --outcome shipping --url http://127.0.0.1:8420 --model router \\
      --fallback steelyard-base-2 --escalate
  steelyard decide --input mails.csv --column body --output scored.parquet \\
      --question "Which team should own this?" --outcome billing --outcome shipping
"""


@click.command("decide", epilog=_EPILOG)
@request_options
@click.option(
    "--model",
    help="Base model or auto, or with --url any model of the server. [default: the shipped one, with its "
    "reader where a yes/no is asked]",
)
@click.option(
    "--fallback",
    multiple=True,
    metavar="MODEL",
    callback=lambda _ctx, _option, names: list(names) or None,
    help="With --url: who answers where the model is unable to; repeat it for the next.",
)
@click.option(
    "--escalate",
    is_flag=True,
    default=None,
    help="With --fallback: they decide what the model abstains from, and texts unlike any seen.",
)
@click.option(
    "--temperature",
    type=float,
    help="0.2 to 5: below 1 sharper, above 1 softer. [default: the model's own]",
)
@click.option(
    "--explain",
    is_flag=True,
    default=None,
    help="Show on which sentences the answers hang: each is left out in turn.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@rows_options
@setting_options("engine", "threads", "home", "state_url")
@click.pass_context
def command(ctx: click.Context, /, **flags: Any) -> None:
    """Answer decisions about one context, in this process or by the server of --url.

    The request is a JSON file with the body of POST /v1/decide (- reads it from the input stream),
    or, for one decision, flags. With --input and --output every row of a file is answered, by
    several processes with --workers, by a server with --url, by workers on any number of machines
    with --queue.
    """
    if flags["url"] is None and (flags["fallback"] or flags["escalate"]):
        raise click.UsageError(
            "This process has base models alone, of which none stands in for another. Give --url, "
            "the server that is asked.",
            ctx,
        )
    if flags["source"] is not None or flags["target"] is not None:
        decide_rows(ctx, flags)
        return
    payload = read_request(ctx, flags)
    answer = _answer(payload, flags) if flags["url"] is None else _ask_server(payload, flags["url"])
    if flags["as_json"]:
        show_json(answer)
    else:
        show_answer(answer)


def _answer(payload: bytes | dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    from steelyard.app.deployment import open_deployment
    from steelyard.scoring.shipped import default_name
    from steelyard.serving.auto import ROUTE, completed
    from steelyard.serving.connected.declared import ModelsFile
    from steelyard.settings import read_settings

    given = {"engine": flags["engine"], "threads": flags["threads"]}
    settings = read_settings(given)
    if ROUTE in completed(ModelsFile(), default_name(settings)).routes:
        routed = _for_route(payload, ROUTE)
        if routed is not None:
            return _ask_route(routed, given)
    with open_deployment(settings) as deployment:
        return deployment.answers.answer_dict(payload)


def _for_route(payload: bytes | dict[str, Any], route: str) -> dict[str, Any] | None:
    """Return a request as a route answers it; None where it names another model, or asks no yes/no."""
    request = payload
    if isinstance(payload, bytes):
        try:
            request = json.loads(payload)
        except ValueError:  # the answer to it says so
            return None
    if not isinstance(request, dict) or request.get("model", route) != route:
        return None
    is_routed = "model" in request or asks_yes_no(request.get("decisions"))
    return {**request, "model": route} if is_routed else None


def _ask_route(request: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Answer a request by a server in this process, whose home goes with it."""
    from steelyard.embedded import Embedded

    settings = {name: value for name, value in given.items() if value is not None}
    with Embedded(**settings, jobs="off") as server:
        return _ask(server.client, request)


def _ask_server(payload: bytes | dict[str, Any], url: str) -> dict[str, Any]:
    from steelyard.cli.connecting import Server

    with Server(url, None, as_json=False).connected() as client:
        return _ask(client, payload)


def _ask(client: Client, payload: bytes | dict[str, Any]) -> dict[str, Any]:
    import msgspec

    from steelyard.client.answers import DecideAnswer
    from steelyard.client.calls import Call, new_or_checked_key

    body = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
    key = new_or_checked_key(None)
    call = Call("POST", "/v1/decide", DecideAnswer, body, idempotency_key=key, is_scored=True)
    answer: dict[str, Any] = msgspec.to_builtins(client.send(call))
    return answer


def show_answer(answer: dict[str, Any]) -> None:
    """Print a table for each decision, its doubts, and a line on the model that answered."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for name, decision in answer["decisions"].items():
        console.print(decision_table(name, decision, is_utf8=console.encoding.startswith("utf")))
        console.print(f"action: {printable(decision['action'])}")
        if "expected_level" in decision:
            console.print(f"expected level: {decision['expected_level']:.3f}")
        for effect in answer.get("explanation", {}).get(name, ()):
            console.print(f"{-effect['change']:+.3f} without: {printable(effect['text'])}")
        if thought := answer.get("thoughts", {}).get(name):
            before = max(thought["before"], key=thought["before"].__getitem__)
            console.print(
                f"thought, as its first answer was {printable(before)} ({thought['before'][before]:.3f}): "
                f"{printable(thought['text'])}"
            )
        console.print()
    for warning in answer.get("warnings", ()):
        click.echo(f"Warning ({warning['code']}): {printable(warning['message'])}", err=True)
    tokens, total_ms = answer["usage"]["input_tokens"], answer["timing_ms"]["total"]
    written = sum(answer["usage"].get("thought_tokens", {}).values())
    thought_of = f", {written} written before it answered" if written else ""
    console.print(f"{answer['model']}, {tokens} input tokens{thought_of}, {total_ms:.1f} ms")


def decision_table(name: str, decision: dict[str, Any], *, is_utf8: bool = True) -> Table:
    """Return the table of one decision, outcomes in their order."""
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
