"""A process that makes events and sends them until it is killed; prints committed ones."""

from __future__ import annotations

import itertools
import json
import sys
import time

from steelyard.outbox.publishing import publish
from steelyard.storage import open_state
from steelyard.webhooks.sender import WebhookSender

SUBJECTS = 5


def main(url: str, is_last: bool) -> None:
    state = open_state(url)
    sender = WebhookSender(state, allowed={"127.0.0.1"}, look_s=0.01)
    print("ready", flush=True)  # noqa: T201
    if is_last:
        sys.stdin.read()
        sender.close()
        state.close()
        return
    for n in itertools.count():
        stamp, subject = time.time_ns(), f"ft_{n % SUBJECTS}"

        def write(connection, stamp=stamp, subject=subject):
            publish(connection, "local", "job.succeeded", subject, {"stamp": stamp})

        state.write_now(write)
        print(json.dumps([subject, stamp]), flush=True)  # noqa: T201
        time.sleep(0.002)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "last")
