"""``steelyard decision``: named decisions, on a server and as files of a repository."""

from __future__ import annotations

import difflib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.decision_compare import compare, run_comparison, settle, show_comparison
from steelyard.cli.decision_grow import command as grow
from steelyard.cli.decision_grow import find_growth, show_growth
from steelyard.cli.decision_new import FOLDER, folder_option, write_text
from steelyard.cli.decision_new import command as new
from steelyard.cli.decision_rules import command as rules
from steelyard.cli.local_state import show_table, show_time, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import FILE, SHARE
from steelyard.cli.shares_shown import WEEK_S, describe_share, show_shares, show_true_shares
from steelyard.cli.terminal import printable
from steelyard.wire.storing import STORE_SENTENCES, STORE_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.client import Client
    from steelyard.decision_log.wire import DecisionSeries
    from steelyard.named.files import DecisionFile
    from steelyard.named.wire import AliasMove, NamedDecision, NamedVersion
    from steelyard.wire.storing import StoreSetting

_EPILOG = """\b
Examples:
  steelyard decision new support_triage --question "Which team should own this?" \\
      --outcome "billing=charges, refunds" --outcome "shipping=where a parcel is"
  steelyard decision new --from moderation
  steelyard decision test
  steelyard decision push --alias staging --note "shorter question"
  steelyard decision diff support_triage.toml --at staging
  steelyard decision compare support_triage staging
  steelyard decision compare support_triage --with qwen3-4b --traffic 7d
  steelyard decision settle support_triage
  steelyard decision move support_triage production 2 --reason "right more often"
  steelyard decision share support_triage staging --share 0.1
  steelyard decision store support_triage features
  steelyard decision rollback support_triage
  steelyard decision rules refund_desk --rows orders.csv
"""


