"""``steelyard route``: models asked in order, each where the one before is unsure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.connected_models import ask_sides, find_named, sides_options
from steelyard.cli.local_state import ThisMachine, home_options, show_rows, show_table
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import PROBABILITY, SHARE

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from steelyard.client import Client
    from steelyard.serving.connected.declared_route import DeclaredRoute
    from steelyard.serving.routed.fitting import Bound
    from steelyard.serving.routed.report import RouteReport
    from steelyard.serving.routed.walking import Side
    from steelyard.wire.measures import Measure

_EPILOG = """\b
Examples:
  steelyard route fit first ds_01k… --models steelyard-base-2,qwen --min-accuracy 0.9
  steelyard route fit first ds_01k… --models steelyard-base-2,qwen --max-cost 0.05 --replace
  steelyard route fit first ds_01k… --models steelyard-base-2,qwen --max-share 0.3 --json
  steelyard decide request.json --model first
  steelyard route list
  steelyard route show first
  steelyard route remove first
"""


@click.group("route", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Fit, list and remove routes: a cheap model decides where it is sure, another decides the rest."""


@command.asks("fit", "name", "dataset")
@click.option("--models", required=True, metavar="A,B", help="In the order to ask; two to four.")
@click.option(
    "--min-accuracy",
    type=PROBABILITY,
    help="The cheapest that is certified to be right this often.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0),
    metavar="USD",
    help="The most accurate at this price for 1,000 decisions.",
)
@click.option(
    "--max-share",
    type=SHARE,
    help="The most accurate that lets this share go beyond the first model.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    help="Of what --min-accuracy certifies.",
)
@click.option("--anyway", is_flag=True, help="Keep it where the rows cannot certify that.")
@click.option("--replace", is_flag=True, help="Fit a route anew that is there.")
@sides_options
def fit(
    client: Client,
    name: str,
    dataset: str,
    *,
    models: str,
    rows: int,
    version: int | None,
    replace: bool,
    confidence: float,
    anyway: bool,
    home: str | None,
    **bounds: float | None,
) -> Shown:
    """Choose the thresholds of the route NAME on DATASET, and keep it.

    Every model answers at most so many rows of each side through the running server, which charges
    for that as for any request. Thresholds are chosen on training rows; evaluation rows judge, and
    certify the accuracy of --min-accuracy: where they cannot, nothing is kept. The home must be that
    of the server, which has the route within a second.
    """
    from steelyard.serving.connected.declared import check_name
    from steelyard.serving.routed.report import fit_route

    bound = _bound(bounds)
    check_name(name)
    machine = ThisMachine(home)
    routes = machine.declared().routes
    if name in routes and not replace:
        raise click.UsageError(f"There is a route {name!r}; fit it anew with --replace.")
    prices = _prices(client, models.split(","), name, routes, bound)
    number = client.datasets.get(dataset).version if version is None else version
    training, evaluation, failures = _observe(client, dataset, number, rows, prices)

    def tell_uncertified(reason: str) -> None:
        if not anyway:
            raise click.ClickException(
                f"{reason} Nothing is kept; keep what the training rows say with --anyway."
            )
        click.echo(f"Not certified: {reason}", err=True)

    report = fit_route(
        name,
        dataset,
        number,
        bound,
        (training, evaluation),
        failures,
        confidence=confidence,
        on_uncertified=tell_uncertified,
    )
    machine.change_declared(lambda declared: declared.with_route(name, report.route))
    return report, _show_report


@command.asks("list", options=home_options)
def list_routes(machine: ThisMachine) -> Shown:
    """List the routes."""
    routes = machine.declared().routes
    lines = [
        (name, ", ".join(route.models), route.dataset or None, route.version or None, route.added)
        for name, route in routes.items()
    ]
    columns = ("NAME", "MODELS", "DATASET", "VERSION", "ADDED")
    return routes, lambda _: show_table(columns, lines)


@command.asks("show", "name", options=home_options)
def show(machine: ThisMachine, name: str) -> Shown:
    """Show the models of the route NAME, and the top probability below which the next is asked."""
    return find_named("route", machine.declared().routes, name), _show_route


