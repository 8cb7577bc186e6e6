"""``client.families``."""

from __future__ import annotations

from steelyard.client import family_calls as calls
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import Looking, ServingWait
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import Family


class AsyncFamilies(AsyncResource):
    """Lineages of models by name, each grown on one dataset: ``client.families``."""

    create = _method(calls.create)
    estimate = _method(calls.estimate)
    list = _method(calls.list_families)
    get = _method(calls.get)
    switch = _method(calls.switch)
    keep_warm = _method(calls.keep_warm)
    bound = _method(calls.bound)
    remove_bound = _method(calls.remove_bound)
    abstain_on_novel = _method(calls.abstain_on_novel)
    answer_novel = _method(calls.answer_novel)
    roll_back = _method(calls.roll_back)
    continue_ = _method(calls.continue_)
    estimate_continue = _method(calls.estimate_continue)
    check_continue = _method(calls.check_continue)
    delete = _method(calls.delete)
    shadow = _method(calls.shadow)
    end_shadow = _method(calls.end_shadow)
    compare_shadow = _method(calls.compare_shadow)

    async def wait(
        self,
        family: str,
        model: str | Job,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> Family:
        """Wait until a family serves a model, and return the family.

        Parameters
        ----------
        model : str or Job
            A model's number or adapter id, or the fine-tune that made it.
        timeout_s : float, optional
            Without end when left out.

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
            return await self._until(calls.get(family), wait.is_over, looking, poll_s)
