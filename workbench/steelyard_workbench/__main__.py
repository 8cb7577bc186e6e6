"""The workbench as a process of its own: its options come on standard input, and it ends with it.

The first line is a JSON object: ``server`` and ``port``, and where wanted ``host``, ``hosts`` and
``api_key``.
A key comes this way because the list of processes would show it among the arguments. One line goes
to standard output once it serves: the address.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import threading

_STDIN, _STDERR = 0, 2


def main() -> int:
    """Serve until standard input ends; return the exit status."""
    from bokeh.settings import settings as bokeh_settings

    from steelyard_workbench.frame.serving import open_server, warm_up

    # It would look at the signature of each callback of each part of a page.
    bokeh_settings.perform_error_diagnostics = False
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    received = b""
    while b"\n" not in received:
        chunk = os.read(_STDIN, 65536)
        if not chunk:
            return 2
        received += chunk
    settings = json.loads(received.partition(b"\n")[0])
    server = open_server(settings.pop("server"), **settings)
    # Panel collects garbage after each page that ends: imported modules are no part of it.
    gc.freeze()

    def watch() -> None:
        while os.read(_STDIN, 65536):
            pass
        server.io_loop.add_callback(server.io_loop.stop)

    threading.Thread(target=watch, name="workbench-lifeline", daemon=True).start()
    server.start()
    url = f"http://{server.address}:{server.port}"
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    # Panel prints exceptions. Whoever started this process reads one line, and a full pipe would
    # stop every page.
    os.dup2(_STDERR, sys.stdout.fileno())
    threading.Thread(target=warm_up, args=(url,), name="workbench-warming", daemon=True).start()
    server.io_loop.start()
    server.stop()
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # Python would wait for the calls of pages, which try again as long as the server is gone.
    os._exit(status)
