"""Wire forms of the jobs that set up judges and routes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from steelyard.models.judge_wire import TaskKind
from steelyard.wire.jobs import JobNoun, JobStep, JobSummary, summary_of
from steelyard.wire.queries import CursorPage
from steelyard.wire.schemas import doc
from steelyard.wire.shown import Shown

SETUP = JobNoun(
    kind="model_setup",
    prefix="set_",
    noun="model setup",
    plural="model setups",
    title="Setting up",
    lost="What was downloaded stays, and the next download goes on from it.",
)


class ModelSetup(Shown, Struct, frozen=True, kw_only=True):
    """A job that sets up a judge, a connected model or a route."""

    id: str
    object: Literal["model.setup"] = "model.setup"
    kind: TaskKind
    name: Annotated[str, doc("The model, the route, or `the home`.")]
    status: Literal["queued", "running", "cancelling", "cancelled", "succeeded", "failed"]
    dataset_id: str | None
    dataset_version: int | None
    done: Annotated[
        int,
        doc(
            "Bytes of a download, files of a backup, rows of a calibration, a qualification or a "
            "fit."
        ),
    ]
    total: Annotated[int, doc("Of these; 0 while that is not known.")]
    created_at: float
    updated_at: float
    error: Annotated[str | None, doc("Why it failed.")]

    @property
    def summary(self) -> JobSummary:
        """The setup as a list of jobs has it."""
        unit = {"download": "bytes", "backup": "files"}.get(self.kind, "rows")
        step = JobStep(phase=self.kind, step=self.done, steps=self.total, unit=unit)
        return summary_of(
            SETUP,
            self,
            f"{self.kind} of {self.name}",
            models=[] if self.kind == "backup" else [self.name],
            progress=step if self.status in ("running", "cancelling") else None,
            ended=None,
            why=self.error,
        )


class ModelSetupPage(CursorPage[ModelSetup], frozen=True):
    """A page of setups, newest first."""
