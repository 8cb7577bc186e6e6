"""What a model learned from: the dataset versions of its fine-tune and of those before it."""

from __future__ import annotations

from steelyard.families.lineage import Lineage, TunedFamily, latest_of


def parent_of(lineage: Lineage, family: TunedFamily) -> str | None:
    """Return the adapter that a family's next fine-tune is trained from; ``None`` from a base."""
    model = latest_of(lineage, family)
    return family.origin_adapter if model is None else model.adapter


def learned_from(lineage: Lineage, adapter: str | None) -> tuple[tuple[str, int], ...]:
    """Return the dataset versions that a model and those it was trained from were trained on."""
    found: dict[tuple[str, int], None] = {}
    while adapter is not None and adapter in lineage.models:
        job = lineage.jobs[lineage.models[adapter].job_id]
        found[job.dataset_id, job.dataset_version] = None
        adapter = job.parent
    return tuple(found)
