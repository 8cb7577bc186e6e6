"""``steelyard family dossier``: everything stored about a family, in one file for an auditor."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.nouns import Shown, asking
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.families.fine_tune_wire import Job

_EPILOG = """\b
Examples:
  steelyard family dossier router
  steelyard family dossier router --output audit/router --force
"""
#: Alarms of the family, and reviews of its dataset, at most: the newest.
_MAX_ALARMS, _MAX_REVIEWS = 100, 20
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{border:1px solid #8886;padding:.2rem .5rem;
text-align:left;vertical-align:top;overflow-wrap:anywhere}th{font-weight:600}
code{background:#8882;padding:.1rem .3rem}"""
_NOTE = (
    "Facts that the server stores, each with the command that gives it again. What is not stored "
    "is not here. This file says what was measured and by whom it was "
    "changed as far as that is stored; it is no statement that any rule or standard is met."
)


@asking("dossier", "name", epilog=_EPILOG)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="The two files without their endings. [default: NAME-dossier]",
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
def command(client: Client, name: str, *, output: Path | None, force: bool) -> Shown:
    """Write everything stored about the family NAME as an HTML and a JSON file.

    It has the questions, the data versions with their hashes and licences, reviews with every change
    and its author, the fine-tunes and their ends, gates, held-out figures with calibration and slices,
    the bound, the shadow and the alarms. Each section names the command that gives it.
    """
    import datetime as dt

    import msgspec

    from steelyard.durable import write_atomically
    from steelyard.version import __version__

    path = output or Path(f"{name}-dossier")
    files = {ending: path.with_name(f"{path.name}.{ending}") for ending in ("json", "html")}
    present = [str(file) for file in files.values() if file.exists()]
    if present and not force:
        raise click.UsageError(f"{present[0]} is there already; write over it with --force.")
    if not path.absolute().parent.is_dir():
        raise click.UsageError(f"There is no folder {path.absolute().parent}; make it first.")
    dossier = {
        "family": name,
        "made_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "steelyard": __version__,
        "note": _NOTE,
        "sections": list(_sections(client, name)),
    }
    write_atomically(files["json"], msgspec.json.format(msgspec.json.encode(dossier)))
    write_atomically(files["html"], _page(dossier).encode())
    written = {ending: str(file) for ending, file in files.items()}
    return written, "\n".join(map(printable, written.values()))


def _sections(client: Client, name: str) -> Iterator[dict[str, Any]]:
    """Yield title, command and facts of each section; the family itself must be there."""
    from msgspec import UNSET

    family = client.families.get(name)
    dataset = family.dataset_id
    yield _section(
        "The family, its models and their gates",
        f"family show {name} --json",
        partial(_given, family),
    )
    yield _section(
        "What it decides: the dataset and its questions",
        f"dataset show {dataset} --json",
        partial(client.datasets.get, dataset),
    )
    yield _section(
        "Versions of the dataset",
        f"dataset versions {dataset} --json",
        partial(client.datasets.versions, dataset),
    )
    jobs = family.jobs if family.jobs is not UNSET else []
    details = [client.jobs.get(entry.id) for entry in reversed(jobs)]
    for version in sorted({job.dataset_version for job in details if job.dataset_id == dataset}):
        yield _section(
            f"Licences of version {version}: rows under each, as whoever gave the data named it",
            f"dataset download {dataset} --version {version}",
            partial(_licenses, client, dataset, version),
        )
    for draft in client.drafts.list(dataset_id=dataset, limit=_MAX_REVIEWS).data:
        path = f"/v1/drafts/{draft.id}"
        yield _section(
            f"Who labelled: {draft.name}, a review of version {draft.dataset_version}",
            f'curl "$STEELYARD_URL{path}/assignments"',
            partial(client.drafts.assignments, draft.id),
        )
        yield _section(
            f"What was changed in {draft.name}, by whom and when, the newest first",
            f'curl "$STEELYARD_URL{path}/edits"',
            partial(client.drafts.history, draft.id),
        )
    for job in details:
        yield from _job_sections(client, job)
    yield _section(
        "The shadow", f"family shadow {name} --json", partial(client.families.compare_shadow, name)
    )
    yield _section(
        "Drift: alarms, the newest first",
        f"alarm list --all --model {name} --json",
        lambda: list(islice(client.alarms.list(model=name), _MAX_ALARMS)),
    )


def _job_sections(client: Client, job: Job) -> Iterator[dict[str, Any]]:
    """Yield a fine-tune, its events, and its held-out figures where it has some."""
    from msgspec import UNSET

    job_id = job.id
    yield _section(f"Fine-tune {job_id}", f"job show {job_id} --json", partial(_given, job))
    yield _section(
        f"What happened to {job_id}",
        f"job events {job_id} --json",
        partial(client.jobs.events, job_id),
    )
    evaluation = job.dataset_evaluation
    if evaluation is not UNSET and evaluation is not None:
        yield _section(
            f"Held-out figures of {job_id}: calibration and slices",
            f"evaluate show {evaluation.id} --json",
            partial(client.evaluations.detail, evaluation.id),
        )


def _licenses(client: Client, dataset: str, version: int) -> dict[str, int]:
    """Return how many rows name each licence in their metadata, the commonest first."""
    import msgspec

    rows = client.datasets.download(dataset, version=version).splitlines()
    metadata = (msgspec.json.decode(row).get("metadata") or {} for row in rows)
    return dict(Counter(str(of.get("license") or "not given") for of in metadata).most_common())


def _given(answer: Any) -> Any:
    return answer


def _section(title: str, words: str, read: Callable[[], Any]) -> dict[str, Any]:
    import msgspec

    from steelyard.errors import SteelyardError

    try:
        facts = msgspec.to_builtins(read())
    except SteelyardError as error:
        facts = {"not available": error.message}
    command = words if words.startswith("curl ") else f"steelyard {words}"
    return {"title": title, "command": command, "facts": facts}


def _page(dossier: dict[str, Any]) -> str:
    parts = [
        f"<section><h2>{html.escape(section['title'])}</h2>"
        f"<p><code>{html.escape(section['command'])}</code></p>{_shown(section['facts'])}</section>"
        for section in dossier["sections"]
    ]
    title = html.escape(f"Dossier of the family {dossier['family']}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><p>{html.escape(dossier['made_at'])}, "
        f"Steelyard {html.escape(dossier['steelyard'])}</p><p>{html.escape(dossier['note'])}</p>"
        f"{''.join(parts)}</body></html>\n"
    )


def _shown(value: Any, name: str = "") -> str:
    """Return a value as HTML: objects as tables, lists of objects one below the other."""
    if isinstance(value, dict):
        rows = "".join(
            f"<tr><th>{html.escape(str(key))}</th><td>{_shown(entry, str(key))}</td></tr>"
            for key, entry in value.items()
        )
        return f"<table>{rows}</table>"
    if isinstance(value, list):
        if not any(isinstance(entry, dict | list) for entry in value):
            return html.escape(", ".join(map(str, value)))
        return "".join(_shown(entry) for entry in value)
    if name.endswith("_at") and isinstance(value, int | float):
        from steelyard.cli.local_state import show_time

        return html.escape(str(show_time(value)))
    return "" if value is None else html.escape(str(value))
