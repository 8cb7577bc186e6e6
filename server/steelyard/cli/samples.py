"""The sample datasets: where they are, and loading them once into a home."""

from __future__ import annotations

from pathlib import Path

import click

import steelyard
from steelyard.errors import SteelyardError

#: The names of the datasets that the first run loads.
SAMPLES = ("support_triage", "reply_action")

#: In a home: which samples were loaded into it.
LOADED = "samples"


def sample_file(name: str) -> Path | None:
    """Return the file of a sample dataset; ``None`` where this installation has none.

    A wheel holds them in the package; a checkout in ``datasets/``.
    """
    package = Path(steelyard.__file__).parent
    places = (package / "assets" / "samples", package.parents[1] / "datasets")
    files = (place / f"{name}.jsonl" for place in places)
    return next((file for file in files if file.is_file()), None)


def load_samples(url: str, home: Path) -> None:
    """Load the samples that were never loaded into a home, and report them."""
    marks = home / LOADED
    for name in SAMPLES:
        file = sample_file(name)
        if file is None or (marks / name).exists():
            continue
        try:
            with steelyard.connect(url) as client:
                known = any(dataset.name == name for dataset in client.datasets.list().data)
                if not known:  # a crash between loading and marking must not load it twice
                    made = client.datasets.create(name, file)
                    click.echo(f"Loaded the sample dataset {name}: {made.rows} rows, {made.id}")
            marks.mkdir(exist_ok=True)
            (marks / name).touch()
        except (OSError, SteelyardError) as error:
            click.echo(f"The sample dataset {name} was not loaded: {error}", err=True)
