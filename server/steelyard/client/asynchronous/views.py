"""``client.views``: views of the workbench that an account saved."""

from __future__ import annotations

from collections.abc import AsyncIterator

from steelyard.client import view_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method
from steelyard.views.wire import View


class AsyncViews(AsyncResource):
    """Views of the workbench that an account saved: ``client.views``."""

    save = _method(calls.save)
    delete = _method(calls.delete)

    def list(self, *, page_size: int = 200) -> AsyncIterator[View]:
        """Iterate over saved views, newest first."""
        return self._iterate(lambda cursor: calls.page(limit=page_size, cursor=cursor))
