"""``client.prompt_tuning``: a decision's wording rewritten, and the rewrite proved."""

# Made of asynchronous/prompt_tuning.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.client import prompt_tuning_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import Looking, PromptTuningFollowing
from steelyard.prompt_tuning.wire import PromptTuningJob


class PromptTuning(Resource):
    """A decision's wording rewritten, and the rewrite proved: ``client.prompt_tuning``."""

    create = _method(calls.create)
    get = _method(calls.get)
    dismiss_label_issues = _method(calls.dismiss_label_issues)
    cancel = _method(calls.cancel)

    def list(
        self,
        *,
        dataset_id: str | None = None,
        status: str | Sequence[str] | None = None,
        page_size: int = 200,
    ) -> Iterator[PromptTuningJob]:
        """Iterate over jobs, newest first."""
        return self._iterate(
            lambda cursor: calls.page(
                dataset_id=dataset_id, status=status, limit=page_size, cursor=cursor
            )
        )

    def wait(
        self,
        job: str | PromptTuningJob,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> PromptTuningJob:
        """Wait until a job has ended; a restart of the server ends no wait.

        ``timeout_s`` is without end when left out, though a server that was gone for a minute is
        an error. ``poll_s`` is the seconds between two looks.

        Raises
        ------
        steelyard.client.NoAnswerInTimeError
            When it has not ended in time; it goes on.
        """
        job_id = job if isinstance(job, str) else job.id
        looking = Looking(timeout_s, was_answered=not isinstance(job, str))
        with progress_bar("Tuning", is_shown=progress) as show:
            following = PromptTuningFollowing(show, timeout_s)
            return self._until(calls.get(job_id), following.has_ended, looking, poll_s)