@command.asks("remove", "name", options=home_options)
def remove(machine: ThisMachine, name: str) -> Shown:
    """Remove the route NAME; its models and its stored answers stay."""
    removed = find_named("route", machine.declared().routes, name)
    machine.change_declared(lambda declared: declared.without(name))
    return removed, f"Removed {name}."


def _bound(given: Mapping[str, float | None]) -> Bound:
    from steelyard.serving.routed.fitting import Bound

    kinds = {"min_accuracy": "accuracy", "max_cost": "price", "max_share": "share"}
    chosen = [(kinds[name], value) for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise click.UsageError("Give one of --min-accuracy, --max-cost and --max-share.")
    kind: Any = chosen[0][0]
    return Bound(kind, chosen[0][1])


def _prices(
    client: Client,
    names: Sequence[str],
    route: str,
    routes: Mapping[str, DeclaredRoute],
    bound: Bound,
) -> dict[str, int]:
    """Return the price of an input token of each model, in nano-USD, in the order to ask."""
    from steelyard.wire.limits import MAX_STEPS

    models = [name.strip() for name in names]
    if len(set(models)) != len(models) or not 2 <= len(models) <= MAX_STEPS:
        raise click.UsageError(f"--models: name two to {MAX_STEPS} models, each once.")
    here = {item.id: item for item in client.models.list().data if item.lora is None}
    if route in here and route not in routes:
        raise click.UsageError(f"The server has a model {route!r}; choose another name.")
    known = [name for name, model in here.items() if model.engine != "route"]
    for name in models:
        if name not in known:
            raise click.UsageError(
                f"{name!r} is no base or connected model of the server; there are: "
                f"{', '.join(known)}."
            )
    prices = {name: int(here[name].decision_price_nano or 0) for name in models}
    if bound.kind == "price" and not any(prices.values()):
        raise click.UsageError("None of the models has a price; use --max-share or --min-accuracy.")
    return prices


def _observe(
    client: Client, dataset: str, version: int, n_rows: int, prices: Mapping[str, int]
) -> tuple[Side, Side, Counter[str]]:
    from steelyard.serving.routed.observing import observe

    def ask(model: str, row: Mapping[str, Any]) -> Any:
        return client.decide(
            row["context"], row["decisions"], model=model, fallback="none", store=False
        )

    return ask_sides(
        client, dataset, version, n_rows, lambda rows, on_row: observe(ask, rows, prices, on_row)
    )


def _show_report(report: RouteReport) -> None:
    _show_steps(report.route)
    click.echo()
    show_rows(
        report.held_out,
        "HELD OUT:name, ACCURACY:accuracy, LOG LOSS:log_loss, ESCALATED:share_escalated, "
        "USD PER 1,000:price_usd_per_1000",
        accuracy=lambda each: _measure(each.accuracy),
        log_loss=lambda each: _measure(each.log_loss),
        share_escalated=lambda each: each.share_escalated and _measure(each.share_escalated),
        price_usd_per_1000=lambda each: _measure(each.price_usd_per_1000),
    )
    click.echo(
        f"Fitted on {report.training.accuracy.n} decisions with an accuracy of "
        f"{report.training.accuracy.value:.3f}, judged on {report.held_out[0].accuracy.n}; "
        "intervals of 95 %."
    )
    if report.certified is not None:
        click.echo(
            f"Certified: right in at least {report.certified.accuracy:g} of decisions like the "
            f"held-out ones, with a confidence of {report.certified.confidence:g}."
        )
    click.echo(f"Kept. Ask it: steelyard decide request.json --model {report.name}")


def _show_route(route: DeclaredRoute) -> None:
    _show_steps(route)
    if route.dataset:
        click.echo(f"Fitted on {route.dataset}, version {route.version}.")


def _show_steps(route: DeclaredRoute) -> None:
    last = len(route.steps) - 1
    show_table(
        ("ASKED", "MODEL", "DECIDES FROM A TOP PROBABILITY OF"),
        [
            (place + 1, step.model, "what is left" if place == last else f"{step.threshold:.4f}")
            for place, step in enumerate(route.steps)
        ],
    )


def _measure(measure: Measure) -> str:
    from steelyard.wire.measures import interval_text

    ends = interval_text(measure.low, measure.high, form=".4g", to=" to ", is_bounded=False)
    return f"{measure.value:.4g} ({ends})"
