"""``client.prompt_tuning``: a decision's wording rewritten, and the rewrite proved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from steelyard.client import prompt_tuning_calls as calls
from steelyard.client.asynchronous.resource import AsyncJobResource
from steelyard.client.calls import async_method as _method
from steelyard.client.waiting import PROMPT_TUNING
from steelyard.prompt_tuning.wire import PromptTuningJob


class AsyncPromptTuning(AsyncJobResource[PromptTuningJob]):
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
    ) -> AsyncIterator[PromptTuningJob]:
        """Iterate over jobs, newest first."""
        return self._iterate(
            lambda cursor: calls.page(
                dataset_id=dataset_id, status=status, limit=page_size, cursor=cursor
            )
        )
