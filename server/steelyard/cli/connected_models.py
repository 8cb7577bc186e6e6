"""``steelyard model add`` and its siblings: models of other servers."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from steelyard.cli.local_state import ThisMachine, home_options, show_table
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import PROBABILITY, setting_option, together
from steelyard.cli.terminal import printable, progress_bar
from steelyard.wire.limits import MAX_THOUGHT_TOKENS, THOUGHT_TOKENS
from steelyard.wire.measures import interval_text

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.models.judge_wire import ThinkingEffect
    from steelyard.serving.connected.calibrating import CalibrationReport
    from steelyard.serving.connected.checking import CheckReport
    from steelyard.serving.connected.declared import ConnectedModel
    from steelyard.serving.connected.queue import ConnectedQueue

_Declared = TypeVar("_Declared")

_WIRES = ("systemone", "decisions", "decide", "chat", "hub", "gguf", "entailment")
#: What comes first in a pair, and whether that is the statement.
_PAIR_ORDERS = {"context": False, "statement": True}
_SIDES: tuple[Literal["training", "evaluation"], ...] = ("training", "evaluation")

_EPILOG = """\b
Examples:
  steelyard model add julia --wire systemone --url http://127.0.0.1:8080
  steelyard model add qwen --wire chat --url http://127.0.0.1:11434/v1 --model qwen2.5:7b
  steelyard model add far --wire decide --url https://steelyard.example --key-env FAR_KEY
  steelyard model add nli --wire hub --model cross-encoder/nli-deberta-v3-base
  steelyard model add judge --wire gguf --file qwen2.5-1.5b-instruct-q4_k_m.gguf
  steelyard model add reader --wire entailment --file ./nli-deberta-v3-xsmall
  steelyard model list
  steelyard model check qwen
  steelyard model calibrate qwen ds_01k…
  steelyard model remove qwen
