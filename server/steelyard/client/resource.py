"""The bases of a client's parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from steelyard.client.calls import Call
from steelyard.client.methods import HasCalls, Mode, answers, settle
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import Following, Job_, Looking, part_of
from steelyard.wire.jobs import JobNoun

_Answer = TypeVar("_Answer")


class Resource(HasCalls[Mode]):
    """The calls of a client about one subject."""

    def __init__(self, client: HasCalls[Mode]) -> None:
        super().__init__(client)
        self.is_blocking = client.is_blocking

    async def _until(
        self,
        call: Call[_Answer],
        is_over: Callable[[_Answer], bool],
        looking: Looking,
        poll_s: float,
    ) -> _Answer:
        """Look again and again, over failures that may pass, and return the answer that ends it."""
        while True:
            with looking:
                answer = await self.answer_to(call)
            if not looking.is_silent and is_over(answer):
                return answer
            await settle(self._client.pause(poll_s))


class JobResource(Resource[Mode], Generic[Mode, Job_]):
    """The calls of a client about one kind of job."""

    #: Set by each kind.
    noun: ClassVar[JobNoun]
    look: Callable[[str], Call[Job_]]

    @answers
    async def wait(
        self,
        job: str | Job_,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> Job_:
        """Wait until a job has ended, and return it; a restart of the server ends no wait.

        One of labeling is waited for until its labels are ready. ``timeout_s`` is without end when
        left out, though a server that was gone for a minute is an error. ``poll_s`` is the seconds
        between two looks.

        Raises
        ------
        steelyard.client.NoAnswerInTimeError
            When it has not ended in time; it goes on.
        """
        job_id = job if isinstance(job, str) else job.id
        kind = part_of(self._client, self, job_id)
        looking = Looking(timeout_s, was_answered=not isinstance(job, str))
        with progress_bar(kind.noun.title, is_shown=progress) as show:
            following: Following[Job_] = Following(kind.noun, show, timeout_s)
            return await self._until(kind.look(job_id), following.has_ended, looking, poll_s)
