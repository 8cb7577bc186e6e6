"""Start what is installed, as a stranger would, and ask it a decision: ``try_installed.py CLIENT``.

For scripts/release; ``CLIENT`` is the Python of an environment that has ``steelyard-client`` alone.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

QUESTION = {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}
START_S = 300
BY_CLIENT = f"""
import steelyard
with steelyard.connect("http://127.0.0.1:18420") as client:
    answer = client.decide("Invoice 118 was paid twice.", [{QUESTION}])
print("answered the client:", answer.decisions["refund"].top)
"""

command = str(Path(sys.executable).with_name("steelyard"))
ports = ("--port", "18420", "--workbench-port", "18421")
server = subprocess.Popen([command, "up", *ports], stdout=sys.stderr)
try:
    deadline = time.monotonic() + START_S
    while True:
        try:
            httpx.get("http://127.0.0.1:18421/").raise_for_status()
            break
        except httpx.HTTPError:
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit("steelyard up does not start")
            time.sleep(0.5)
    body = {"context": "Invoice 118 was paid twice.", "decisions": [QUESTION]}
    answer = httpx.post("http://127.0.0.1:18420/v1/decide", json=body, timeout=60)
    print("answered:", answer.raise_for_status().json()["decisions"]["refund"]["top"])
    subprocess.run([sys.argv[1], "-c", BY_CLIENT], check=True)
finally:
    server.send_signal(signal.SIGINT)
    server.wait()
if list(Path.cwd().iterdir()):
    sys.exit("something was written to the folder that it was started in")
