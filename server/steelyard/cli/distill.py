"""``steelyard family distill``: from a strong model's labels to a small family, in one command.

Each step is the durable job that it is elsewhere. The labeling job's name says whose it is, so that
the same command again goes on where it was.
"""

from __future__ import annotations

import statistics
import time
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.failures import FAILED
from steelyard.cli.job import show_job
from steelyard.cli.local_state import show_table
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import SHARE, read_list
from steelyard.cli.stored_queries import read_window, unsure_queries
from steelyard.cli.terminal import printable, show_warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.client import Client
    from steelyard.evaluations.frontier_wire import FrontierPoint
    from steelyard.families.fine_tune_wire import Job
    from steelyard.labeling.wire import LabelingJob

_EPILOG = """\b
Examples:
  steelyard family distill router --teacher qwen --source src_01k…
  steelyard family distill router --teacher qwen --from-log 30d --review-share 0.1
"""
#: Statuses of labeling that is of no more use.
_OVER = {"failed", "cancelled", "discarded", "deleted"}
#: Seconds in which a family moves to its new model.
_MOVE_S = 30.0
#: Calls that the median time of an answer is taken of.
_TIMED = 15


@asking("distill", "name", epilog=_EPILOG)
@click.option("--teacher", "teachers", multiple=True, required=True, help="May be repeated.")
@click.option("--source", help="A source of queries; see steelyard labeling upload.")
@click.option(
    "--from-log",
    "window_s",
    callback=read_window,
    metavar="TIME",
    help="Instead: stored answers of so long, such as 30d, without feedback.",
)
@click.option(
    "--unsure",
    type=SHARE,
    default=1.0,
    help="With --from-log: only answers whose top probability is at most this.",
)
@click.option("--decisions", type=click.File("rb"), help="JSON of decisions for rows without any.")
@click.option(
    "--review-share",
    type=SHARE,
    default=0.0,
    help="Stop for people to look at this share of the rows, the most contested.",
)
@click.option(
    "--max-price-usd", help="Of labeling and training together; without it, you are asked."
)
@click.option("--yes", is_flag=True, help="Do not ask about the price.")
def command(
    client: Client,
    name: str,
    *,
    teachers: tuple[str, ...],
    source: str | None,
    window_s: float | None,
    unsure: float,
    decisions: Any,
    review_share: float,
    max_price_usd: str | None,
    yes: bool,
) -> Shown:
    """Train the family NAME on a teacher's answers to queries: label, finalize, train, evaluate.

    Run it again after an interruption or a review, and it goes on. Exit status: 1 when labeling
    failed, or the gate did not pass the new model.
    """
    if (source is None) == (window_s is None):
        raise click.UsageError("Give --source or --from-log.")
    purse = _Purse(max_price_usd, needs_consent=not yes)
    labeling = _find_labeling(client, name, source)
    if labeling is None:
        decision_list = read_list(decisions, "--decisions")
        if source is None:
            assert window_s is not None  # noqa: S101  one of both is given
            source = _upload(client, name, window_s, unsure)
        labeling = _begin(client, purse, name, source, teachers, decision_list)
    _tell(f"Labeling {labeling.id}: {labeling.rows} rows by {', '.join(labeling.teacher_models)}")
    show_warnings(labeling.warnings)
    labeling = client.labeling.wait(labeling)
    if labeling.status not in {"review_ready", "finalized"}:
        _tell(f"Labeling ended as {labeling.status}; nothing was trained.")
        raise click.exceptions.Exit(FAILED)
    if labeling.status == "review_ready":
        contested = _finalize(client, labeling, review_share)
        if contested:
            _tell(
                f"{len(contested)} rows wait for people, the most contested first: "
                f"{', '.join(map(str, contested[:20]))}. Look at them on the page Labeling, make "
                "the dataset there, and run this command again."
            )
            raise click.exceptions.Exit(0)
        labeling = client.labeling.get(labeling.id)
    job = _train(client, purse, name, str(labeling.dataset_id))
    _tell(f"Training {job.id}")
    show_warnings(job.warnings)
    job = client.jobs.wait(job)
    report = _report(client, name, job, labeling.teacher_models) if job.has_joined else []
    return {"job": job, "report": report}, _show, not job.has_joined


class _Purse:
    """The remaining budget: a price is shown, and confirmed, before anything starts."""

    def __init__(self, most: str | None, *, needs_consent: bool) -> None:
        self._left = None if most is None else Decimal(most)
        self._asks_first = needs_consent and most is None

    def pay(self, price_usd: str, what: str) -> None:
        """Take a price, or refuse it."""
        price = Decimal(price_usd)
        _tell(f"{what} costs {price_usd} USD.")
        if self._left is not None:
            if price > self._left:
                raise click.ClickException(
                    f"{what} costs {price_usd} USD, and {self._left} are left of --max-price-usd; "
                    "nothing was charged for it. Allow more, and run the command again."
                )
            self._left -= price
        elif price and self._asks_first:
            click.confirm("Go on?", abort=True, err=True)


def _tell(text: str) -> None:
    click.echo(printable(text), err=True)


def _title(name: str) -> str:
    return f"distill {name}"


