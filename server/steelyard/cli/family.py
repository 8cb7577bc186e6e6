"""``steelyard family``: the families of a server and their models, grown, switched and rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli import distill, family_dossier
from steelyard.cli.connecting import Server
from steelyard.cli.failures import REFUSED, is_problem, show_failure
from steelyard.cli.family_abstaining import bound, novelty, show_bound, show_novelty
from steelyard.cli.job import FINE_TUNES
from steelyard.cli.local_state import show_fields, show_rows, show_table, show_time
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import ORIGINS_AND_UNKNOWN, together
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.errors import SteelyardError
    from steelyard.families.fine_tune_wire import FineTuneEstimate
    from steelyard.families.wire import Family
    from steelyard.models.wire import Model
    from steelyard.shadows.wire import ShadowReport

_METHOD = "What the rows have: right outcomes (sft), or rewards. [default: sft]"
_FROM = "A base model, or a model's number. [default: the server's base model]"

_EPILOG = """\b
Examples:
  steelyard family estimate router ds_01k…
  steelyard family create router ds_01k… --first words --follow
  steelyard family shadow router qwen --share 0.1
  steelyard family distill router --teacher qwen --from-log 30d
  steelyard family continue router --follow
  steelyard family continue router --base steelyard-base-2
  steelyard family switch router@3 on
  steelyard family rollback router router@2
"""


#: Options of a fine-tune that are one field of its request.
_HYPERPARAMETERS = ("seed", "lora_rank", "heads", "first", "learning_rate", "steps", "judged_by")


#: The options of a new family.
_starting = together(
    click.option("--from", "start_from", help=_FROM),
    click.option("--method", type=click.Choice(["sft", "reward"]), help=_METHOD),
    click.option(
        "--first",
        type=click.Choice(("words",)),
        help="Let words alone answer within seconds. The model of the other options follows, for the one "
        "fee, and replaces them if the gate passes it.",
    ),
)
#: The options of a fine-tune.
_training_options = together(
    click.option(
        "--judged-by",
        multiple=True,
        type=ORIGINS_AND_UNKNOWN,
        help="Origin of held-out labels that the gate counts; may be repeated. [default: all "
        "but click and model]",
    ),
    click.option(
        "--steps", type=int, help="Steps of training. [default: two passes over the rows]"
    ),
    click.option("--learning-rate", type=float, help="Size of a step. [default: the server's]"),
    click.option(
        "--heads",
        type=click.Choice(("auto", "words", "cheapest", "ladder", "evidence")),
        help="What heads read: as is best, words alone, words alone where they are as right, words "
        "alone for the decisions they are sure of, or the shipped reader's evidence too, where a "
        "yes/no is better with it.",
    ),
    click.option(
        "--lora-rank",
        type=int,
        help="1 to 16: train the encoder too, where the server has the train extra.",
    ),
    click.option("--seed", type=int, help="Of every random choice. [default: the server's]"),
    click.option(
        "--dataset-version", type=int, help="Version of the dataset. [default: the newest]"
    ),
)
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
    callback=lambda _ctx, _option, names: names or None,
    help="A family or a number that gives up its place in the same step; may be repeated.",
)
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


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


@click.group("family", cls=Noun, epilog=_EPILOG, connect=_connected)
def command() -> None:
    """Grow, switch and roll back families: named lineages of models, each grown on one dataset.

    NAME is a family, such as router; switch, keep-warm and delete take a model's number, such as
    router@3, too. Exit status: 2 when a command is refused; the reasons are then listed.
    With --follow: 1 when no model was made.
    """


for _command in (distill.command, bound, novelty, family_dossier.command):
    command.add_command(_command)


@command.asks("list")
def list_families(client: Client) -> Shown:
    """List every family: its switch, the model it serves, and whether it can be continued."""
    from steelyard.client.display_families import FAMILY_COLUMNS, family_rows

    columns = [column.upper() for column in FAMILY_COLUMNS]
    return client.families.list(), lambda page: show_table(columns, family_rows(page.data))


@command.asks("show", "name")
def show(client: Client, name: str) -> Shown:
    """Show NAME: its models, its fine-tunes, and the effect of continuing it now."""
    return client.families.get(name), _show_family


@command.asks("estimate")
@click.argument("name")
@click.argument("dataset", required=False)
@_starting
@_base
@_training_options
def estimate(
    client: Client,
    *,
    name: str,
    dataset: str | None,
    start_from: str | None,
    method: str | None,
    base: str | None,
    **given: Any,
) -> Shown:
    """Show the price of starting NAME on DATASET now; without DATASET, of continuing it."""
    if dataset is None and (start_from, method, given["first"]) != (None, None, None):
        raise click.UsageError(
            "--from, --method and --first are for a new family; name its dataset."
        )
    if dataset is not None and base is not None:
        raise click.UsageError("--base is for a family that there is; a new one starts --from it.")
    fields = _fields(given)
    if dataset is None:
        return client.families.estimate_continue(name, base=base, **fields), _show_estimate
    answer = client.families.estimate(name, dataset, start_from=start_from, method=method, **fields)
    return answer, _show_estimate


@command.asks("create", "name", "dataset")
@_starting
@_training_options
@_max_price
@_follow
def create(client: Client, name: str, dataset: str, *, follow: bool, **given: Any) -> Shown:
    """Start a family NAME: queue its first fine-tune on DATASET."""
    job = client.families.create(name, dataset, **_fields(given))
    return FINE_TUNES.begun(client, job, follow=follow)


@command.asks("continue", "name")
@_base
@_training_options
@_max_price
@_follow
def continue_family(client: Client, name: str, *, follow: bool, **given: Any) -> Shown:
    """Queue the next fine-tune of NAME, on the rows that its dataset gained."""
    job = client.families.continue_(name, **_fields(given))
    return FINE_TUNES.begun(client, job, follow=follow)


@command.asks("switch")
@click.argument("name")
@_state
@_switch_off
def switch(client: Client, *, name: str, state: str, **places: Any) -> Shown:
    """Switch NAME, a family or a model's number, on or off."""
    if "@" in name:
        return client.models.switch(name, state == "on", **places), _show_model
    return client.families.switch(name, state == "on", **places), _show_family


