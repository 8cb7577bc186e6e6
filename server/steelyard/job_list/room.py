"""The room of the list of all jobs."""

from __future__ import annotations

from steelyard.house import House
from steelyard.job_list.routes import ROUTES
from steelyard.job_list.service import AllJobs
from steelyard.room import Room


def _open(house: House) -> tuple[object, ...]:
    return (AllJobs(house),)


ROOM = Room(name="job_list", after=("datasets",), nouns=("jobs",), routes=ROUTES, open=_open)
