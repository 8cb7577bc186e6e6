"""``steelyard model catalogue`` and ``pull``: files of language models that answer on this machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from steelyard.cli.local_state import home_folder, show_json, show_table
from steelyard.cli.options import setting_option
from steelyard.cli.terminal import progress_bar

_EPILOG = """\b
Examples:
  steelyard model catalogue
  steelyard model pull qwen3-1.7b
  steelyard model pull qwen3-1.7b --from ~/Downloads/Qwen3-1.7B-Q8_0.gguf
  steelyard model opposite judge "Is the customer angry?"
"""


@click.command("catalogue", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def catalogue(*, as_json: bool) -> None:
    """List language models that can be pulled, and how good we found them."""
    from steelyard.serving.judge.catalogue import read_catalogue

    entries = read_catalogue()
    if as_json:
        show_json(dict(entries))
        return
    show_table(
        ("NAME", "GB", "LICENCE", "FROM", "QUALITY"),
        [
            (
                name,
                f"{entry.bytes / 1e9:.1f}" if entry.bytes else None,
                entry.licence,
                entry.repository,
                entry.measured or "not measured by us",
            )
            for name, entry in entries.items()
        ],
    )


@click.command("pull", epilog=_EPILOG)
@click.argument("name")
@click.option(
    "--to", "folder", metavar="FOLDER", help="Where to put it. [default: models in the home]"
)
@click.option("--from", "source", metavar="FILE", help="Take a file that is here already.")
@setting_option("model_hub")
@setting_option("home")
def pull_model(
    *, name: str, folder: str | None, source: str | None, model_hub: str | None, home: str | None
) -> None:
    """Download the model NAME of the catalogue, and check it; an interrupted download goes on.

    Where the catalogue has no hash, the hub's own is checked: the command then says so.
    """
    from steelyard.errors import SteelyardError
    from steelyard.serving.judge.catalogue import read_catalogue
    from steelyard.serving.judge.download import RemoteFile, copy, pull
    from steelyard.settings import read_settings

    entries = read_catalogue()
    if name not in entries:
        raise click.UsageError(
            f"No model of the catalogue has the name {name!r}; there are: {', '.join(entries)}."
        )
    entry = entries[name]
    target = Path(folder).expanduser() if folder else home_folder(home) / "models"
    try:
        if source is not None:
            path = copy(entry, Path(source).expanduser(), target)
        else:
            hub = read_settings({"model_hub": model_hub}).model_hub
            with ExitStack() as shown:
                bars: list[Callable[[int], None]] = []

                def begin(file: RemoteFile) -> None:
                    label = f"Downloading {file.bytes / 1e9:.2f} GB"
                    bars.append(shown.enter_context(progress_bar(label, file.bytes)))

                def advance(n_bytes: int) -> None:
                    bars[-1](n_bytes)

                path = pull(entry, target, hub, on_size=begin, on_bytes=advance)
    except SteelyardError as error:
        raise click.ClickException(error.message) from error
    if not entry.sha256:
        click.echo("The hub's own metadata gave size and hash; the model is not measured by us.")
    click.echo(f"{path}\nStart with it: steelyard up --judge {path}")


@click.command("opposite", epilog=_EPILOG)
@click.argument("name")
@click.argument("question")
@setting_option("home")
def opposite(*, name: str, question: str, home: str | None) -> None:
    """Write the opposite of a yes/no QUESTION with the model NAME, for the field `opposite`.

    Read it before you use it: both must never be true of the same text.
    """
    from steelyard.errors import SteelyardError
    from steelyard.prompt_tuning.writing import Writer
    from steelyard.serving.connected.declared import read_models

    folder = home_folder(home)
    models = read_models(folder)
    if name not in models or not models[name].writer:
        writers = ", ".join(key for key, model in models.items() if model.writer) or "none"
        raise click.UsageError(
            f"{name!r} is not a connected model that writes; there are: {writers}."
        )
    try:
        written = Writer(name, models[name], folder).opposite(question)
    except (SteelyardError, TimeoutError) as error:
        raise click.ClickException(str(error) or "The model did not answer in time.") from error
    if not written:
        raise click.ClickException(
            "The model wrote no other question; write the opposite yourself."
        )
    click.echo(written)


COMMANDS = (catalogue, pull_model, opposite)
