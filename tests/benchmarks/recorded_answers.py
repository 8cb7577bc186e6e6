"""Record the answers of 300 requests of every kind, or compare two records: what a change answers otherwise.

``recorded_answers.py --record before.json`` with ``PYTHONPATH`` at a checkout's ``server``, the same for
another, then ``recorded_answers.py before.json after.json``. Ids, times and digests are masked.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

TEAM = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping", "other"]}
PAID = {"id": "paid", "question": "Was it paid twice?", "outcomes": ["yes", "no"]}
WRONG: list[Any] = [{}, [], {"context": 1}, {"context": "a", "decisions": []}, {"nothing": 1}]
PATHS = [
    *("account", "account/keys", "billing", "billing/purchases", "capabilities", "datasets"),
    *("datasets/ds_0", "decisions/log", "evaluations", "families", "families/none", "alarms"),
    *("fine-tuning/jobs", "health", "labeling/jobs", "maps", "models", "models/hashing", "nothing"),
    *("named-decisions", "named-decisions/none", "prompt-tuning/jobs", "views", "webhooks"),
]
MASKS = {
    r"(?<![\w.])(?:[a-z]{2,8}_)?[0-9a-f]{16,64}\b": "ID",
    r"\b[a-z]{2,6}_[0-9A-Za-z]{12,}\b": "ID",
    r'("[a-z_]*(?:_at|_ms|_s|created|queue|score|total|render)":)[0-9.]+': r"\1TIME",
    r"[0-9a-f]{8}-[0-9a-f-]{27}": "ID",
}


def requests() -> Iterator[tuple[str, str, Any]]:
    """Yield the method, path and body of each request."""
    for number in range(100):
        asked = [[TEAM], [PAID], [TEAM, PAID]][number % 3]
        yield "POST", "decide", {"context": f"Invoice {number} was paid twice.", "decisions": asked}
    for number in range(40):
        asked = {"context": f"Parcel {number}.", "decisions": [TEAM], "temperature": number / 10}
        yield "POST", "decide/estimate", asked
        yield "POST", "lint", asked
    targets = [{"team": "billing"}, {"team": "shipping"}]
    for number in range(10):
        rows = [
            {"context": f"{number} {row}", "decisions": [TEAM], "targets": targets[row % 2]}
            for row in range(30)
        ]
        yield "POST", "datasets", {"name": f"d{number}", "examples": rows}
    chat = {"model": "hashing", "messages": [{"role": "user", "content": "Paid twice?"}]}
    for path, bodies in {
        "decide": WRONG,
        "datasets": WRONG,
        "families": WRONG,
        "evaluations": WRONG,
        "named-decisions": [*WRONG, {"name": "desk", "decisions": [TEAM]}],
        "chat/completions": [*WRONG, chat],
    }.items():
        yield from (("POST", path, body) for body in bodies)
    for limit in ("", "?limit=1", "?limit=0"):
        yield from (("GET", f"{path}{limit}", None) for path in PATHS)
    for path in (
        "datasets/ds_0",
        "views/v_0",
        "webhooks/wh_0",
        "models/none",
        "families/none",
        "account",
    ):
        yield "DELETE", path, None


def record() -> dict[str, list[Any]]:
    """Return the status and masked body of each answer of a new server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answers = {}
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "steelyard", "serve", "--home", home]
        command += ["--port", str(port), "--engine", "hashing"]
        # It asks again until the server listens.
        patient = httpx.HTTPTransport(retries=8)
        with (
            subprocess.Popen(command) as server,
            httpx.Client(timeout=60, transport=patient) as client,
        ):
            url = f"http://127.0.0.1:{port}/v1"
            for number, (method, path, body) in enumerate(requests()):
                key = {"Idempotency-Key": f"k{number}"} if method != "GET" else {}
                answer = client.request(method, f"{url}/{path}", json=body, headers=key)
                text = answer.text
                for pattern, mask in MASKS.items():
                    text = re.sub(pattern, mask, text)
                answers[f"{number} {method} {path}"] = [answer.status_code, text]
            server.terminate()
    return answers


def main() -> int:
    """Record or compare; return 1 where answers differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, nargs="*")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    if options.record:
        answers = record()
        options.record.write_text(json.dumps(answers, indent=1), encoding="utf-8")
        print(len(answers), "answers")
        return 0
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in options.records)
    different = [name for name in before if before[name] != after.get(name)]
    for name in different:
        print(f"{name}\n- {before[name]}\n+ {after.get(name)}")
    print(f"{len(different)} of {len(before)} answers differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
