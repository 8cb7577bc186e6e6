"""A fine-tune and its gate on a terminal: facts, the verdict, and what was compared, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import show_table
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.evaluations.gate_wire import Gate
    from steelyard.families.fine_tuning.wire import Job


def show_job(job: Job) -> None:
    """Print what is to be said of a fine-tune, and its gate's verdict once it was judged."""
    from steelyard.client.display_families import job_facts

    show_table(("FIELD", "VALUE"), job_facts(job))
    if job.gate is not None:
        click.echo()
        show_gate(job.gate)


def show_gate(gate: Gate) -> None:
    """Print a gate's verdict: its reasons, the changes with 95 % intervals, and flips."""
    from steelyard.client.display_gates import GATE_COLUMNS, group_rows, slice_rows, verdict_of

    click.echo(f"{verdict_of(gate)}, against the {gate.against}.")
    for text in gate.sentences:
        click.echo(f"  {printable(text)}")
    columns = tuple(name.upper() for name in GATE_COLUMNS)
    rows = list(group_rows(gate))
    if rows:
        click.echo()
        show_table(("ROWS", *columns), rows)
    slices = slice_rows(gate)
    if slices:
        click.echo()
        show_table(("DECISION", *columns), slices)
