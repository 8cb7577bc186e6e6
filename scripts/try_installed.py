"""Start what is installed, as a stranger would, and ask it a decision: ``try_installed.py COMMAND...``.

For scripts/release: ``COMMAND`` runs ``steelyard``, and this runs where ``steelyard-client`` is installed alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

import steelyard

QUESTION = {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}
START_S = 300
PORT, WORKBENCH_PORT = 18420, 18421

flags = ("up", "--port", str(PORT), "--workbench-port", str(WORKBENCH_PORT))
server = subprocess.Popen([*sys.argv[1:], *flags], stdout=sys.stderr, start_new_session=True)
try:
    deadline = time.monotonic() + START_S
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{WORKBENCH_PORT}/").raise_for_status()
            break
        except httpx.HTTPError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("steelyard up does not start") from None
            time.sleep(0.5)
    with steelyard.connect(f"http://127.0.0.1:{PORT}") as client:
        answer = client.decide("Invoice 118 was paid twice.", [QUESTION])
    print("answered:", answer.decisions["refund"].top)
finally:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGINT)  # as Ctrl-C does
    server.wait()
if list(Path.cwd().iterdir()):
    sys.exit("something was written to the folder that it was started in")
