"""Datasets by name: where one is chosen, and where something says which it is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import empty


def dataset_name(client: Client, id_: str) -> str:
    """Return the name of a dataset; its id where it cannot be read, as of one that is deleted."""
    try:
        return client.datasets.get(id_).name
    except SteelyardError:
        return id_


def dataset_options(datasets: Sequence[Dataset], *, with_rows: bool = False) -> dict[str, str]:
    """Return a field's options: names to ids; equal names have their id beside them."""
    counts = Counter(dataset.name for dataset in datasets)
    options = {}
    for dataset in datasets:
        notes = [f"{dataset.rows:,} rows"] if with_rows else []
        notes += [dataset.id] if counts[dataset.name] > 1 else []
        options[f"{dataset.name} ({', '.join(notes)})" if notes else dataset.name] = dataset.id
    return options


def no_datasets(session: Session, purpose: str) -> Viewable:
    """Show that there is no dataset for a purpose, with the way to import one."""
    return empty(
        f"**No datasets yet.** {purpose}",
        pmui.Button(
            label="Import a dataset",
            variant="contained",
            on_click=lambda _: session.open("datasets", dataset=""),
        ),
    )
