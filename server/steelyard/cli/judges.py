"""``steelyard model catalogue`` and ``pull``: files of models that answer on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import ThisMachine, home_options, show_answer, show_table
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import json_option, setting_option
from steelyard.cli.terminal import progress_bar

if TYPE_CHECKING:
    from steelyard.serving.judge.catalogue import CatalogueEntry
    from steelyard.serving.reader.catalogue import ReaderEntry

_HASH_OF_HUB = "The hub's own metadata gave size and hash; the model is not measured by us."
_EPILOG = """\b
Examples:
  steelyard model catalogue
  steelyard model pull reader
  steelyard model pull qwen3-1.7b
  steelyard model pull qwen3-1.7b --from ~/Downloads/Qwen3-1.7B-Q8_0.gguf
  steelyard model opposite judge "Is the customer angry?"
"""


@click.command("catalogue", epilog=_EPILOG)
@json_option
def catalogue(*, as_json: bool) -> None:
    """List readers and language models that can be pulled, and how good we found them."""
    from steelyard.serving.judge.catalogue import read_catalogue
    from steelyard.serving.reader.catalogue import read_readers

    readers, judges = read_readers(), read_catalogue()
    entries: list[tuple[str, ReaderEntry | CatalogueEntry]] = [*readers.items(), *judges.items()]
    columns = ("NAME", "KIND", "GB", "LICENCE", "FROM", "RECOMMENDED", "QUALITY")
    lines = [
        (
            name,
            "reader" if name in readers else "judge",
            f"{entry.bytes / 1e9:.2f}" if entry.bytes else None,
            entry.licence,
            entry.repository,
            entry.recommended or None,
            entry.measured or "not measured by us",
        )
        for name, entry in entries
    ]
    show_answer({**readers, **judges}, lambda _: show_table(columns, lines), as_json=as_json)


@asking("pull", "name", options=home_options, epilog=_EPILOG)
@click.option(
    "--to", "folder", metavar="FOLDER", help="Where to put it. [default: models in the home]"
)
@click.option(
    "--from",
    "file",
    metavar="FILE",
    help="Take a file that is here already; of a reader, a folder or a zip archive.",
)
@setting_option("model_hub")
def pull_model(
    machine: ThisMachine,
    name: str,
    *,
    folder: str | None,
    file: str | None,
    model_hub: str | None,
) -> Shown:
    """Download the model NAME of the catalogue, and check it; an interrupted download goes on.

    Where the catalogue has no hash, the hub's own is checked: the command then says so. A reader is
    connected at once: running servers have it within a second, and the route auto asks it.
    """
    from steelyard.errors import SteelyardError
    from steelyard.serving.judge.catalogue import read_catalogue
    from steelyard.serving.reader.catalogue import find_reader, read_readers
    from steelyard.settings import read_settings

    judges, reader = read_catalogue(), find_reader(name)
    if name not in judges and reader is None:
        known = ", ".join([*read_readers(), *judges])
        raise click.UsageError(
            f"No model of the catalogue has the name {name!r}; there are: {known}."
        )
    target = Path(folder).expanduser().absolute() if folder else None
    path = None if file is None else Path(file).expanduser()
    hub = read_settings({"model_hub": model_hub}).model_hub
    try:
        if reader is not None:
            return _pull_reader(*reader, machine, target, path, hub)
        return _pull_judge(judges[name], target or machine.folder / "models", path, hub)
    except SteelyardError as error:
        raise click.ClickException(error.message) from error


def _pull_judge(entry: CatalogueEntry, folder: Path, source: Path | None, hub: str) -> Shown:
    from steelyard.serving.judge.download import copy, pull

    if source is not None:
        path = copy(entry, source, folder)
    else:
        with _progress() as (begin, advance):
            path = pull(entry, folder, hub, on_size=begin, on_bytes=advance)
    lines = [] if entry.sha256 else [_HASH_OF_HUB]
    lines += [str(path), f"Start with it: steelyard up --judge {path}"]
    return {"path": str(path)}, "\n".join(lines)


def _pull_reader(
    name: str,
    entry: ReaderEntry,
    machine: ThisMachine,
    target: Path | None,
    source: Path | None,
    hub: str,
) -> Shown:
    from steelyard.scoring.entailment.folder import read_folder
    from steelyard.serving.reader.declaring import declare_reader, folder_of
    from steelyard.serving.reader.download import pull_reader, take_reader

    folder = folder_of(machine.folder, entry)
    if target is not None:
        folder = target / folder.name
    lines = []
    if source is not None:
        take_reader(source, folder)
    else:
        with _progress() as (begin, advance):
            pull_reader(entry, folder, hub, on_size=begin, on_bytes=advance)
        lines.append(_HASH_OF_HUB)
    machine.change_declared(partial(declare_reader, name=name, folder=folder))
    memory = read_folder(folder).memory_bytes / 1e6
    connected = (
        f"Connected as {name}; it needs about {memory:.0f} MB of memory, and the route auto asks "
        f"it. Try it: steelyard model check {name}"
    )
    return {"path": str(folder)}, "\n".join([*lines, str(folder), connected])


@contextmanager
def _progress() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Yield a function that opens a progress bar for a number of bytes, and one that moves it."""
    with ExitStack() as shown:
        bars: list[Callable[[int], None]] = []

        def begin(size: int) -> None:
            amount = f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
            bars.append(shown.enter_context(progress_bar(f"Downloading {amount}", size)))

        def advance(n_bytes: int) -> None:
            bars[-1](n_bytes)

        yield begin, advance


@asking("opposite", "name", "question", options=home_options, epilog=_EPILOG)
def opposite(machine: ThisMachine, name: str, question: str) -> Shown:
    """Write the opposite of a yes/no QUESTION with the model NAME, for the field `opposite`.

    Read it before you use it: both must never be true of the same text.
    """
    from steelyard.errors import SteelyardError
    from steelyard.prompt_tuning.writing import WordingWriter

    models = machine.models()
    if name not in models or not models[name].writer:
        writers = ", ".join(key for key, model in models.items() if model.writer) or "none"
        raise click.UsageError(
            f"{name!r} is not a connected model that writes; there are: {writers}."
        )
    try:
        written = WordingWriter(name, models[name]).opposite(question)
    except (SteelyardError, TimeoutError) as error:
        raise click.ClickException(str(error) or "The model did not answer in time.") from error
    if not written:
        raise click.ClickException(
            "The model wrote no other question; write the opposite yourself."
        )
    return {"opposite": written}, written


COMMANDS = (catalogue, pull_model, opposite)
