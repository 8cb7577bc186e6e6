"""A room hands over one value, and everything that walks rooms has what is in it."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from steelyard.app import rooms
from steelyard.app.bootstrap import open_service
from steelyard.app.job_runtime import open_worker
from steelyard.app.stored_files import named_in
from steelyard.http.openapi import build_document
from steelyard.http.routing import Access, Route
from steelyard.room import House, JobKind, Room, files_of
from steelyard.settings import read_settings


@pytest.mark.parametrize("room", rooms.ROOMS, ids=lambda room: room.name)
def test_paths_begin_with_a_noun_of_their_room(room):
    nouns = {room.name, *room.nouns}
    assert {route.path.removeprefix("/v1/").split("/")[0] for route in room.routes} <= nouns


def test_a_made_up_room_is_found_wherever_rooms_are_walked(tmp_path, monkeypatch):
    opened = []
    work = SimpleNamespace(name="felling", pending=lambda connection: [])

    def open_work(house: House) -> SimpleNamespace:
        opened.append(("work", house.settings.engine))
        return work

    def open_sweep(house: House):
        opened.append(("sweep", house.frames("trees").contents()))
        return lambda: None

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
        routes=(route,),
        jobs=(JobKind(lambda connection: True, open_work),),
        files=(files_of("trees", "a tree", lambda connection: {"ab" * 32}),),
        sweeps=(open_sweep,),
    )
    monkeypatch.setattr(rooms, "ROOMS", (*rooms.ROOMS, trees))
    settings = read_settings({"engine": "hashing", "home": tmp_path, "jobs": "off"}, environ={})
    with ExitStack() as closing:
        state = closing.enter_context(open_service(settings)).state
        runtime = closing.enter_context(open_worker(settings))
        assert runtime.work["felling"] is work
        assert state.read_now(rooms.has_jobs)
        assert [(one.room, one.needed_by) for one in state.read_now(named_in)] == [
            ("trees", "a tree")
        ]
    assert opened == [("sweep", {}), ("work", "hashing")]
    assert "/v1/trees" in build_document(rooms.routes())["paths"]
