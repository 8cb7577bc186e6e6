"""``steelyard family``: the families of a server and their models, grown, switched and rolled back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from steelyard.cli import distill, family_bound, family_dossier, family_novelty
from steelyard.cli.connecting import Server, server_options
from steelyard.cli.failures import REFUSED, is_problem, show_failure
from steelyard.cli.job import show_job
from steelyard.cli.local_state import show_table, show_time
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.errors import SteelyardError
    from steelyard.families.fine_tune_wire import FineTuneEstimate, Job
    from steelyard.families.wire import Family
    from steelyard.models.wire import Model
    from steelyard.shadows.wire import ShadowReport

_Command = TypeVar("_Command", bound=Callable[..., Any])

_EPILOG = """\b
Examples:
  steelyard family estimate router ds_01k…
  steelyard family create router ds_01k… --follow
  steelyard family shadow router qwen --share 0.1
  steelyard family distill router --teacher qwen --from-log 30d
  steelyard family continue router --follow
  steelyard family continue router --base steelyard-base-2
  steelyard family switch router@3 on
  steelyard family rollback router router@2
"""


def _training_options(command: _Command) -> _Command:
    """Add the options of a fine-tune."""
    for option in (
        click.option("--dataset-version", type=int, help="[default: the newest]"),
        click.option("--seed", type=int, help="Of every random choice. [default: the server's]"),
        click.option(
            "--lora-rank",
            type=int,
            help="1 to 16: train the encoder too, where the server has the train extra.",
        ),
        click.option(
            "--heads",
            type=click.Choice(("auto", "words", "cheapest")),
            help="What heads read: as is best, words alone, or words alone where they are as right.",
        ),
        click.option("--learning-rate", type=float, help="[default: the server's]"),
        click.option("--steps", type=int, help="[default: two passes over the rows]"),
        click.option(
            "--judged-by",
            multiple=True,
            type=click.Choice(("person", "expert", "outcome", "click", "model", "unknown")),
            help="Origin of held-out labels that the gate counts; may be repeated. [default: all "
            "but click and model]",
        ),
    ):
        command = option(command)
    return command


_base = click.option(
    "--base",
    help="Move NAME to this base model: train its next model from that, on every row. "
    "[default: that of its latest model]",
)
_max_price = click.option("--max-price-usd", help="Refuse when it is dearer.")
_follow = click.option(
    "--follow", is_flag=True, help="Wait until it has ended, and show the gate's verdict."
)
_state = click.argument("state", type=click.Choice(["on", "off"]))
_switch_off = click.option(
    "--switch-off",
    multiple=True,
    metavar="NAME",
    help="A family or a number that gives up its place in the same step; may be repeated.",
)
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group("family", epilog=_EPILOG)
def command() -> None:
    """Grow, switch and roll back families: named lineages of models, each grown on one dataset.

    NAME is a family, such as router; switch, keep-warm and delete take a model's number, such as
    router@3, too. Exit status: 2 when a command is refused; what stands against it is then listed.
    With --follow: 1 when the fine-tune made no model.
    """


command.add_command(distill.command)
command.add_command(family_bound.command)
command.add_command(family_novelty.command)
command.add_command(family_dossier.command)


@command.command("list", epilog=_EPILOG)
@server_options
def list_families(*, server: Server) -> None:
    """List every family: its switch, the model it serves, and whether it can be continued."""
    from steelyard.client.display_families import FAMILY_COLUMNS, family_rows

    with _connected(server) as client:
        families = client.families.list()
    columns = [column.upper() for column in FAMILY_COLUMNS]
    server.show(families, lambda page: show_table(columns, family_rows(page.data)))


@command.command("show", epilog=_EPILOG)
@click.argument("name")
@server_options
def show(*, name: str, server: Server) -> None:
    """Show NAME: its models, its fine-tunes, and the effect of continuing it now."""
    with _connected(server) as client:
        family = client.families.get(name)
    server.show(family, _show_family)


@command.command("estimate", epilog=_EPILOG)
@click.argument("name")
@click.argument("dataset", required=False)
@click.option("--from", "start_from", help="A base model, or a model's number.")
@click.option("--method", type=click.Choice(["sft", "reward"]), help="[default: sft]")
@_base
@_training_options
@server_options
def estimate(
    *,
    name: str,
    dataset: str | None,
    start_from: str | None,
    method: str | None,
    base: str | None,
    dataset_version: int | None,
    server: Server,
    **training: Any,
) -> None:
    """Show the price of starting NAME on DATASET now; without DATASET, of continuing it."""
    if dataset is None and (start_from is not None or method is not None):
        raise click.UsageError("--from and --method are for a new family; name its dataset.")
    if dataset is not None and base is not None:
        raise click.UsageError("--base is for a family that there is; a new one starts --from it.")
    given: dict[str, Any] = {
        "hyperparameters": _given(training),
        "dataset_version": dataset_version,
    }
    with _connected(server) as client:
        if dataset is None:
            answer = client.families.estimate_continue(name, base=base, **given)
        else:
            answer = client.families.estimate(
                name, dataset, start_from=start_from, method=method, **given
            )
    server.show(answer, _show_estimate)


@command.command("create", epilog=_EPILOG)
@click.argument("name")
@click.argument("dataset")
@click.option("--from", "start_from", help="A base model, or a model's number.")
@click.option("--method", type=click.Choice(["sft", "reward"]), help="[default: sft]")
@_training_options
@_max_price
@_follow
@server_options
def create(
    *,
    name: str,
    dataset: str,
    start_from: str | None,
    method: str | None,
    dataset_version: int | None,
    max_price_usd: str | None,
    follow: bool,
    server: Server,
    **training: Any,
) -> None:
    """Start a family NAME: queue its first fine-tune on DATASET."""
    with _connected(server) as client:
        job = client.families.create(
            name,
            dataset,
            start_from=start_from,
            method=method,
            hyperparameters=_given(training),
            dataset_version=dataset_version,
            max_price_usd=max_price_usd,
        )
        _show_queued(client, job, server, follow=follow)


@command.command("continue", epilog=_EPILOG)
@click.argument("name")
@_base
@_training_options
@_max_price
@_follow
@server_options
def continue_family(
    *,
    name: str,
    base: str | None,
    dataset_version: int | None,
    max_price_usd: str | None,
    follow: bool,
    server: Server,
    **training: Any,
) -> None:
    """Queue the next fine-tune of NAME, on the rows that its dataset gained."""
    with _connected(server) as client:
        job = client.families.continue_(
            name,
            hyperparameters=_given(training),
            dataset_version=dataset_version,
            base=base,
            max_price_usd=max_price_usd,
        )
        _show_queued(client, job, server, follow=follow)


@command.command("switch", epilog=_EPILOG)
@click.argument("name")
@_state
@_switch_off
@server_options
def switch(*, name: str, state: str, switch_off: tuple[str, ...], server: Server) -> None:
    """Switch NAME, a family or a model's number, on or off."""
    others = switch_off or None
    with _connected(server) as client:
        if "@" in name:
            model = client.models.switch(name, state == "on", switch_off=others)
            server.show(model, _show_model)
        else:
            answer = client.families.switch(name, state == "on", switch_off=others)
            server.show(answer, _show_family)


