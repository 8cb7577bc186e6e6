"""``client.views``: views of the workbench that an account saved."""

# Made of asynchronous/views.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator

from steelyard.client import view_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method
from steelyard.views.wire import View


class Views(Resource):
    """Views of the workbench that an account saved: ``client.views``."""

    save = _method(calls.save)
    delete = _method(calls.delete)

    def list(self, *, page_size: int = 200) -> Iterator[View]:
        """Iterate over saved views, newest first."""
        return self._iterate(lambda cursor: calls.page(limit=page_size, cursor=cursor))