"""


@asking("add", "name", options=home_options, epilog=_EPILOG)
@click.option("--wire", type=click.Choice(_WIRES), required=True, help="What the server speaks.")
@click.option("--url", help="Its address, with or without /v1; none for hub, gguf and entailment.")
@click.option(
    "--model", help="The model's name there. [default: NAME] For hub: a folder, or a name to fetch."
)
@click.option(
    "--file",
    metavar="FILE",
    help="GGUF file of a language model (gguf), or folder with model.onnx, tokenizer.json and config.json "
    "(entailment).",
)
@click.option(
    "--labels",
    metavar="NAMES",
    help="What each logit means, in order, such as contradiction,entailment,neutral (entailment). "
    "[default: id2label of config.json]",
)
@click.option(
    "--pair-order",
    type=click.Choice([*_PAIR_ORDERS]),
    help="What comes first in a pair (entailment). [default: steelyard.json of the folder, else context]",
)
@click.option(
    "--context-tokens",
    type=click.IntRange(512, 131_072),
    default=4_096,
    help="Tokens of a context with its question (gguf), or of a part of it with a statement (entailment).",
)
@click.option(
    "--gpu-layers",
    type=click.IntRange(-1),
    default=-1,
    help="Layers on the GPU; -1 for all that it takes (gguf).",
)
@click.option(
    "--think-below",
    type=PROBABILITY,
    metavar="P",
    help="Let it write before it answers where its first answer's top probability is below P (gguf).",
)
@click.option(
    "--think-tokens",
    type=click.IntRange(1, MAX_THOUGHT_TOKENS),
    default=THOUGHT_TOKENS,
    help="Most tokens that it writes on a decision, with --think-below.",
)
@click.option("--warm", is_flag=True, help="Load it when the server starts (gguf, entailment).")
@click.option("--key-env", metavar="VAR", help="Variable that holds its key.")
@click.option("--key-file", metavar="FILE", help="File that holds its key.")
@click.option("--price-in", default="0", metavar="USD", help="Per million input tokens.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    help="Requests at once. [default: 8; 2 for gguf]",
)
@click.option(
    "--timeout-s",
    type=click.FloatRange(0.01, 600),
    help="Seconds for an answer. [default: 30; 120 for gguf]",
)
@click.option(
    "--permutations",
    type=click.IntRange(1, 20),
    help="Orders of the outcomes that are averaged. [default: 1 for chat; for gguf all, of 6 outcomes "
    "at most]",
)
@click.option("--teacher", is_flag=True, help="Let it label rows.")
@click.option(
    "--writer", is_flag=True, help="Let it write wordings for prompt tuning (chat, gguf)."
)
@click.option("--replace", is_flag=True, help="Change a model that is there.")
def add(machine: ThisMachine, name: str, *, replace: bool, **given: Any) -> Shown:
    """Connect the model NAME of another server; running servers of the home have it within a second.

    With --wire gguf the language model of a file runs on this machine, which needs the extra 'judge'.
    With --wire entailment the encoder of a folder reads in this server, and the route auto asks it.
    With --wire hub the model is exported once, which needs the extra 'train', and runs on this machine.
    """
    import datetime as dt

    from steelyard.scoring.shipped import BASE
    from steelyard.serving.connected.declared import ConnectedModel, Thinking
    from steelyard.serving.reader.declaring import BUNDLED

    if name in machine.declared().models and not replace:
        raise click.UsageError(f"There is a model {name!r}; change it with --replace.")
    if name in {BASE.name, BUNDLED.name}:
        raise click.UsageError(f"{name!r} is a model that ships; choose another name.")
    if given["wire"] == "gguf":
        given = _judge_options(given)
    below, tokens = given.pop("think_below"), given.pop("think_tokens")
    given["think"] = None if below is None else Thinking(below=below, tokens=tokens)
    given |= _reader_options(given)
    if given["wire"] == "hub":
        given["folder"] = _exported(given["model"], machine.folder)
    given = {option: value for option, value in given.items() if value is not None}
    model = ConnectedModel(**given, added=dt.datetime.now(dt.UTC).date())
    model.check(name)
    model.key()
    machine.change_declared(lambda declared: declared.with_model(name, model))
    return model, f"Connected {name}. Try it: steelyard model check {name}"


@asking("list", options=home_options, epilog=_EPILOG)
def list_models(machine: ThisMachine) -> Shown:
    """List the connected models; keys are not shown."""
    models = _declared(machine)
    columns = ("NAME", "WIRE", "AT", "MODEL", "KEY", "USD / M", "CALIBRATION")
    lines = [
        (
            name,
            model.wire,
            model.url or model.folder or model.file,
            model.model or name,
            model.key_env or model.key_file or None,
            model.price_in,
            None if model.calibration is None else model.calibration.number,
        )
        for name, model in models.items()
    ]
    return models, lambda _: show_table(columns, lines)


@asking("remove", "name", options=home_options, epilog=_EPILOG)
def remove(machine: ThisMachine, name: str) -> Shown:
    """Disconnect the model NAME, and delete its export; its answers stay stored."""
    declared = machine.declared()
    models = declared.models
    if name not in models and name in _declared(machine):
        raise click.UsageError(f"{name!r} ships with Steelyard and stays.")
    find_named("connected model", models, name)
    if through := [route for route, walked in declared.routes.items() if name in walked.models]:
        raise click.UsageError(
            f"The route {through[0]!r} asks {name!r}; remove it first: steelyard route remove "
            f"{through[0]}"
        )
    machine.change_declared(lambda declared: declared.without(name))
    removed = models.pop(name)
    if removed.folder and removed.folder not in {model.folder for model in models.values()}:
        shutil.rmtree(machine.folder / removed.folder, ignore_errors=True)
    return removed, f"Disconnected {name}."


@asking("check", "name", options=home_options, epilog=_EPILOG)
def check(machine: ThisMachine, name: str) -> Shown:
    """Ask the model NAME a fixed set of questions, and show how it answers.

    An answer should stay as it is when the outcomes are reordered, and turn when the question is
    negated. Exit status: 1 when a question was not answered.
    """
    from steelyard.serving.connected.checking import check_model

    model = find_named("connected model", _declared(machine), name)
    with _open(name, model, machine) as queue:
        report = check_model(queue.submit, model.timeout_s)
    return report, _show_check, bool(report.failures)


def _show_check(report: CheckReport) -> None:
    from steelyard.serving.connected.chat import doubt_of

    show_table(
        ("MEASURED", "VALUE"),
        [
            ("answered", f"{report.answered} of {report.asked}"),
            ("median latency", _number(report.p50_ms, "{:.0f} ms")),
            ("longest", _number(report.max_ms, "{:.0f} ms")),
            ("flips when outcomes are reordered (0 %)", _share(report.flips_when_reordered)),
            ("flips when the question is negated (100 %)", _share(report.flips_when_negated)),
            ("says yes (50 %)", _share(report.share_of_yes)),
            ("probability on the outcomes (100 %)", _share(report.share_on_outcomes)),
            ("thought before it answered", _share(report.share_thought)),
        ],
    )
    doubt = "" if report.share_on_outcomes is None else doubt_of(report.share_on_outcomes)
    for message in (*report.failures, *filter(None, [doubt])):
        click.echo(printable(message), err=True)


#: The rows that a model or a route is fitted and judged on.
sides_options = together(
    click.option(
        "--rows",
        type=click.IntRange(1, 10_000),
        default=500,
        help="Rows of each side that are asked.",
    ),
    click.option("--version", type=int, help="Version of the dataset. [default: the latest]"),
    setting_option("home"),
)


@asking("calibrate", "name", "dataset", epilog=_EPILOG)
@sides_options
def calibrate(
    client: Client, name: str, dataset: str, *, rows: int, version: int | None, home: str | None
) -> Shown:
    """Fit temperatures for the model NAME on DATASET, and keep them where they are better.

    At most so many rows of each side are asked; the evaluation rows judge. Exit status: 1 when the
    held-out log loss is not lower, and nothing is kept.
    """
    import msgspec

    from steelyard.models.thinking import effect_of
    from steelyard.serving.connected.calibrating import ask_rows
    from steelyard.serving.connected.calibrating import calibrate as fit

    machine = ThisMachine(home)
    model = find_named("connected model", _declared(machine), name)
    number = client.datasets.get(dataset).version if version is None else version
    # One after another, the processor time of each is its own.
    at_once = model.concurrency if model.think is None else 1
    with _open(name, model, machine) as queue:

        def ask(rows: list[Any], on_row: Callable[[int], None]) -> Any:
            return ask_rows(queue.submit, rows, model.timeout_s, on_row, at_once=at_once)

        training, evaluation, failures = ask_sides(client, dataset, number, rows, ask)
    report = fit(training, evaluation, failures)
    effect = None if model.think is None else effect_of(training, evaluation)
    answer = {**msgspec.structs.asdict(report), "thinking": effect}
    if not report.is_better:
        click.echo("Not kept: the held-out log loss is not lower.", err=True)
        return answer, lambda _: _show_report(report, effect), True
    model = find_named("connected model", _declared(machine), name)
    calibrated = model.calibrated(dataset, number, report.temperatures)
    machine.change_declared(lambda declared: declared.with_model(name, calibrated))

    def show(_: object) -> None:
        _show_report(report, effect)
        click.echo(f"Kept as calibration {len(calibrated.calibrations)} of {name}.")

    return answer, show


def ask_sides(
    client: Client, dataset: str, version: int, n_rows: int, ask: Callable[..., Any]
) -> tuple[Any, Any, Counter[str]]:
    """Return what ``ask`` answers to the first training and evaluation rows, and why rows failed."""
    import msgspec

    answers, failures = [], Counter[str]()
    for side in _SIDES:
        lines = client.datasets.download(dataset, partition=side, version=version).splitlines()
        rows = [msgspec.json.decode(line) for line in lines[:n_rows]]
        with progress_bar(f"Asking {side} rows", len(rows)) as show_progress:
            answered, failed = ask(rows, show_progress)
        answers.append(answered)
        failures += failed
    for message, number in failures.items():
        click.echo(f"{number} rows failed: {message}", err=True)
    return answers[0], answers[1], failures


def _show_report(report: CalibrationReport, effect: ThinkingEffect | None) -> None:
    losses = [("before", report.log_loss_before), ("after", report.log_loss_after)]
    show_table(("", "HELD-OUT LOG LOSS (NATS)"), [(when, f"{loss:.4f}") for when, loss in losses])
    click.echo(f"Fitted on {report.fitted_on} decisions, judged on {report.held_out}.")
    if effect is not None:
        _show_effect(effect)


def _show_effect(effect: ThinkingEffect) -> None:
    changes = {
        "right": (effect.right, ".1%"),
        "log loss (nats)": (effect.log_loss, ".4f"),
        "processor time (ms)": (effect.cpu_ms, ",.0f"),
    }
    show_table(
        ("A DECISION", "AT ONCE", "WITH THINKING", "CHANGE", "95 %"),
        [
            (
                name,
                f"{change.before:{form}}",
                f"{change.after:{form}}",
                f"{change.change:+{form}}",
                interval_text(change.low, change.high, form=f"+{form}", to=" to "),
            )
            for name, (change, form) in changes.items()
            if change is not None
        ],
    )
    tokens = "" if effect.tokens is None else f", {effect.tokens:.0f} tokens each"
    click.echo(f"It thought about {effect.thought.value:.0%} of the held-out decisions{tokens}.")


def _exported(source: str, home: Path) -> str:
    """Export a model into the home; return its folder, seen from there."""
    from steelyard.scoring.exported import FOLDER

    if not source:
        raise click.UsageError("Name the model with --model: a folder, or a name of the hub.")
    try:
        from steelyard.training.hub import HubExportError, export
    except ImportError as error:
        raise click.ClickException(
            f"Exporting needs {error.name}: pip install 'steelyard[train]', and try again. Serving the "
            "exported model does not."
        ) from error
    click.echo(f"Exporting {source} …", err=True)
    try:
        return f"{FOLDER}/{export(source, home / FOLDER).name}"
    except HubExportError as error:
        raise click.ClickException(str(error)) from error


def _reader_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a reader, whose encoder is loaded once to see that it can be used."""
    order, labels = given.pop("pair_order"), given.pop("labels")
    if given["wire"] != "entailment":
        if order or labels:
            raise click.UsageError("--pair-order and --labels are for --wire entailment alone.")
        return {}
    if not given["file"]:
        raise click.UsageError("Name the encoder's folder with --file FOLDER.")
    from steelyard.scoring.entailment.encoder import Encoder
    from steelyard.scoring.entailment.folder import read_folder

    folder = Path(given["file"]).expanduser().absolute()
    options: dict[str, Any] = {"labels": tuple(filter(None, (labels or "").split(",")))}
    if order is not None:
        options["hypothesis_first"] = _PAIR_ORDERS[order]
    encoder = Encoder(read_folder(folder, **options))
    click.echo(f"It needs about {encoder.facts.memory_bytes / 1e6:.0f} MB of memory.", err=True)
    return {**options, "file": str(folder)}


