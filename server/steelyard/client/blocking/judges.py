"""``client.judges``: language models that run on the server, for its operators."""

# Made of asynchronous/judges.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from steelyard.client import judge_calls as calls
from steelyard.client.blocking.resource import Resource
from steelyard.client.calls import blocking_method as _method


class Judges(Resource):
    """Download, connect, check and calibrate judges: ``client.judges``.

    What takes long is begun; ``list`` says how far it is.
    """

    list = _method(calls.list_judges)
    download = _method(calls.download)
    connect = _method(calls.connect)
    check = _method(calls.check)
    calibrate = _method(calls.calibrate)
    use_in_route = _method(calls.use_in_route)