@command.asks("keep-warm")
@click.argument("name")
@_state
@_max_price
@_switch_off
def keep_warm(client: Client, *, name: str, state: str, **price: Any) -> Shown:
    """Keep the model of NAME loaded between calls, or stop; an hour's price is held at a time."""
    if "@" in name:
        return client.models.keep_warm(name, state == "on", **price), _show_model
    return client.families.keep_warm(name, state == "on", **price), _show_family


@command.asks("shadow")
@click.argument("name")
@click.argument("model", required=False)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    help="Of the stored answers that MODEL scores too.",
)
@click.option("--off", is_flag=True, help="End the shadow; what it answered stays.")
def shadow(client: Client, *, name: str, model: str | None, share: float, off: bool) -> Shown:
    """Score a share of NAME's requests with MODEL, unseen by callers; without MODEL, compare them."""
    if off and model is not None:
        raise click.UsageError("Give MODEL or --off.")
    if off:
        return client.families.end_shadow(name), "Ended."
    if model is None:
        return client.families.compare_shadow(name), _show_shadow
    made = client.families.shadow(name, model, share)
    return made, (
        f"{made.model} scores {made.share:.0%} of what {name} answers from now on. Compare them: "
        f"steelyard family shadow {name}"
    )


@command.asks("rollback", "name", "to")
@click.option(
    "--discard",
    multiple=True,
    metavar="NUMBER",
    help="Exactly the newer models; may be repeated. [default: those that are there, after asking]",
)
@_yes
def rollback(client: Client, name: str, to: str, *, discard: tuple[str, ...], yes: bool) -> Shown:
    """Take NAME back to the older model TO, such as router@2, and discard the newer for good."""
    names = list(discard) or _newer(client.families.get(name), to)
    if not yes and names:
        click.confirm(f"Discard {', '.join(map(printable, names))} for good?", abort=True)
    return client.families.roll_back(name, to, names), _show_family


@command.asks("delete", "name")
@_yes
def delete(client: Client, name: str, *, yes: bool) -> Shown:
    """Delete NAME for good: a family with its whole lineage, or one model by its number."""
    is_model = "@" in name
    if not yes:
        target = client.models.get(name) if is_model else client.families.get(name)
        what = "" if is_model else " and every model of its lineage"
        click.confirm(f"Delete {printable(target.id)}{what} for good?", abort=True)
    deleted = client.models.delete(name) if is_model else client.families.delete(name)
    return deleted, f"{printable(deleted.id)} is deleted."


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


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a fine-tune as its request has them."""
    training = {name: given.pop(name, None) for name in _HYPERPARAMETERS}
    chosen = {name: value for name, value in training.items() if value not in (None, ())}
    return {**given, "hyperparameters": chosen or None}


def _newer(family: Family, to: str) -> list[str]:
    """Return the models after one that are neither deleted nor discarded."""
    refs = [model.ref for model in family.models]
    if to not in refs:
        raise click.UsageError(f"{printable(family.id)} has no model {printable(to)}.")
    newer = family.models[refs.index(to) + 1 :]
    return [model.ref for model in newer if model.status == "ready"]


def _show_estimate(shown: FineTuneEstimate) -> None:
    minimum = ", the least that one costs" if shown.minimum_applied else ""
    steps = f"{shown.steps}, {shown.passes:.3g} passes over {shown.train_rows} rows"
    show_fields(
        shown,
        "price, trained tokens:trained_tokens, steps, new rows:rows.new, earlier rows:rows.earlier, "
        "evaluation rows:rows.evaluation, dataset version:dataset_version, seed",
        price=lambda _: f"{shown.price_usd} {shown.currency}{minimum}",
        steps=lambda _: steps,
    )
    for warning in shown.warnings or ():
        click.echo(printable(warning))


def _show_family(family: Family) -> None:
    from msgspec import UNSET

    from steelyard.client.display_families import MODEL_COLUMNS, describe_family, model_rows

    click.echo(printable(f"{family.id} {describe_family(family)}"))
    if family.models:
        click.echo()
        show_table([column.upper() for column in MODEL_COLUMNS], model_rows(family))
    if family.bound is not UNSET:
        click.echo()
        show_bound(family)
    if family.novelty is not UNSET:
        click.echo()
        show_novelty(family)
    if family.jobs is not UNSET and family.jobs:
        click.echo()
        show_rows(
            family.jobs,
            "FINE-TUNE:id, STATUS:status, OUTCOME:outcome, VERSION:dataset_version, USD:price_usd, "
            "QUEUED:created_at, REASON:reason",
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
    lines = []
    for name, each in report.decisions.items():
        right = (each.both_right + each.family_right, each.both_right + each.shadow_right)
        lines.append((name, each.n, f"{each.agreement.value:.1%}", each.observed, *right))
    show_table(("DECISION", "ANSWERS", "AGREE", "OBSERVED", "FAMILY RIGHT", "SHADOW RIGHT"), lines)


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