def _judge_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a judge, with the defaults of its wire."""
    from steelyard.serving.judge.gguf import read_header
    from steelyard.serving.judge_setting import CONCURRENCY, TIMEOUT_S

    if not given["file"]:
        raise click.UsageError("Name the model's file with --file FILE.gguf.")
    file = Path(given["file"]).expanduser().absolute()
    read_header(file)
    return {
        **given,
        "file": str(file),
        "concurrency": given["concurrency"] or CONCURRENCY,
        "timeout_s": given["timeout_s"] or TIMEOUT_S,
    }


COMMANDS = (add, list_models, remove, check, calibrate)


def _declared(machine: ThisMachine) -> dict[str, ConnectedModel]:
    """Return the connected models, with the reader that ships."""
    from steelyard.scoring.shipped import default_name
    from steelyard.serving.auto import completed
    from steelyard.settings import read_settings

    return completed(machine.declared(), default_name(read_settings())).models


def find_named(noun: str, declared: Mapping[str, _Declared], name: str) -> _Declared:
    """Return the model or route of a name; an unknown name is a usage error."""
    if name not in declared:
        known = ", ".join(declared) or "none"
        raise click.UsageError(f"No {noun} has the name {name!r}; there are: {known}.")
    return declared[name]


@contextmanager
def _open(name: str, model: ConnectedModel, machine: ThisMachine) -> Iterator[ConnectedQueue]:
    from steelyard.serving.connected.queue import Loop
    from steelyard.serving.connected_hosting import open_queue

    model = machine.models().get(name, model)
    with closing(Loop()) as loop:
        most = model.concurrency * 2
        opened = open_queue(name, model, loop, home=machine.folder, max_queue=most)
        with closing(opened) as queue:
            yield queue


def _number(value: float | None, form: str) -> str | None:
    return None if value is None else form.format(value)


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.0%}"