@command.command("keep-warm", epilog=_EPILOG)
@click.argument("name")
@_state
@_max_price
@_switch_off
@server_options
def keep_warm(
    *, name: str, state: str, max_price_usd: str | None, switch_off: tuple[str, ...], server: Server
) -> None:
    """Keep the model of NAME loaded between calls, or stop; an hour's price is held at a time."""
    given: dict[str, Any] = {"max_price_usd": max_price_usd, "switch_off": switch_off or None}
    with _connected(server) as client:
        if "@" in name:
            model = client.models.keep_warm(name, state == "on", **given)
            server.show(model, _show_model)
        else:
            answer = client.families.keep_warm(name, state == "on", **given)
            server.show(answer, _show_family)


@command.command("shadow", epilog=_EPILOG)
@click.argument("name")
@click.argument("model", required=False)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="Of the stored answers that MODEL scores too.",
)
@click.option("--off", is_flag=True, help="End the shadow; what it answered stays.")
@server_options
def shadow(*, name: str, model: str | None, share: float, off: bool, server: Server) -> None:
    """Score a share of NAME's requests with MODEL, unseen by callers; without MODEL, compare them."""
    if off and model is not None:
        raise click.UsageError("Give MODEL or --off.")
    with _connected(server) as client:
        if off:
            server.show(client.families.end_shadow(name), lambda _: click.echo("Ended."))
        elif model is not None:
            server.show(
                client.families.shadow(name, model, share),
                lambda made: click.echo(
                    f"{made.model} scores {made.share:.0%} of what {name} answers from now on. Compare "
                    f"them: steelyard family shadow {name}"
                ),
            )
        else:
            server.show(client.families.compare_shadow(name), _show_shadow)


