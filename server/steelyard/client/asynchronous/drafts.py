"""``client.drafts``, reviews of versions of datasets."""

from __future__ import annotations

from steelyard.client import draft_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method


class AsyncDrafts(AsyncResource):
    """Reviews of versions, which become datasets or versions when sealed: ``client.drafts``."""

    create = _method(calls.create)
    list = _method(calls.list_drafts)
    get = _method(calls.get)
    delete = _method(calls.delete)
    edit = _method(calls.edit)
    bulk = _method(calls.bulk)
    outcomes = _method(calls.outcomes)
    edit_outcomes = _method(calls.edit_outcomes)
    undo = _method(calls.undo)
    redo = _method(calls.redo)
    history = _method(calls.history)
    rows = _method(calls.rows)
    assign = _method(calls.assign)
    assignments = _method(calls.assignments)
    move_assigned = _method(calls.move_assigned)
    answer = _method(calls.answer)
    import_answers = _method(calls.import_answers)
    agreement = _method(calls.agreement)
    seal = _method(calls.seal)
