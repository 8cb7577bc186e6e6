"""A room hands over one value, and everything that walks rooms has its parts."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Column, Table, Text, inspect

from steelyard.app import rooms
from steelyard.app.bootstrap import open_service
from steelyard.app.job_runtime import open_worker
from steelyard.app.stored_files import named_in
from steelyard.datasets.service import DatasetService
from steelyard.errors import error_classes, errors_of, requests
from steelyard.house import House
from steelyard.http.openapi import build_document
from steelyard.http.routing import Access, Route
from steelyard.model_use import ModelUse
from steelyard.outbox.names import EVENTS
from steelyard.room import JobKind, Room, files_of
from steelyard.settings import read_settings
from steelyard.storage.tables import metadata
from support.tree.recorded_tables import tables_made
from support.tree.repository import PACKAGE, ROOT, python_files
from support.waiting import wait_until


def stood_on(name: str) -> bool:
    """Whether a room stands on another."""
    return any(name in room.after for room in rooms.ROOMS)


def test_the_value_of_a_room_fits_on_a_page():
    lengths = {path: len(path.read_text().splitlines()) for path in PACKAGE.glob("*/room.py")}
    assert {path: n for path, n in lengths.items() if n >= 80} == {}


@pytest.mark.parametrize("room", rooms.ROOMS, ids=lambda room: room.name)
def test_paths_begin_with_a_noun_of_their_room(room):
    nouns = {room.name, *room.nouns}
    assert {route.path.removeprefix("/v1/").split("/")[0] for route in room.routes} <= nouns


def test_every_error_and_event_is_of_one_room():
    room_errors = [error for room in rooms.ROOMS for error in room.errors]
    assert len(room_errors) == len(set(room_errors))
    codes = {error.code for error in (*room_errors, *errors_of(requests))}
    assert codes == error_classes().keys()
    events = [event for room in rooms.ROOMS for event in room.events]
    assert sorted([*events, "job.succeeded", "job.failed", "balance.low"]) == sorted(EVENTS)


def test_the_guide_lists_the_rooms(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import guide

    text = guide.GUIDE.read_text(encoding="utf-8")
    assert guide.guide_text(text, rooms.ROOMS) == text, "run: scripts/fix"


#: Rooms that no other stands on.
LEAVES = [
    room.name for room in rooms.ROOMS if room.open and room.routes and not stood_on(room.name)
]


def files_naming(name: str) -> list[Path]:
    """Return the files that import a room or its errors, without its own, clients and commands.

    Clients and commands are rooms of their own, which carry the same nouns.
    """
    imports = re.compile(
        rf"(?:from|import) steelyard\.(?:errors\.)?{name}\b|errors import {name}\b"
    )
    return [
        path
        for path in python_files(PACKAGE)
        if path.relative_to(PACKAGE).parts[0] not in {name, "cli", "client"}
        and imports.search(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("name", LEAVES)
def test_a_room_is_named_in_few_files_outside_of_its_own(name):
    naming = files_naming(name)
    assert PACKAGE / "app" / "rooms.py" in naming
    assert len(naming) <= 4, naming


class TreeFallenError:
    """A tree lies on the ground. It is no class of errors, so that no other test meets it."""

    code, status = "tree_fallen", 409


class Forester:
    """The service of a made-up room."""

    def __init__(self, datasets: DatasetService) -> None:
        self.datasets = datasets


def test_a_service_that_no_room_opened_is_named_when_the_process_starts():
    def open_room(house: House, forester: Forester) -> tuple[Forester]:
        return (forester,)

    house = House(settings=None, state=None, frames=None, closing=None)
    with pytest.raises(LookupError, match="needs Forester; name the room"):
        house.open(open_room)
    forester = Forester(None)
    house.add(forester)
    assert house.open(open_room) == (forester,)


def test_a_made_up_room_is_found_wherever_rooms_are_walked(tmp_path, monkeypatch):
    opened = []
    work = SimpleNamespace(name="felling", pending=lambda connection: [])
    use = ModelUse(id="fell_1", adapter="ft-1")

    def open_work(house: House) -> SimpleNamespace:
        opened.append(("work", house.settings.engine))
        return work

    def open_base(datasets: DatasetService) -> tuple[DatasetService]:
        return (datasets,)

    def open_room(datasets: DatasetService) -> tuple[Forester]:
        return (Forester(datasets),)

    def sweep(house: House) -> None:
        opened.append(("sweep", house.frames("trees").contents()))

    route = Route(
        method="GET",
        path="/v1/trees",
        use=None,
        summary="List trees.",
        access=Access.PUBLIC,
        tags=("trees",),
    )
    trees = Room(
        name="trees",
        after=("datasets",),
        errors=(TreeFallenError,),
        events=("tree.fallen",),
        routes=(route,),
        base=open_base,
        open=open_room,
        jobs=(JobKind(open_work, None, lambda connection: True, lambda *_: (use,)),),
        files=(files_of("trees", "a tree", lambda connection: {"ab" * 32}),),
        sweeps=(sweep,),
    )
    table = Table("trees", metadata, Column("id", Text, primary_key=True))
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import guide
    import layers

    monkeypatch.setattr(rooms, "ROOMS", (trees, *rooms.ROOMS))
    monkeypatch.setattr(layers, "ROOMS", rooms.ROOMS)
    [layer] = [layer for layer in layers.layers() if "trees" in layer.split(" | ")]
    assert layers.layers().index(layer) < layers.layers().index("datasets")
    text = guide.guide_text(guide.GUIDE.read_text(encoding="utf-8"), rooms.ROOMS)
    assert "| 409 | `tree_fallen` | A tree lies on the ground |\n| 410 |" in text
    assert " and `tree.fallen`." in " ".join(text.split())
    assert "\n- `GET /v1/trees`: List trees.\n" in text.split("## Further routes")[1]
    settings = read_settings({"engine": "hashing", "home": tmp_path, "jobs": "off"}, environ={})
    with ExitStack() as closing:
        closing.callback(metadata.remove, table)
        closing.enter_context(tables_made())
        services = closing.enter_context(open_service(settings))
        state = services.state
        assert services.get(Forester).datasets is services.get(DatasetService)
        runtime = closing.enter_context(open_worker(settings))
        assert runtime.work["felling"] is work
        assert state.read_now(rooms.has_jobs)
        assert use in state.read_now(lambda connection: [*rooms.model_uses(connection, "local")])
        assert state.read_now(lambda connection: inspect(connection).has_table("trees"))
        assert [(one.room, one.needed_by) for one in state.read_now(named_in)] == [
            ("trees", "a tree")
        ]
        wait_until(lambda: len(opened) == 2)
    assert sorted(opened) == [("sweep", {}), ("work", "hashing")]
    assert "/v1/trees" in build_document(rooms.routes())["paths"]