@command.command("rollback", epilog=_EPILOG)
@click.argument("name")
@click.argument("to")
@click.option(
    "--discard",
    multiple=True,
    metavar="NUMBER",
    help="Exactly the newer models; may be repeated. [default: those that are there, after asking]",
)
@_yes
@server_options
def rollback(*, name: str, to: str, discard: tuple[str, ...], yes: bool, server: Server) -> None:
    """Take NAME back to the older model TO, such as router@2, and discard the newer for good."""
    with _connected(server) as client:
        names = list(discard) or _newer(client.families.get(name), to)
        if not yes and names:
            click.confirm(f"Discard {', '.join(map(printable, names))} for good?", abort=True)
        answer = client.families.roll_back(name, to, names)
    server.show(answer, _show_family)


@command.command("delete", epilog=_EPILOG)
@click.argument("name")
@_yes
@server_options
def delete(*, name: str, yes: bool, server: Server) -> None:
    """Delete NAME for good: a family with its whole lineage, or one model by its number."""
    what = "" if "@" in name else " and every model of its lineage"
    if not yes:
        click.confirm(f"Delete {printable(name)}{what} for good?", abort=True)
    with _connected(server) as client:
        deleted = client.models.delete(name) if "@" in name else client.families.delete(name)
    server.show(deleted, lambda deleted: click.echo(f"{printable(deleted.id)} is deleted."))


@contextmanager
def _connected(server: Server) -> Iterator[Client]:
    """Yield a client; obstacles to a command are listed under its refusal."""
    from steelyard.errors import InvalidRequestError, SteelyardError

    with server.connected() as client:
        try:
            yield client
        except SteelyardError as error:
            if not error.details or isinstance(error, InvalidRequestError):
                raise
            show_failure(error)
            _show_obstacles(error)
            raise SystemExit(REFUSED) from None


def _show_obstacles(error: SteelyardError) -> None:
    """List models that answer, are kept warm, or would be discarded or cancelled by a rollback."""
    for detail in error.details or ():
        if is_problem(detail):  # shown with the refusal
            continue
        for name, obstacles in detail.items():
            if not isinstance(obstacles, list):
                continue
            for obstacle in obstacles:
                line = obstacle
                if isinstance(obstacle, dict):
                    through = [*(obstacle.get("serves") or obstacle.get("families") or ())]
                    if obstacle.get("on") or obstacle.get("keep_warm"):
                        through.insert(0, "its own switch")
                    line = f"{obstacle.get('model')} through {', '.join(map(str, through))}"
                click.echo(printable(f"  {name}: {line}"), err=True)


def _given(training: dict[str, Any]) -> dict[str, Any] | None:
    given = {name: value for name, value in training.items() if value not in (None, ())}
    return given or None


