"""A disk without room: refused in the contract's words, nothing lost, and over once there is room."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from faults.audit import audit
from faults.faulty_engines import FIRST, FaultyServer, faulty_server
from faults.processes import MODEL, ServeProcess, open_account, serve_process
from steelyard.accounts.rate_limits import RateWindows
from steelyard.cli.main import main
from steelyard.datasets.uploads import UploadedFile
from steelyard.errors import StorageUnavailableError
from steelyard.storage import open_state
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows
from support.servers.hosting import Scored
from support.servers.serving import REQUEST

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sets another process's limits")

PRICED = {"STEELYARD_ACCOUNTS": "on", "STEELYARD_PRICES": f"{MODEL}=7"}


class Caller:
    """Calls one server with one key."""

    def __init__(self, server: ServeProcess, secret: str) -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        self.http = httpx.Client(base_url=server.url, headers=headers, timeout=60)

    def decide(self, key: str | None = None, **fields: Any) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.http.post("/v1/decide", json={**REQUEST, **fields}, headers=headers)

    def report(self, answer: httpx.Response) -> httpx.Response:
        body = {"decision_id": answer.json()["id"], "outcomes": {"d": "yes"}}
        return self.http.post("/v1/feedback", json=body)

    def wallet(self) -> dict[str, str]:
        found: dict[str, str] = self.http.get("/v1/account").json()["wallet"]
        return found


@contextmanager
def full_disk(server: ServeProcess, n_bytes: int = 0) -> Iterator[None]:
    """Bound the length of the server's files; at 0 nothing can be written at all."""
    limits = (n_bytes, resource.RLIM_INFINITY)
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limits)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # the test has killed it
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[ServeProcess, Caller]]:
    home = tmp_path / "home"
    _, secret = open_account(home)
    with serve_process(home, **PRICED) as server:
        server.start()
        caller = Caller(server, secret)
        with caller.http:
            yield server, caller


def assert_refused(response: httpx.Response) -> None:
    assert_canonical_error(response, 503, "storage_unavailable", retryable=True)
    assert float(response.headers["Retry-After"]) > 0
    assert "Idempotency-Status" not in response.headers


@pytest.mark.slow
def test_a_home_that_was_moved_stores_nothing_until_it_is_back(
    server: tuple[ServeProcess, Caller], tmp_path: Path
) -> None:
    _, caller = server
    kept, wallet = caller.decide("kept"), caller.wallet()
    home = tmp_path / "home"
    home.rename(tmp_path / "elsewhere")
    assert_refused(caller.decide())
    assert_refused(caller.decide("later"))
    (tmp_path / "elsewhere").rename(home)
    assert caller.wallet() == wallet
    assert caller.decide("kept").content == kept.content
    assert caller.decide("later").status_code == 200


def test_a_full_disk_refuses_writes_and_nothing_else(
    server: tuple[ServeProcess, Caller],
) -> None:
    process, caller = server
    kept, stored = caller.decide("kept"), caller.decide()
    assert kept.status_code == stored.status_code == 200
    before = caller.wallet()
    with full_disk(process):
        for _ in range(3):
            assert_refused(caller.decide("later"))
            assert_refused(caller.decide())
            assert_refused(caller.report(stored))
        assert caller.decide("kept").content == kept.content
        assert caller.wallet() == before
        for path in ("/health", "/v1/health", "/v1/models", "/v1/account/keys", "/metrics"):
            assert caller.http.get(path).status_code == 200, path
        for path in ("/v1/playground/decide", "/v1/lint", "/v1/decide/estimate"):
            answer = caller.http.post(path, json=REQUEST)
            assert answer.status_code == 200, answer.text
        assert caller.http.get("/v1/ready").status_code == 503
    assert caller.http.get("/v1/ready").status_code == 200
    later = caller.decide("later")
    assert later.status_code == 200
    assert "Idempotency-Replayed" not in later.headers
    assert caller.decide("kept").content == kept.content
    assert caller.report(stored).status_code == 200
    assert caller.wallet()["reserved_usd"] == "0"
    process.stop()
    books = audit(process.state)
    assert books.count("pending") == 0
    assert books.count("succeeded") == 3
    assert {answer.json()["id"] for answer in (kept, stored, later)} == books.decisions


@pytest.mark.slow
def test_a_disk_that_fills_up_in_the_middle_of_a_write_tears_nothing(
    server: tuple[ServeProcess, Caller],
) -> None:
    process, caller = server
    log = process.state.with_name(f"{process.state.name}-wal")
    answers: dict[str, bytes] = {}
    for spare in (1, 500, 4_096, 20_000, 60_001):
        n_before = len(answers)
        with full_disk(process, log.stat().st_size + spare):
            for number in range(200):
                key = f"{spare}-{number}"
                response = caller.decide(key, context="paid twice " * 300)
                if response.status_code != 200:
                    break
                answers[key] = response.content
            code = response.json()["error"]["code"]
            assert code in {"storage_unavailable", "request_in_progress"}
            assert len(answers) - n_before < 60
        response = caller.decide(key, context="paid twice " * 300)
        assert response.status_code == 200, response.text
        answers[key] = response.content
    assert caller.wallet()["reserved_usd"] == "0"
    process.kill()
    process.start()
    for key, content in answers.items():
        assert caller.decide(key, context="paid twice " * 300).content == content
    process.stop()
    books = audit(process.state)
    assert books.count("pending") == 0
    assert books.count("succeeded") == len(answers)


