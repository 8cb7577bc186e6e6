"""The state: group commit, isolation of writes, and the errors that callers see when it fails."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import (
    Connection,
    Engine,
    bindparam,
    create_engine,
    event,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from steelyard.errors import (
    DataDamagedError,
    InvalidRequestError,
    KeyScopeError,
    StorageUnavailableError,
)
from steelyard.settings import InvalidSettingError
from steelyard.storage import State, open_state
from steelyard.storage.statements import Statement
from steelyard.storage.tables import accounts
from support.waiting import next_turn


def add(name: str):
    def work(connection: Connection) -> str:
        connection.execute(insert(accounts), {"id": name, "name": name, "created_at": 1.0})
        return name

    return work


def add_then_fail(name: str, error: Exception):
    def work(connection: Connection) -> None:
        add(name)(connection)
        raise error

    return work


def names(state: State) -> set[str]:
    rows = state.read_now(lambda connection: connection.execute(select(accounts.c.name)).all())
    return {row.name for row in rows} - {"local"}


def blocked(state: State) -> threading.Event:
    """Hold the writer until the event is set, so that the writes after share a transaction."""
    entered, may_go_on = threading.Event(), threading.Event()

    def work(connection: Connection) -> None:
        entered.set()
        assert may_go_on.wait(60)

    state.submit(work)
    assert entered.wait(60)
    return may_go_on


def test_what_was_written_is_read(state: State):
    assert state.write_now(add("a")) == "a"
    assert asyncio.run(state.write(add("b"))) == "b"
    assert names(state) == {"a", "b"}

    async def count() -> int:
        return await state.read(
            lambda connection: connection.execute(
                select(func.count()).select_from(accounts)
            ).scalar_one()
        )

    assert asyncio.run(count()) == 3


def test_a_failed_write_undoes_its_own_rows_and_no_others(state: State):
    go_on = blocked(state)
    error = KeyScopeError("no")
    futures = [
        state.submit(work)
        for work in (add("a"), add_then_fail("b", error), add("c"), add("a"), add("d"))
    ]
    go_on.set()
    assert futures[0].result() == "a"
    assert futures[1].exception() is error
    assert futures[2].result() == "c"
    assert isinstance(futures[3].exception(), IntegrityError)
    assert futures[4].result() == "d"
    assert names(state) == {"a", "c", "d"}


def test_a_write_that_fails_alone_is_undone_and_the_next_goes_on(state: State):
    error = KeyScopeError("no")
    for _ in range(2):
        with pytest.raises(KeyScopeError) as caught:
            state.write_now(add_then_fail("b", error))
        assert caught.value is error
        with pytest.raises(IntegrityError):
            state.write_now(lambda connection: [add("c")(connection), add("c")(connection)])
    assert names(state) == set()
    assert state.write_now(add("a")) == "a"
    assert names(state) == {"a"}


def test_a_text_that_the_database_cannot_hold_is_the_callers_fault(state: State, state_url: str):
    with_nul = "a\x00b"
    if state_url.startswith("sqlite"):
        assert state.write_now(add(with_nul)) == with_nul
        return
    for work in (add(with_nul), lambda connection: find(connection, with_nul)):
        with pytest.raises(InvalidRequestError, match="NUL"):
            state.write_now(work)
    with pytest.raises(InvalidRequestError, match="NUL"):
        state.read_now(lambda connection: find(connection, with_nul))
    assert state.write_now(add("a")) == "a"
    assert names(state) == {"a"}


def find(connection: Connection, name: str) -> list[str]:
    return list(
        connection.execute(select(accounts.c.name).where(accounts.c.name == name)).scalars()
    )


def test_an_error_of_a_statement_hides_its_parameters(state: State):
    with pytest.raises(IntegrityError) as caught:
        state.write_now(lambda connection: [add("secret")(connection), add("secret")(connection)])
    told = str(caught.value).partition("[SQL")[2]
    assert "INSERT" in told
    assert "secret" not in told


def test_a_compiled_statement_writes_reads_and_fails_as_any_other(state: State):
    made = {"name": "b", "created_at": 1}
    add_account = Statement(insert(accounts), ("id", "name", "created_at"))
    find = Statement(
        select(accounts.c.name, accounts.c.created_at).where(
            accounts.c.id == bindparam("wanted"), accounts.c.deletes_at.is_(None)
        )
    )
    rename = Statement(
        update(accounts)
        .where(accounts.c.id == bindparam("wanted"), accounts.c.name == "b")
        .values(name=bindparam("now"))
    )

    def write(connection: Connection) -> list[int]:
        add_account.change_each(connection, [{"id": "a", **made, "name": "a"}, {"id": "b", **made}])
        renamed = {"wanted": "b", "now": "c"}
        return [rename.change(connection, renamed), rename.change(connection, renamed)]

    assert state.write_now(write) == [1, 0]
    row = state.read_now(lambda connection: find.first(connection, {"wanted": "b"}))
    assert tuple(row or ()) == ("c", 1.0)
    assert state.read_now(lambda connection: find.first(connection, {"wanted": "x"})) is None
    with pytest.raises(IntegrityError) as caught:
        state.write_now(
            lambda connection: add_account.change(connection, {"id": "secret", **made, "name": "a"})
        )
    assert "secret" not in str(caught.value)
    with pytest.raises(IntegrityError):
        state.write_now(
            lambda connection: add_account.change_each(connection, [{"id": "b", **made}])
        )
    assert names(state) == {"a", "c"}


def test_a_lookup_that_would_have_to_wait_is_left_to_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    state.write_now(add("a"))
    threads: list[str] = []

    def count(connection: Connection) -> int:
        threads.append(threading.current_thread().name)
        return connection.execute(select(func.count()).select_from(accounts)).scalar_one()

    missing = create_engine(f"sqlite:///{tmp_path / 'missing' / 'state.sqlite'}")
    with monkeypatch.context() as patch:
        patch.setattr(state, "_lookups", missing)
        n_accounts = asyncio.run(state.look_up(count))
    assert asyncio.run(state.look_up(count)) == n_accounts
    state.close()
    assert threads[0].startswith("steelyard-read")
    assert threads[1] == threading.current_thread().name


def test_only_durable_writes_are_synced(tmp_path: Path):
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")

    def level(connection: Connection) -> int:
        return connection.exec_driver_sql("PRAGMA synchronous").scalar_one()

    def fail(connection: Connection) -> None:
        raise ValueError

    normal, full = 1, 2
    assert state.write_now(level) == full
    assert state.submit(level, is_synced=False).result(60) == normal
    assert state.submit(level, is_synced=False).result(60) == normal
    assert state.write_now(level) == full
    may_go_on = blocked(state)
    together = [state.submit(level, is_synced=is_synced) for is_synced in (False, True, False)]
    with_one_that_fails = state.submit(fail)
    may_go_on.set()
    assert [one.result(60) for one in together] == [full] * 3
    assert isinstance(with_one_that_fails.exception(60), ValueError)
    state.close()


def test_a_lookup_sees_each_commit_at_once(state: State):
    def count(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(accounts)).scalar_one()

    async def look_up() -> list[int]:
        found = []
        for name in ("a", "b", "c"):
            await state.write(add(name))
            # As many as there are connections, each of which read before the next write.
            found.append(await asyncio.gather(*(state.look_up(count) for _ in range(8))))
            assert await state.read(count) == len(found) + 1
        return [one for seen in found for one in set(seen)]

    # The account "local" is there from the first.
    assert asyncio.run(look_up()) == [2, 3, 4]


def test_writes_that_wait_share_a_transaction(state: State):
    commits: list[Connection] = []

    def count(connection: Connection) -> None:
        commits.append(connection)

    go_on = blocked(state)
    event.listen(Engine, "commit", count)
    try:
        futures = [state.submit(add(str(index))) for index in range(100)]
        go_on.set()
        for future in futures:
            future.result()
    finally:
        event.remove(Engine, "commit", count)
    # One for the write that held the others up, and one for all of them; other states of this
    # process commit on connections of their own.
    assert commits.count(state.write_now(lambda connection: connection)) == 2
    assert len(names(state)) == 100


def test_a_write_given_up_before_its_turn_is_not_written(state: State):
    async def give_up() -> None:
        go_on = blocked(state)
        task = asyncio.create_task(state.write(add("given up")))
        await next_turn()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await state.write(add("after"))

    asyncio.run(give_up())
    assert names(state) == {"after"}


def test_close_finishes_queued_writes_and_refuses_the_rest(state: State, state_url: str):
    go_on = blocked(state)
    futures = [state.submit(add(str(index))) for index in range(5)]
    threading.Timer(0.05, go_on.set).start()
    state.close()
    state.close()
    assert [future.result() for future in futures] == list("01234")
    with pytest.raises(StorageUnavailableError, match="closed"):
        state.write_now(add("late"))
    with pytest.raises(StorageUnavailableError, match="closed"):
        names(state)
    again = open_state(state_url)
    assert names(again) == set("01234")
    again.close()


def test_many_writers_lose_nothing(state: State):
    async def write_all() -> list[str]:
        return await asyncio.gather(*(state.write(add(str(index))) for index in range(200)))

    assert asyncio.run(write_all()) == [str(index) for index in range(200)]
    assert len(names(state)) == 200


def test_two_openings_write_by_turns(state: State, state_url: str):
    other = open_state(state_url)
    try:
        futures = [
            opened.submit(add(f"{index} {number}"))
            for index in range(50)
            for number, opened in enumerate((state, other))
        ]
        for future in futures:
            future.result()
        assert names(state) == names(other)
        assert len(names(state)) == 100
    finally:
        other.close()


def test_an_opening_that_is_closed_leaves_the_locks_of_another(tmp_path: Path):
    file = tmp_path / "state.sqlite"
    state = open_state(f"sqlite:///{file}")
    try:
        state.write_now(add("before"))
        open_state(f"sqlite:///{file}").close()
        # Who closes the last connection removes the log, and without locks it takes itself for that.
        look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM accounts'); c.close()"
        subprocess.run([sys.executable, "-c", look, str(file)], check=True)
        state.write_now(add("after"))
        assert names(state) == {"before", "after"}
    finally:
        state.close()


def test_a_reader_writes_nothing(tmp_path: Path):
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    try:
        with pytest.raises(StorageUnavailableError):
            state.read_now(add("a"))
        assert names(state) == set()
    finally:
        state.close()


def test_a_full_disk_fails_the_batch_loses_nothing_and_passes(tmp_path: Path):
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")

    def fill(connection: Connection) -> None:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        connection.execute(text(f"PRAGMA max_page_count = {pages + 2}")).close()

    try:
        state.write_now(add("before"))
        state.write_now(fill)
        go_on = blocked(state)
        futures = [state.submit(add(f"{index}-" + "x" * 3000)) for index in range(20)]
        go_on.set()
        for future in futures:
            with pytest.raises(StorageUnavailableError, match="disk is full") as caught:
                future.result()
            assert caught.value.retryable
            assert str(tmp_path) not in str(caught.value)
        assert names(state) == {"before"}
        # The connection that met it was dropped, and the next one finds room.
        state.write_now(add("after"))
        assert names(state) == {"before", "after"}
    finally:
        state.close()
    with sqlite3.connect(tmp_path / "state.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


LOST = {
    "removed": lambda home: (home / "state.sqlite").rename(home / "kept"),
    "replaced": lambda home: replace_by_copy(home / "state.sqlite"),
    "with its folder": lambda home: home.rename(home.with_name("kept")),
    "its log": lambda home: (home / "state.sqlite-wal").unlink(),
}


def replace_by_copy(file: Path) -> None:
    copy = shutil.copy(file, file.with_name("copy"))
    Path(copy).replace(file)


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST.keys())
def test_writes_to_a_removed_file_fail(tmp_path: Path, monkeypatch, lose):
    monkeypatch.setattr("steelyard.storage.locks._HOLDS_S", -1.0)
    home = tmp_path / "home"
    state = open_state(f"sqlite:///{home / 'state.sqlite'}")
    is_log = lose is LOST["its log"]
    try:
        state.write_now(add("before"))
        lose(home)
        for name in ("first", "again")[: 1 if is_log else 2]:
            with pytest.raises(StorageUnavailableError, match="removed or replaced"):
                state.write_now(add(name))
        if not is_log:
            for read in (state.read_now, lambda work: asyncio.run(state.look_up(work))):
                with pytest.raises(StorageUnavailableError, match="removed or replaced"):
                    read(lambda connection: None)
    finally:
        state.close()
    if lose is LOST["removed"]:
        assert not (home / "state.sqlite").exists()


def test_a_lost_connection_is_made_anew(postgres):
    url = postgres.new_database()
    state = open_state(url)

    def cut(connection: Connection) -> None:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        ).all()

    try:
        state.write_now(add("a"))
        assert names(state) == {"a"}
        other = open_state(url)
        other.write_now(cut)
        other.close()
        assert names(state) == {"a"}
        state.write_now(add("b"))
        assert names(state) == {"a", "b"}
    finally:
        state.close()


def test_a_server_that_is_away_is_unavailable_until_it_is_back(postgres):
    state = open_state(postgres.new_database())
    try:
        state.write_now(add("a"))
        postgres.stop()
        try:
            with pytest.raises(StorageUnavailableError, match="cannot be used"):
                state.write_now(add("b"))
            with pytest.raises(StorageUnavailableError, match="cannot be used"):
                names(state)
        finally:
            postgres.start()
        state.write_now(add("c"))
        assert names(state) == {"a", "c"}
    finally:
        state.close()


def test_files_are_their_owners_alone(tmp_path: Path):
    state = open_state(f"sqlite:///{tmp_path / 'new' / 'home' / 'state.sqlite'}")
    try:
        state.write_now(add("a"))
        home = tmp_path / "new" / "home"
        assert home.stat().st_mode & 0o777 == 0o700
        files = [path for path in home.rglob("*") if path.is_file()]
        assert {"state.sqlite", "state.sqlite-wal", "turn"} <= {path.name for path in files}
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    finally:
        state.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "state.sqlite",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///state.sqlite?mode=ro",
        "mysql://root:secret@host/db",
        "postgresql+asyncpg://root:secret@host/db",
        "http://secret@host",
    ],
)
def test_a_url_of_no_such_database_is_refused_and_not_repeated(url: str):
    with pytest.raises(InvalidSettingError, match="state_url") as caught:
        open_state(url)
    assert "secret" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailableError, match="cannot be opened"):
        open_state(f"sqlite:///{tmp_path / 'file' / 'state.sqlite'}")


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path):
    path = tmp_path / "state.sqlite"
    path.write_text("precious words\n" * 1000)
    with pytest.raises(DataDamagedError):
        open_state(f"sqlite:///{path}")
    assert path.read_text() == "precious words\n" * 1000


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
from steelyard.storage import open_state
state = open_state(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        state.write_now(lambda connection: None)
    except RuntimeError as error:
        os._exit(7 if "forked" in str(error) else 1)
    os._exit(1)
_, status = os.waitpid(child, 0)
state.write_now(lambda connection: None)
state.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_may_not_use_its_parents_state(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'state.sqlite'}"
    done = subprocess.run([sys.executable, "-c", FORK, url], check=False, timeout=60)
    assert done.returncode == 7