@click.group("decision", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Keep decisions under names, in versions that aliases point to.

    A decision may be a file of a repository: decisions/NAME.toml, with examples and their right
    answers. Exit status: 1 when an example fails or a file differs from the server.
    """


for _command in (new, grow, compare, settle, rules):
    command.add_command(_command)

_files = click.argument("files", nargs=-1, type=FILE)
_at_option = click.option(
    "--at", default="production", help="An alias, or the number of a version."
)


@command.asks("list")
@click.option("--archived", is_flag=True, help="Those that are archived instead.")
def list_decisions(client: Client, *, archived: bool) -> Shown:
    """List the account's named decisions, the newest first."""
    return list(client.named_decisions.list(archived=archived)), _show_decisions


@command.asks("show", "decision")
def show(client: Client, decision: str) -> Shown:
    """Show DECISION (NAME, NAME@ALIAS or NAME@7) as a file has it, and how often its outcomes are true."""
    name, _, at = decision.partition("@")
    of_name = client.named_decisions.get(name)
    version = client.named_decisions.version(name, at or "production")
    growth = find_growth(client, name)
    moves = client.named_decisions.history(name)
    last = next((move for move in moves if move.alias == "production"), None)
    series = client.decision_series(named=name, since=time.time() - WEEK_S, bucket_s=86_400)

    def show_all(version: NamedVersion) -> None:
        _show_version(of_name, version, last, series)
        if growth is not None:
            show_growth(growth)

    return version, show_all


@command.asks("history", "name")
def history(client: Client, name: str) -> Shown:
    """List the moves of NAME's aliases, the newest first."""
    return list(client.named_decisions.history(name)), table_of(
        "AT:created_at, ALIAS:alias, FROM:from_version, TO:to_version, BY:moved_by, "
        "VERDICT:verdict, WHY:reason",
        reason=lambda move: f"overruled: {move.overruled}" if move.overruled else move.reason,
    )


@command.asks("push")
@_files
@click.option("--alias", help="Point this alias to what was pushed.")
@click.option("--note", help="What changed, for people; also why the alias moves.")
def push(client: Client, *, files: tuple[Path, ...], alias: str | None, note: str | None) -> Shown:
    """Send FILES to the server: each makes a decision, or a version where its content is new.

    Without FILES, every file of decisions/. A description, an owner or a dataset that a file leaves
    out stays; an empty text removes it.
    """
    pushed = [_push(client, _read(path), alias, note) for path in _paths(files)]
    lines = [[decision.name, version.version, _aliases(decision)] for decision, version in pushed]
    versions = [version for _, version in pushed]
    return versions, lambda _: show_table(("NAME", "VERSION", "ALIASES"), lines)


@command.asks("pull")
@click.argument("decisions", nargs=-1)
@_at_option
@folder_option
def pull(client: Client, *, decisions: tuple[str, ...], at: str, folder: Path) -> Shown:
    """Write DECISIONS, or all, to files of FOLDER; the examples of a file there stay."""
    from steelyard.named.files import write_file

    versions, lines = [], []
    for name in decisions or [decision.name for decision in client.named_decisions.list()]:
        of_name = client.named_decisions.get(name)
        version = client.named_decisions.version(name, at)
        path = folder / f"{name}.toml"
        before = _read(path) if path.exists() else None
        lines.append(write_text(path, write_file(of_name, version, before)))
        versions.append(version)
    return versions, "\n".join(lines)


@command.asks("diff")
@_files
@_at_option
def diff(client: Client, *, files: tuple[Path, ...], at: str) -> Shown:
    """Show how FILES, or all of decisions/, differ from the server; exit status 1 where one does."""
    from steelyard.errors import NotFoundError
    from steelyard.named.files import to_toml

    lines: list[str] = []
    for path in _paths(files):
        file = _read(path)
        try:
            version = client.named_decisions.version(file.name, at)
            there, label = to_toml(version.content), f"{file.name}@{version.version}"
        except NotFoundError:
            there, label = "", f"{file.name} (not on the server)"
        here = to_toml(file.content)
        lines += difflib.unified_diff(
            there.splitlines(), here.splitlines(), label, str(path), lineterm=""
        )

    def show(lines: list[str]) -> None:
        for line in lines:
            click.echo(printable(line))

    return lines, show, bool(lines)


@command.asks("test")
@_files
@click.option("--at", help="Ask this alias or version of the server instead of the file's content.")
@click.option(
    "--at-least", type=SHARE, default=1.0, help="Share of all examples that have to come out."
)
def test(client: Client, *, files: tuple[Path, ...], at: str | None, at_least: float) -> Shown:
    """Ask the examples of FILES, or of all of decisions/; exit status 1 where too few come out.

    Nothing is stored.
    """
    lines: list[list[object]] = []
    n_examples = 0
    for path in _paths(files):
        file = _read(path)
        n_examples += len(file.examples)
        for place, example in enumerate(file.examples):
            if at is None:
                answer = client.decide(example.context, **file.questions, store=False)
            else:
                answer = client.decision(f"{file.name}@{at}").decide(
                    example.context, fields=example.fields, store=False
                )
            for miss in file.misses(example, answer):
                p_top = None if miss.p_top is None else f"{miss.p_top:.2f}"
                lines.append([file.name, place, *miss[:3], p_top])
    n_failed = len({tuple(line[:2]) for line in lines})
    columns = ("NAME", "EXAMPLE", "DECISION", "EXPECTED", "ACTION", "P")

    def show(_: object) -> None:
        if lines:
            show_table(columns, lines)
        click.echo(f"{n_examples} examples, {n_failed} failed.")

    misses = [dict(zip(map(str.lower, columns), line, strict=True)) for line in lines]
    counts = {"examples": n_examples, "failed": n_failed, "misses": misses}
    return counts, show, n_examples - n_failed < at_least * n_examples


@command.asks("move", "name", "alias")
@click.argument("version", type=int)
@click.option("--reason", help="Why, for people.")
@click.option(
    "--overrule", help="Why production moves although no comparison passed VERSION; kept for ever."
)
def move(client: Client, name: str, alias: str, version: int, **why: Any) -> Shown:
    """Point ALIAS of NAME to VERSION; every process follows within a second.

    Before production moves, VERSION is compared with the version there, and has to pass.
    """
    from steelyard.errors import ComparisonNeededError

    named = client.named_decisions
    try:
        return named.move(name, alias, version, **why), _show_decisions
    except ComparisonNeededError:
        comparison = run_comparison(client, name, version, alias)
    if not click.get_current_context().params["as_json"]:
        show_comparison(comparison)  # before the move, which it may refuse
    return named.move(name, alias, version, reason=why["reason"]), _show_decisions


@command.asks("share", "name", "to")
@click.option(
    "--share",
    type=click.FloatRange(0, 0.9),
    required=True,
    help="Of the requests for --of; 0 ends it.",
)
@click.option("--of", "alias", default="production", help="The alias.")
@click.option(
    "--then",
    "steps",
    type=click.FloatRange(0, 0.9, min_open=True),
    multiple=True,
    help="A larger share that follows by itself; repeatable.",
)
@click.option(
    "--every",
    "step_hours",
    type=click.FloatRange(0.1, 720),
    default=24.0,
    help="Hours from one step to the next.",
)
@click.option("--reason", help="Why, for people.")
def share(client: Client, name: str, to: str, share: float, **given: Any) -> Shown:
    """Send a share of NAME's requests to the alias TO, the same ones in every process.

    Where feedback shows that it is right less often, the server ends it; with steps, for an alarm and
    a comparison that refuses it too.
    """
    changed = client.named_decisions.share(name, to, share, **given)
    return changed, lambda decision: show_shares(decision.shares)


@command.asks("store", "name")
@click.argument("store", type=click.Choice(STORE_SETTINGS))
def store(client: Client, name: str, store: StoreSetting) -> Shown:
    """Set the most that is stored of NAME's answers; features stores no text."""
    changed = client.named_decisions.change(name, store=store)
    return changed, f"{name} stores {STORE_SENTENCES[changed.store]}."


@command.asks("rollback", "name")
@click.argument("alias", default="production")
@click.option("--reason", help="Why, for people.")
def rollback(client: Client, name: str, alias: str, reason: str | None) -> Shown:
    """Point ALIAS of NAME, production by default, to where it was before its last move."""
    return client.named_decisions.roll_back(name, alias, reason=reason), _show_decisions


@command.asks("archive", "name")
@click.option("--undo", is_flag=True, help="Bring it back.")
def archive(client: Client, name: str, *, undo: bool) -> Shown:
    """Archive NAME, which then answers no requests."""
    return client.named_decisions.archive(name, archived=not undo), _show_decisions


def _paths(files: Sequence[Path]) -> Sequence[Path]:
    paths = list(files) or sorted(Path(FOLDER).glob("*.toml"))
    if not paths:
        raise click.UsageError(
            f"There is no .toml file in {FOLDER}/; name one, or make it with new."
        )
    return paths


def _read(path: Path) -> DecisionFile:
    from steelyard.named.files import read_file

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8; save it so.") from None
    return read_file(text)


def _push(
    client: Client, file: DecisionFile, alias: str | None, note: str | None
) -> tuple[NamedDecision, NamedVersion]:
    from steelyard.errors import NotFoundError

    named = client.named_decisions
    try:
        named.get(file.name)
    except NotFoundError:
        named.create(file.name, **file.content, **file.head, note=note)
    version = named.add_version(file.name, **file.content, note=note)
    # What a file does not say stays as it is on the server.
    head = {name: text for name, text in file.head.items() if text is not None}
    decision = named.change(file.name, **head) if head else named.get(file.name)
    if alias is not None:
        decision = named.move(file.name, alias, version.version, reason=note)
    return decision, version


def _aliases(decision: NamedDecision) -> str:
    return ", ".join(f"{alias.alias} {alias.version}" for alias in decision.aliases)


_show_decisions = table_of(
    "NAME:name, LATEST:latest, ALIASES:aliases, OWNER:owner, MADE:created_at", aliases=_aliases
)


def _show_version(
    decision: NamedDecision, version: NamedVersion, last: AliasMove | None, week: DecisionSeries
) -> None:
    from steelyard.named.files import write_file

    click.echo(f"# {version.name}@{version.version}, aliases: {_aliases(decision)}")
    if last is not None:
        click.echo(printable(f"# {_describe_move(last)}"))
    for each in decision.shares:
        click.echo(printable(f"# {describe_share(each)}"))
    show_true_shares(week, "# last 7 days: ")
    click.echo("\n".join(map(printable, write_file(decision, version).splitlines())))


def _describe_move(move: AliasMove) -> str:
    why = f"{move.verdict or 'not compared'} and overruled: {move.overruled}"
    return (
        f"{move.alias} at {move.to_version} since {show_time(move.created_at)}, moved by "
        f"{move.moved_by}: {why if move.overruled else move.reason or move.verdict or 'no reason'}"
    )
