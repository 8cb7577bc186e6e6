"""``client.families``, blocking and to be awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from steelyard.client import family_calls as calls
from steelyard.client.calls import Call
from steelyard.client.family_answers import FamilyAnswer
from steelyard.client.methods import async_method, blocking_method
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import Looking, ServingWait, look_until, look_until_async
from steelyard.wire.fine_tuning import Job

if TYPE_CHECKING:
    from steelyard.client.asynchronous import AsyncClient
    from steelyard.client.blocking import Client

_Answer = TypeVar("_Answer")


class Families:
    """Lines of models by name, each grown on one dataset: ``client.families``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    create = blocking_method(calls.create)
    estimate = blocking_method(calls.estimate)
    list = blocking_method(calls.list_families)
    get = blocking_method(calls.get)
    switch = blocking_method(calls.switch)
    keep_warm = blocking_method(calls.keep_warm)
    roll_back = blocking_method(calls.roll_back)
    continue_ = blocking_method(calls.continue_)
    estimate_continue = blocking_method(calls.estimate_continue)
    delete = blocking_method(calls.delete)

    def wait(
        self,
        family: str,
        model: str | Job,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> FamilyAnswer:
        """Wait until a family serves a model, and give the family.

        Parameters
        ----------
        family : str
            Its name.
        model : str or Job
            A model's number or adapter id, or the fine-tune that made it.
        timeout_s : float, optional
            Seconds to wait at most; without end when left out.
        poll_s : float, default 0.5
            Seconds between two looks.
        progress : bool, default True
            Whether to show a bar, in a notebook or on a terminal.

        Raises
        ------
        steelyard.errors.FamilyOffError
            When the family is off, so that it never moves.
        steelyard.errors.NotFoundError
            When the model is none of the family's.
        steelyard.errors.ModelDeletedError, steelyard.errors.ModelDiscardedError
            When the model is gone.
        steelyard.errors.FamilyChangedError
            When a newer model has joined: a family moves to its latest alone.
        steelyard.client.NoAnswerInTimeError
            When it does not serve it in time; it goes on.
        ValueError
            When the fine-tune made no model.
        """
        with progress_bar(family, is_shown=progress) as show:
            wait = ServingWait(model, show, timeout_s)
            looking = Looking(timeout_s, was_answered=not isinstance(model, str))
            return look_until(lambda: self.get(family), wait.is_over, looking, poll_s)

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return self._client.send(call)


class AsyncFamilies:
    """Lines of models by name, each grown on one dataset: ``client.families``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    create = async_method(calls.create)
    estimate = async_method(calls.estimate)
    list = async_method(calls.list_families)
    get = async_method(calls.get)
    switch = async_method(calls.switch)
    keep_warm = async_method(calls.keep_warm)
    roll_back = async_method(calls.roll_back)
    continue_ = async_method(calls.continue_)
    estimate_continue = async_method(calls.estimate_continue)
    delete = async_method(calls.delete)

    async def wait(
        self,
        family: str,
        model: str | Job,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> FamilyAnswer:
        """Wait until a family serves a model, and give the family; as the blocking client's."""
        with progress_bar(family, is_shown=progress) as show:
            wait = ServingWait(model, show, timeout_s)
            looking = Looking(timeout_s, was_answered=not isinstance(model, str))
            return await look_until_async(lambda: self.get(family), wait.is_over, looking, poll_s)

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)
