"""The room of stored decisions."""

from __future__ import annotations

from functools import partial

from steelyard.accounts.store_owner import sweep_owned
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.archive import store
from steelyard.decision_log.archive.files import ArchiveFiles
from steelyard.decision_log.archive.service import Archiving
from steelyard.decision_log.feedback import FeedbackService
from steelyard.decision_log.routes import FEEDBACK_ROUTES, ROUTES
from steelyard.decision_log.service import DecisionLog
from steelyard.decision_log.store import record_answer
from steelyard.decision_log.tables import feedback
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.room import JobKind, Room, files_of, no_models
from steelyard.serving.service import DecisionService


def _open(house: House, decisions: DecisionService) -> tuple[object, ...]:
    retention_days = house.settings.retention_days
    answers = StoredAnswers(ArchiveFiles(house.frames("decision_log")))
    log = DecisionLog(house.state, retention_days=retention_days, answers=answers)
    decisions.register_record(record_answer)
    find = log.find_archived
    return (
        answers,
        log,
        FeedbackService(house.writes, retention_days=retention_days, find_archived=find),
    )


def _open_runs(house: House) -> Work:
    from steelyard.decision_log.archive.run import ArchiveRuns

    return ArchiveRuns(
        house.state,
        ArchiveFiles(house.frames("decision_log")),
        referring_columns=house.decisions,
        sweep_files=partial(_sweep, house),
    )


def _archive(house: House) -> None:
    settings = house.settings
    after_days = settings.archive_after_days
    archiving = Archiving(
        house.state,
        # A file never changes: a day moves once its texts are gone.
        after_days=after_days and max(after_days, settings.text_days),
        retention_days=settings.retention_days,
    )
    archiving.tick()


def _sweep(house: House) -> None:
    sweep_owned(house.state, house.frames("decision_log"), store.live_files)


ROOM = Room(
    name="decision_log",
    after=("exports", "serving"),
    nouns=("decisions",),
    routes=ROUTES,
    open=_open,
    jobs=(JobKind(_open_runs, None, store.has_unfinished, no_models),),
    files=(files_of("decision_log", "the log of decisions", store.live_files),),
    sweeps=(_archive, _sweep),
    decisions=(feedback.c.decision_id,),
)

#: What really happened; documents show it beside the decide call.
FEEDBACK = Room(name="feedback", routes=FEEDBACK_ROUTES)
