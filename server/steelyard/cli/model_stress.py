"""``steelyard model stress``: how often a model's answers flip under pressure."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import ThisMachine, show_rows
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import setting_option
from steelyard.cli.terminal import printable, progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.client import Client
    from steelyard.models.stress_wire import StressReport

_EPILOG = """\b
Examples:
  steelyard model stress steelyard-base-2 ds_01k…
  steelyard model stress router ds_01k… --rows 300 --yes --json
"""


@asking("stress", "name", "dataset", epilog=_EPILOG)
@click.option(
    "--rows", type=click.IntRange(2, 5_000), default=100, help="Evaluation rows that are asked."
)
@click.option("--version", type=int, help="Version of the dataset. [default: the latest]")
@click.option("--yes", is_flag=True, help="Do not ask whether the price is fine.")
@setting_option("home")
def command(
    client: Client,
    name: str,
    dataset: str,
    *,
    rows: int,
    version: int | None,
    yes: bool,
    home: str | None,
) -> Shown:
    """Ask the model NAME rows of DATASET again under pressure, and count answers that flip.

    Pressures: instructions hidden in the text, padding, renamed outcomes, capitals, letters that look
    alike, white space and typos; beside them the same request again and harmless wording, which are
    the noise. The price is shown first. The home must be that of the server, whose page of models
    shows the results.
    """
    import msgspec

    from steelyard.models.stress import ask_under_pressure, stress_lines
    from steelyard.models.stress_reports import keep_stress
    from steelyard.models.stress_wire import StressReport

    model = client.models.get(_number(client, name))
    number = client.datasets.get(dataset).version if version is None else version
    lines = client.datasets.download(dataset, partition="evaluation", version=number)
    sent = [msgspec.json.decode(line) for line in lines.splitlines()[:rows]]
    if not sent:
        raise click.ClickException("The dataset has no evaluation rows; add some.")
    _tell_price(client, name, sent, is_confirmed=yes)

    def ask(context: Any, decisions: Sequence[Mapping[str, Any]]) -> Any:
        # By the family's name, where it is one: a number by itself may be switched off.
        return client.decide(context, decisions, model=name, fallback="none", store=False)

    with progress_bar(f"Asking {printable(model.id)}", len(sent)) as progress:
        counts, failures = ask_under_pressure(ask, sent, progress)
    for message, n_rows in failures.items():
        click.echo(f"{n_rows} rows failed: {printable(message)}", err=True)
    if not counts:
        raise click.ClickException("No row was answered; nothing is kept.")
    report = StressReport(
        model=model.id,
        dataset_version=number,
        contexts=len(counts),
        tested_at=time.time(),
        lines=stress_lines(counts),
    )
    keep_stress(ThisMachine(home).folder, model.evaluation_key, report)
    return report, _show


def _number(client: Client, name: str) -> str:
    """Return the model that a family serves, by number; other names as they are."""
    served = {family.id: family.served for family in client.families.list().data}
    number = served.get(name)
    return name if number is None else number.ref


def _tell_price(
    client: Client, model: str, rows: Sequence[Mapping[str, Any]], *, is_confirmed: bool
) -> None:
    from steelyard.models.pressures import N_REQUESTS

    quotes = [
        client.estimate(row["context"], row["decisions"], model=model, fallback="none")
        for row in rows
    ]
    tokens = sum(quote.input_tokens for quote in quotes) * N_REQUESTS
    price = sum((Decimal(quote.models[0].quote_usd) for quote in quotes), Decimal()) * N_REQUESTS
    click.echo(
        f"{len(rows) * N_REQUESTS:,} requests of {len(rows):,} rows, some {tokens:,} input tokens, "
        f"cost about {price.normalize():f} USD.",
        err=True,
    )
    if price and not is_confirmed:
        click.confirm("Go on?", abort=True, err=True)


def _show(report: StressReport) -> None:
    from steelyard.client.display_evaluations import show_measure

    click.echo(f"{report.model}, {report.contexts:,} contexts; share of answers that flip:")
    show_rows(
        report.lines,
        "PRESSURE:pressure, FLIPPED:flipped, BEYOND THE NOISE:beyond_noise, ANSWERS:n, "
        "WHAT IS DONE:description",
        flipped=lambda line: show_measure(line.flipped),
        beyond_noise=lambda line: line.beyond_noise and show_measure(line.beyond_noise),
        n=lambda line: line.flipped and line.flipped.n,
    )
