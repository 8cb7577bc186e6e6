"""Record the answers of 300 requests of every kind, or compare two records and print the differences.

``recorded_answers.py --record before.json`` with ``PYTHONPATH`` at a checkout's ``server``, the same
for another, then ``recorded_answers.py before.json after.json``: differences by field, with up to three
examples of each. Ids, times and digests are masked.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import socket
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

TEAM: dict[str, Any] = {
    "id": "team",
    "question": "Which team?",
    "outcomes": ["billing", "shipping", "other"],
}
PAID: dict[str, Any] = {"id": "paid", "question": "Was it paid twice?", "outcomes": ["yes", "no"]}
IDS = {one["id"] for one in (TEAM, PAID)} | {*TEAM["outcomes"], *PAID["outcomes"]}
WRONG: list[Any] = [{}, [], {"context": 1}, {"context": "a", "decisions": []}, {"nothing": 1}]
PATHS = [
    *("account", "account/keys", "billing", "billing/purchases", "capabilities", "datasets"),
    *("datasets/ds_0", "decisions/log", "evaluations", "families", "families/none", "alarms"),
    *("fine-tuning/jobs", "health", "labeling/jobs", "maps", "models", "models/hashing", "nothing"),
    *("named-decisions", "named-decisions/none", "prompt-tuning/jobs", "webhooks"),
]
MASKS = {
    r"(?<![\w.])(?:[a-z]{2,8}_)?[0-9a-f]{16,64}\b": "ID",
    r"\b[a-z]{2,6}_[0-9A-Za-z]{12,}\b": "ID",
    r'("[a-z_]*(?:_at|_ms|_s|created|queue|score|total|render)":)[0-9.]+': r'\1"TIME"',
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


def parsed(text: str) -> Any:
    """Return an answer's JSON; the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path, the old and the new value of each changed field; ids of requests and places are ``*``."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            inner = f"{path}.{'*' if key in IDS else key}".lstrip(".")
            if key in before and key in after:
                yield from differences(before[key], after[key], inner)
            else:
                change = "gone" if key in before else "new"
                yield f"{inner}: {change}", before.get(key), after.get(key)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) == len(after):
            for one, other in zip(before, after, strict=True):
                yield from differences(one, other, f"{path}.*")
        else:
            gone = [item for item in before if item not in after]
            yield (
                f"{path}: {len(before)} items, now {len(after)}",
                gone,
                [item for item in after if item not in before],
            )
    elif before != after:
        floats = isinstance(before, float) and isinstance(after, float)
        near = floats and math.isclose(before, after)
        yield f"{path}: last digits" if near else path, before, after


def main() -> int:
    """Record or compare; return 1 where answers differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, nargs="*")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--examples", type=int, default=3)
    options = parser.parse_args()
    if options.record:
        answers = record()
        options.record.write_text(json.dumps(answers, indent=1), encoding="utf-8")
        print(len(answers), "answers")
        return 0
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in options.records)
    different = [name for name in before if before[name] != after.get(name)]
    groups: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for name in different:
        (was, old), (now, new) = before[name], after.get(name, [0, ""])
        if was == now:
            fields = differences(parsed(old), parsed(new))
        else:
            fields = iter([(f"status {was}, now {now}", old, new)])
        for group, gone, come in fields:
            groups[group][name] = (str(gone)[:300], str(come)[:300])
    for group, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"{group}: {len(found)} answers")
        # Requests that differ in a number alone are one example.
        examples = {
            re.sub(r"[0-9.]+", "", old): (name, old, new) for name, (old, new) in found.items()
        }
        for name, old, new in list(examples.values())[: options.examples]:
            print(f"    {name}\n    - {old}\n    + {new}")
    print(f"{len(different)} of {len(before)} answers differ, in {len(groups)} groups")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