def _newer(family: Family, to: str) -> list[str]:
    """Return the models after one that are neither deleted nor discarded."""
    refs = [model.ref for model in family.models]
    if to not in refs:
        raise click.UsageError(f"{printable(family.id)} has no model {printable(to)}.")
    newer = family.models[refs.index(to) + 1 :]
    return [model.ref for model in newer if model.status == "ready"]


def _show_queued(client: Client, job: Job, server: Server, *, follow: bool) -> None:
    from steelyard.cli.job import FINE_TUNES

    if follow:
        FINE_TUNES.follow(client, job, server)
    else:
        server.show(job, show_job)


def _show_estimate(shown: FineTuneEstimate) -> None:
    minimum = ", the least that one costs" if shown.minimum_applied else ""
    show_table(
        ("FIELD", "VALUE"),
        [
            ("price", f"{shown.price_usd} {shown.currency}{minimum}"),
            ("trained tokens", shown.trained_tokens),
            (
                "steps",
                f"{shown.steps}, {shown.passes:.3g} passes over {shown.train_rows} rows",
            ),
            ("new rows", shown.rows.new),
            ("earlier rows", shown.rows.earlier),
            ("evaluation rows", shown.rows.evaluation),
            ("dataset version", shown.dataset_version),
            ("seed", shown.seed),
        ],
    )


def _show_family(family: Family) -> None:
    from msgspec import UNSET

    from steelyard.client.display_families import MODEL_COLUMNS, describe_family, model_rows

    click.echo(printable(f"{family.id} {describe_family(family)}"))
    if family.models:
        click.echo()
        show_table([column.upper() for column in MODEL_COLUMNS], model_rows(family))
    if family.bound is not UNSET:
        click.echo()
        family_bound.show_bound(family)
    if family.novelty is not UNSET:
        click.echo()
        family_novelty.show_novelty(family)
    if family.jobs is not UNSET and family.jobs:
        click.echo()
        show_table(
            ("FINE-TUNE", "STATUS", "OUTCOME", "VERSION", "USD", "QUEUED", "REASON"),
            [
                (
                    job.id,
                    job.status,
                    job.outcome,
                    job.dataset_version,
                    job.price_usd,
                    show_time(job.created_at),
                    job.reason,
                )
                for job in family.jobs
            ],
        )
    if family.continue_ is not UNSET and family.continue_ is not None:
        continuation = family.continue_
        click.echo()
        taken = continuation.rows
        rows = "" if taken is None else f": {taken.new} new and {taken.earlier} earlier rows"
        click.echo(
            f"continue: {continuation.state.replace('_', ' ')}, version {continuation.version}{rows}"
        )
        for reason in continuation.reasons:
            click.echo(printable(reason))


def _show_shadow(report: ShadowReport) -> None:
    if report.shadow is None:
        click.echo("There is no shadow; set one: steelyard family shadow NAME MODEL")
        return
    made = report.shadow
    click.echo(f"{made.model} beside {made.family}: {report.answers} answers of both")
    show_table(
        ("DECISION", "ANSWERS", "AGREE", "OBSERVED", "FAMILY RIGHT", "SHADOW RIGHT"),
        [
            (
                name,
                decision.n,
                f"{decision.agreement.value:.1%}",
                decision.observed,
                decision.both_right + decision.family_right,
                decision.both_right + decision.shadow_right,
            )
            for name, decision in report.decisions.items()
        ],
    )


def _show_model(model: Model) -> None:
    import msgspec

    fields = msgspec.to_builtins(model)
    names = ("id", "status", "lora", "family", "on_at", "keep_warm", "used_at", "off_reason")
    times = {"on_at", "used_at"}
    show_table(
        ("FIELD", "VALUE"),
        [
            (name, show_time(fields[name]) if name in times else fields[name])
            for name in names
            if name in fields
        ],
    )