def _find_labeling(client: Client, name: str, source: str | None) -> LabelingJob | None:
    """Return the newest labeling of this command, if there is one to go on with."""
    for labeling in client.labeling.list():
        if labeling.name == _title(name) and labeling.status not in _OVER:
            return labeling if source in {None, labeling.source_id} else None
    return None


def _upload(client: Client, name: str, window_s: float, unsure: float) -> str:
    queries = unsure_queries(client, window_s=window_s, unsure=unsure)
    if not queries:
        raise click.ClickException(
            "No stored answer of that time is without feedback; take a longer time, or --source."
        )
    return client.labeling.upload(_title(name), queries).id


def _begin(
    client: Client,
    purse: _Purse,
    name: str,
    source: str,
    teachers: Sequence[str],
    decisions: Any,
) -> LabelingJob:
    """Start the labeling, at the confirmed price."""
    from steelyard.errors import PriceChangedError

    given: dict[str, Any] = {
        "teacher_models": teachers,
        "decisions": decisions,
        "name": _title(name),
        "weighting": "probabilities",  # teachers without a calibration vote
    }
    try:  # a free job begins; else the refusal has the price
        return client.labeling.create(source, max_price_usd="0", **given)
    except PriceChangedError as error:
        price = str((error.details or [{}])[0].get("price_usd"))
    purse.pay(price, "The labeling")
    return client.labeling.create(source, max_price_usd=price, **given)


def _finalize(client: Client, labeling: LabelingJob, review_share: float) -> list[int]:
    """Make the dataset of all rows that have labels, or return those that people look at first."""
    from steelyard.labeling.contested import most_contested

    results = list(client.labeling.results(labeling.id))
    contested = most_contested(results, review_share)
    if not contested:
        client.labeling.finalize(labeling.id, [result.index for result in results if result.valid])
    return contested


def _train(client: Client, purse: _Purse, name: str, dataset: str) -> Job:
    """Return the family's newest fine-tune on a dataset, or queue its first."""
    from msgspec import UNSET

    from steelyard.errors import NotFoundError

    try:
        family = client.families.get(name)
    except NotFoundError:
        price = client.families.estimate(name, dataset).price_usd
        purse.pay(price, "The fine-tune")
        return client.families.create(name, dataset, max_price_usd=price)
    if family.dataset_id != dataset or family.jobs is UNSET or not family.jobs:
        raise click.ClickException(
            f"The family {name} grows on another dataset; choose another name, or add the rows of "
            f"{dataset} to its dataset and run: steelyard family continue {name}"
        )
    job: Job = client.jobs.get(max(family.jobs, key=lambda job: job.created_at).id)
    return job


def _report(client: Client, name: str, job: Job, teachers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the family beside its teachers on the held-out rows: right, price and time."""
    from steelyard.errors import SteelyardError

    dataset = job.dataset_id
    # The engines move the family to its model within seconds; its evaluation came with the gate.
    until = time.monotonic() + _MOVE_S
    while client.families.get(name).served is None and time.monotonic() < until:
        time.sleep(0.2)
    try:
        submitted = client.evaluations.create(dataset, teachers).data
    except SteelyardError as error:  # such as credit that is used up: the family is there
        _tell(f"The teachers were not evaluated: {error}")
        return []
    for evaluation in submitted:
        client.evaluations.wait(evaluation)
    points = {
        point.family or point.model: point for point in client.evaluations.frontier(dataset).data
    }
    rows = client.datasets.rows(dataset, partition="evaluation", limit=_TIMED).data
    return [
        _line(client, model, points[model], rows) for model in (name, *teachers) if model in points
    ]


def _line(client: Client, model: str, point: FrontierPoint, rows: Sequence[Any]) -> dict[str, Any]:
    from steelyard.errors import SteelyardError

    times = []
    with suppress(SteelyardError):  # one that is off, or gone, has no time
        for row in rows:
            began = time.perf_counter()
            client.decide(row.context, row.decisions, model=model, fallback="none", store=False)
            times.append((time.perf_counter() - began) * 1e3)
    return {
        "model": model,
        "accuracy": point.estimate,
        "price_usd_per_1000": point.price_usd_per_1000,
        "latency_ms": statistics.median(times) if times else None,
    }


def _show(values: dict[str, Any]) -> None:
    show_job(values["job"])
    lines = values["report"]
    if not lines:
        return
    click.echo()
    show_table(
        ("MODEL", "RIGHT", "USD FOR 1,000", "MS AN ANSWER"),
        [
            (
                line["model"],
                f"{line['accuracy'].value:.1%} ({line['accuracy'].low:.1%} to {line['accuracy'].high:.1%})",
                line["price_usd_per_1000"],
                "-" if line["latency_ms"] is None else f"{line['latency_ms']:.0f}",
            )
            for line in lines
        ],
    )
    family, *others = lines
    for other in others:
        comparisons = [
            f"{_share(family['accuracy'].value, other['accuracy'].value)} of its accuracy"
        ]
        for field, what in (("price_usd_per_1000", "price"), ("latency_ms", "time")):
            if family[field] is not None and other[field] is not None:
                comparisons.append(
                    f"{_share(float(family[field]), float(other[field]))} of its {what}"
                )
        click.echo(printable(f"{family['model']} has {', '.join(comparisons)} ({other['model']})."))


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else ("all" if not part else "more than all")