@pytest.mark.slow
def test_a_server_killed_on_a_full_disk_starts_once_there_is_room(
    server: tuple[ServeProcess, Caller],
) -> None:
    process, caller = server
    kept = caller.decide("kept")
    with full_disk(process):
        assert_refused(caller.decide("later"))
        process.kill()
    process.start()
    assert caller.decide("kept").content == kept.content
    assert caller.decide("later").status_code == 200
    process.stop()
    assert audit(process.state).count("succeeded") == 2


@pytest.mark.slow
def test_a_server_does_not_start_where_it_cannot_write(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serve_process(home) as server:
        server.launch("sh", "-c", 'ulimit -S -f 0; exec "$@"', "sh")
        assert server.wait() != 0
        server.start()
        answer = httpx.post(f"{server.url}/v1/decide", json=REQUEST)
        assert answer.status_code == 200


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of two MiB, where the tests may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def assert_one_line(log: str, cause: str) -> None:
    [line] = log.splitlines()
    assert line.startswith("Error: Cannot use ")
    assert cause in line


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", ["1", "2"])
def test_a_start_on_a_full_disk_says_so_in_one_line(small_disk: Path, n_workers: str) -> None:
    ballast = small_disk / "ballast"
    with serve_process(small_disk / "home", "--workers", n_workers) as process:
        process.log = process.log.parent.with_suffix(".log")  # elsewhere
        open_account(process.home)
        fill(ballast)
        process.launch()
        assert process.wait() == 1
        assert_one_line(process.logged, "No space left on device")
        ballast.unlink()
        process.start()
        process.stop()


def test_a_start_in_a_read_only_home_says_so_in_one_line(small_disk: Path) -> None:
    with serve_process(small_disk / "home") as process:
        process.log = process.log.parent.with_suffix(".log")
        open_account(process.home)
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        process.launch()
        assert process.wait() == 1
        assert_one_line(process.logged, "Read-only file system")


def test_a_state_on_a_full_disk_says_so(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk / 'state.sqlite'}"
    open_state(url).close()
    fill(small_disk / "ballast")
    with pytest.raises(StorageUnavailableError, match="No space left on device"):
        open_state(url)


def test_a_counter_of_requests_on_a_full_disk_says_so(small_disk: Path) -> None:
    fill(small_disk / "ballast")
    with pytest.raises(StorageUnavailableError, match="counters of requests"):
        RateWindows(small_disk / "rates.sqlite")


def test_a_start_without_room_for_temporary_files_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    command = ["serve", "--port", "0", "--workers", "2", "--engine", "hashing"]
    command += ["--home", str(tmp_path / "home")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: Cannot make a temporary folder: ")


def test_an_upload_that_cannot_be_kept_is_refused(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    upload = UploadedFile()
    with pytest.raises(StorageUnavailableError, match="No space left on device"):
        upload.write(bytes(4 * 1024**2))
    upload.close()


@pytest.mark.slow
def test_a_real_disk_without_room_tears_nothing(small_disk: Path) -> None:
    home, ballast = small_disk / "home", small_disk / "ballast"
    _, secret = open_account(home)
    with serve_process(home, **PRICED) as process:
        process.start()
        caller = Caller(process, secret)
        with caller.http:
            kept = caller.decide("kept")
            answers = {"kept": kept.content}
            for round_ in range(3):
                fill(ballast)
                refused = None
                for number in range(50):
                    key = f"{round_}-{number}"
                    response = caller.decide(key)
                    if response.status_code != 200:
                        refused = response
                        break
                    answers[key] = response.content
                assert refused is not None
                error = refused.json()["error"]
                if error["code"] == "storage_unavailable":
                    assert "full" in error["message"]
                else:
                    assert error["code"] == "request_in_progress"
                rows = {"name": f"n{round_}", "evaluation": make_rows(50)}
                unwritten = caller.http.post("/v1/datasets", json=rows)
                assert_refused(unwritten)
                assert "No space left on device" in unwritten.json()["error"]["message"]
                assert caller.http.post("/v1/playground/decide", json=REQUEST).status_code == 200
                ballast.unlink()
                answers[key] = caller.decide(key).content
            for key, content in answers.items():
                replayed = caller.decide(key)
                assert (replayed.status_code, replayed.content) == (200, content)
            assert caller.wallet()["reserved_usd"] == "0"
        process.stop()
    books = audit(process.state)
    assert (books.count("pending"), books.count("succeeded")) == (0, len(answers))


#: More than fits into the pages that the database has.
LONG = "paid twice " * 20_000


def fill_up_during(server: FaultyServer) -> Callable[[Scored], Scored]:
    """Bound the database's length from the scoring on, until the first write has failed."""

    def behave(scored: Scored) -> Scored:
        server.services.state.write_now(
            lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 1").close()
        )
        server.engines[FIRST].behave = None
        return scored

    return behave


@pytest.mark.parametrize(
    ("key", "code", "retryable"),
    [("k", "request_in_progress", True), (None, "outcome_unknown", False)],
)
def test_a_disk_that_fills_up_before_the_end_of_an_operation_leaves_it_free(
    key: str | None, code: str, retryable: bool
) -> None:
    with faulty_server() as server:
        server.engines[FIRST].behave = fill_up_during(server)
        told = server.ask(key, context=LONG)
        assert_canonical_error(told, 409, code, retryable=retryable)
        if key is not None:
            assert told.headers["Idempotency-Status"] == "pending"
        answered = server.ask(key, context=LONG)
        assert answered.status_code == 200
        assert "Idempotency-Replayed" not in answered.headers
        wallet = server.wallet()
        assert wallet["reserved_usd"] == "0"
        assert wallet["balance_usd"] == f"-{answered.json()['charge']['amount_usd']}"
