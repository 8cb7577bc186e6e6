"""``steelyard worker``, and the process that ``steelyard serve`` starts for its jobs.

``python -m steelyard.cli.job_worker``: the first line of standard input has the settings as JSON, every
further one says that there is work, and its end says that the server is gone. Each line of standard
output says that a job has ended. It imports its modules
before the first line, which comes once the server has opened its state. It ends by itself when there
has been no job for a while.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

from steelyard.cli.failures import disk_failures, exit_status, show_failure
from steelyard.cli.options import setting_options
from steelyard.errors import SteelyardError
from steelyard.settings import InvalidSettingError, Settings, read_settings

if TYPE_CHECKING:
    from steelyard.jobs.runtime import JobRuntime

_STDIN, _STDOUT = 0, 1
#: Seconds without a job after which a server's process ends and its memory is free.
_IDLE_S = 120.0
#: Seconds to wait for the process of a server that has just ended.
_LOCK_S = 5.0
#: How far the jobs' process gives way: callers who wait for an answer come first.
_NICENESS = 5

_EPILOG = """\b
Examples:
  steelyard serve --jobs off           (in another terminal)
  steelyard worker
  steelyard worker --state-url postgresql+psycopg://steelyard@db/steelyard
"""


@click.command("worker", epilog=_EPILOG)
@setting_options("home", "state_url", "new_state", "engine", "threads")
def command(**given: str | None) -> None:
    """Run the evaluations and fine-tunes of a server whose setting jobs is off, until Ctrl-C.

    It needs the server's home, or its databases and store of frames, and the same models. Several may
    run at once; the jobs of one that dies are taken up by another.
    """
    from steelyard.serving.fitted import fitted

    settings = fitted(read_settings(given))

    def announce(_: object) -> None:
        click.echo("Running jobs (Ctrl-C stops; what runs is taken up again by the next).")

    run(settings, threading.Event(), on_ready=announce)
    click.echo("Stopped.")


def run(
    settings: Settings,
    stopping: threading.Event,
    *,
    idle_s: float | None = None,
    on_ready: Callable[[JobRuntime], object] = lambda _: None,
) -> None:
    """Run jobs until a signal or the event stops it."""
    from steelyard.app.job_runtime import open_worker
    from steelyard.http.logs import configure_logging

    def stop(_: int, __: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    configure_logging(settings.log_level, settings.log_format)
    with open_worker(settings) as runtime:
        on_ready(runtime)
        while not stopping.wait(0.5):
            if idle_s is not None and runtime.idle_s >= idle_s:
                return


def main() -> int:
    """Run a server's jobs; return the exit status."""
    os.nice(_NICENESS)
    import steelyard.app.job_runtime  # noqa: F401

    lines = _lines()
    first = next(lines, None)
    if first is None:  # the server did not start
        return 0
    try:
        settings = read_settings(json.loads(first))
        with disk_failures(), _alone(settings) as is_alone:
            if not is_alone:
                return 0
            stopping = threading.Event()

            def listen(runtime: JobRuntime) -> None:
                for _ in lines:
                    runtime.wake()
                stopping.set()

            def on_ready(runtime: JobRuntime) -> None:
                runtime.on_end = _report_end
                threading.Thread(
                    target=listen, args=(runtime,), name="steelyard-lifeline", daemon=True
                ).start()

            run(settings, stopping, idle_s=_IDLE_S, on_ready=on_ready)
    except (SteelyardError, InvalidSettingError) as error:
        show_failure(error)
        return exit_status(error)
    return 0


def _report_end() -> None:
    """Notify the server that a job has ended, so that it looks at once."""
    with suppress(OSError):  # the server is gone
        os.write(_STDOUT, b"\n")


def _lines() -> Iterator[str]:
    """Yield the lines of standard input, unbuffered, until its end."""
    pending = b""
    while chunk := os.read(_STDIN, 65536):
        pending += chunk
        while b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            yield line.decode()


@contextmanager
def _alone(settings: Settings) -> Iterator[bool]:
    """Yield whether no other process of this home runs its jobs, and keep it so."""
    import fcntl

    from steelyard.settings import home_of
    from steelyard.storage.home import make_home

    home = make_home(home_of(settings))
    give_up_at = time.monotonic() + _LOCK_S
    with (home / "jobs.lock").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    yield False
                    return
                time.sleep(0.2)
            else:
                yield True
                return


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # All is closed. Python would take its modules apart, for seconds on a busy machine, and wait for
    # threads whose calls go on.
    os._exit(status)
