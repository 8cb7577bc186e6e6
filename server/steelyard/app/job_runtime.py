"""The job worker: open the services that jobs need, and the runtime that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from steelyard import tracing
from steelyard.app import rooms
from steelyard.app.foundation import open_house
from steelyard.jobs.runtime import JobRuntime
from steelyard.serving.base import ModelLoader, NamedModelLoader
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import Settings, read_settings


@contextmanager
def open_worker(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
) -> Iterator[JobRuntime]:
    """Open the services that jobs need, and run jobs until the end of the block."""
    settings = settings or read_settings()
    with ExitStack() as closing:
        closing.enter_context(tracing.exporting())
        house = open_house(settings, load_model, load_further, closing, answers=False)
        rooms.open_all(house)
        works = [house.open(kind.open) for kind in rooms.job_kinds(in_server=False)]
        end_rests = house.get(ModelRegistry).end_rests
        yield closing.enter_context(JobRuntime(house.state, works, on_begin=end_rests))
