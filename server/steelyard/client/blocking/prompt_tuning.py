"""``client.prompt_tuning``: a decision's wording rewritten, and the rewrite proved."""

# Made of asynchronous/prompt_tuning.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.client import prompt_tuning_calls as calls
from steelyard.client.blocking.resource import JobResource
from steelyard.client.calls import blocking_method as _method
from steelyard.client.waiting import PROMPT_TUNING
from steelyard.prompt_tuning.wire import PromptTuningJob


class PromptTuning(JobResource[PromptTuningJob]):
    """A decision's wording rewritten, and the rewrite proved: ``client.prompt_tuning``."""

    _kind = PROMPT_TUNING
    _look = staticmethod(calls.get)
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
