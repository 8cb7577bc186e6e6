"""One worker of ``steelyard serve --workers N``; ``steelyard.cli.supervisor`` starts it.

``python -m steelyard.cli.worker FD``: the listening socket is inherited as FD, the first line of
standard input has the settings as JSON, and its end says that the supervisor is gone: the worker then
ends at once, whatever it does, so that the port is free for the next start. When the worker answers, it
writes one line of JSON to standard output.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading

from steelyard.cli.failures import FAILED, disk_failures, exit_status, show_failure
from steelyard.cli.serve import serve_here
from steelyard.errors import SteelyardError
from steelyard.settings import InvalidSettingError, read_settings

_STDIN, _STDOUT = 0, 1


def main(descriptor: int) -> int:
    """Serve until stopped; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM before it serves: without a traceback
    try:
        settings = read_settings(json.loads(_first_line()))
        threading.Thread(
            target=_end_with_supervisor, name="steelyard-lifeline", daemon=True
        ).start()
        with disk_failures(), socket.socket(fileno=descriptor) as listener:
            serve_here(settings, listener, _announce, prepares_jobs=False)
    except (SteelyardError, InvalidSettingError) as error:
        show_failure(error)
        return exit_status(error)
    return 0


def _announce(model: str, engine: str) -> None:
    os.write(_STDOUT, json.dumps({"model": model, "engine": engine}).encode() + b"\n")


def _end_with_supervisor() -> None:
    # The pipe has ended also where the supervisor was gone before anybody looked. Requests in flight
    # are cut off: waiting for them, or for the model to be loaded, would keep the port.
    while os.read(_STDIN, 4096):
        pass
    os._exit(FAILED)


def _first_line() -> bytes:
    # Unbuffered: later the descriptor itself is watched.
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(_STDIN, 1)
        if not byte:
            raise InvalidSettingError("The worker got no settings; start it with steelyard serve.")
        line += byte
    return bytes(line)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
