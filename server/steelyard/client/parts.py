"""The parts of a client whose methods are its calls: ``client.models``, ``client.jobs`` and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.client import (
    alarm_calls,
    console_calls,
    decide_calls,
    draft_calls,
    evaluation_calls,
    export_calls,
    family_calls,
    job_calls,
    judge_calls,
    prompt_tuning_calls,
    route_calls,
    webhook_calls,
)
from steelyard.client.methods import Mode, answers, collects, method, pages, saves
from steelyard.client.model_choices import ModelChoice, list_choices
from steelyard.client.progress import progress_bar
from steelyard.client.resource import JobResource, Resource
from steelyard.client.waiting import Looking, ServingWait, part_of
from steelyard.evaluations.wire import EVALUATION, Evaluation
from steelyard.families.fine_tune_wire import FINE_TUNE, Job
from steelyard.families.wire import Family
from steelyard.models.setup_wire import SETUP, ModelSetup
from steelyard.prompt_tuning.wire import PROMPT_TUNING, PromptTuningJob


class ModelResource(Resource[Mode]):
    """The models that a client's account can ask: ``client.models``."""

    list = method(decide_calls.list_models)
    get = method(decide_calls.get_model)

    @answers
    async def choices(self) -> Sequence[ModelChoice]:
        """Return every name that can be asked: families first, each with why it cannot answer now.

        Then base and connected models and routes, and the numbers of families last.
        """
        models = await self.answer_to(decide_calls.list_models())
        families = await self.answer_to(family_calls.list_families())
        return list_choices(models, families)

    ready = method(decide_calls.get_model_ready)
    switch = method(family_calls.switch_model)
    keep_warm = method(family_calls.keep_model_warm)
    delete = method(family_calls.delete_model)
    routes = method(route_calls.routes)
    fit_route = method(route_calls.fit_route)
    remove_route = method(route_calls.remove_route)


class AccountResource(Resource[Mode]):
    """The account of a client's key: ``client.account``."""

    get = method(decide_calls.get_account)
    billing = method(decide_calls.get_billing)
    purchases = pages(decide_calls.list_purchases)
    transactions = pages(decide_calls.list_transactions)
    usage = method(console_calls.usage)
    keys = pages(decide_calls.list_account_keys)
    create_key = method(console_calls.create_key)
    change_key = method(console_calls.change_key)
    revoke_key = method(console_calls.revoke_key)
    sessions = method(console_calls.sessions)
    end_session = method(console_calls.end_session)
    end_other_sessions = method(console_calls.end_other_sessions)
    rename = method(console_calls.rename_account)
    limit_storing = method(console_calls.limit_storing)
    delete = method(console_calls.delete_account)
    restore = method(console_calls.restore_account)
    audit = pages(console_calls.audit_page)
    export_to = saves(export_calls.save_account)


class AuthResource(Resource[Mode]):
    """Signing in with a code that comes by mail, a passkey, or an identity provider: ``client.auth``.

    Of a client whose ``ClientOptions`` have ``session=""``, or the token of a session.
    """

    ways = method(console_calls.ways)
    start = method(console_calls.start)
    verify = method(console_calls.verify)
    start_oidc = method(console_calls.start_oidc)
    verify_oidc = method(console_calls.verify_oidc)
    start_passkey = method(console_calls.start_passkey)
    verify_passkey = method(console_calls.verify_passkey)
    passkeys = method(console_calls.passkeys)
    start_adding_passkey = method(console_calls.start_adding_passkey)
    add_passkey = method(console_calls.add_passkey)
    remove_passkey = method(console_calls.remove_passkey)
    session = method(console_calls.session)
    sign_out = method(console_calls.sign_out)


class MemberResource(Resource[Mode]):
    """The members of an account and who is invited: ``client.members``."""

    list = method(console_calls.list_members)
    invite = method(console_calls.invite)
    change = method(console_calls.change_member)
    remove = method(console_calls.remove_member)


class OperatorResource(Resource[Mode]):
    """Every account, payments to look into, connected models and backups: ``client.operator``."""

    accounts = pages(console_calls.accounts_page)
    add_credit = method(console_calls.add_credit)
    confirm_purchase = method(console_calls.confirm_purchase)
    notices = method(console_calls.notices)
    clear_notice = method(console_calls.clear_notice)
    models = method(console_calls.connected_models)
    backups = method(console_calls.backups)
    back_up = method(console_calls.back_up)


class BillingResource(Resource[Mode]):
    """An account's balances, purchases, top-ups and referrals: ``client.billing``."""

    get = method(decide_calls.get_billing)
    purchase = method(console_calls.purchase)
    buy = method(console_calls.buy)
    purchases = pages(decide_calls.list_purchases)
    receipt = method(console_calls.receipt)
    transactions = pages(decide_calls.list_transactions)
    transactions_csv = method(console_calls.transactions_csv)
    set_top_up = method(console_calls.set_top_up)
    end_top_up = method(console_calls.end_top_up)
    referral = method(console_calls.referral)
    redeem = method(console_calls.redeem)


class DraftResource(Resource[Mode]):
    """Reviews of versions, which become datasets or versions when sealed: ``client.drafts``."""

    create = method(draft_calls.create)
    list = method(draft_calls.list_drafts)
    get = method(draft_calls.get)
    delete = method(draft_calls.delete)
    edit = method(draft_calls.edit)
    bulk = method(draft_calls.bulk)
    outcomes = method(draft_calls.outcomes)
    edit_outcomes = method(draft_calls.edit_outcomes)
    undo = method(draft_calls.undo)
    redo = method(draft_calls.redo)
    history = method(draft_calls.history)
    rows = method(draft_calls.rows)
    assign = method(draft_calls.assign)
    assignments = method(draft_calls.assignments)
    move_assigned = method(draft_calls.move_assigned)
    answer = method(draft_calls.answer)
    import_answers = method(draft_calls.import_answers)
    agreement = method(draft_calls.agreement)
    people_agreement = method(draft_calls.people_agreement)
    seal = method(draft_calls.seal)


class JudgeResource(JobResource[Mode, ModelSetup]):
    """Set up judges and readers, by jobs that ``list`` follows: ``client.judges``."""

    noun = SETUP
    look = staticmethod(judge_calls.get_setup)
    list = method(judge_calls.list_judges)
    download = method(judge_calls.download)
    stop = method(judge_calls.stop)
    connect = method(judge_calls.connect)
    disconnect = method(judge_calls.disconnect)
    think = method(judge_calls.think)
    check = method(judge_calls.check)
    calibrate = method(judge_calls.calibrate)
    qualifications = method(judge_calls.qualifications)
    qualify = method(judge_calls.qualify)
    use_in_route = method(judge_calls.use_in_route)


class EvaluationResource(JobResource[Mode, Evaluation]):
    """Models scored on the evaluation rows of datasets: ``client.evaluations``."""

    noun = EVALUATION
    look = staticmethod(evaluation_calls.get)
    list = pages(evaluation_calls.page)
    create = method(evaluation_calls.create)
    get = method(evaluation_calls.get)
    cancel = method(evaluation_calls.cancel)
    retry = method(evaluation_calls.retry)
    detail = method(evaluation_calls.detail)
    records = collects(evaluation_calls.records)
    records_page = method(evaluation_calls.records_page)
    export = method(evaluation_calls.export_records)
    export_to = saves(export_calls.save_records)
    compare = method(evaluation_calls.compare)
    frontier = method(evaluation_calls.frontier)
    try_policy = method(evaluation_calls.try_policy)
    cost_curve = method(evaluation_calls.cost_curve)
    outcome_threshold = method(evaluation_calls.outcome_threshold)


class FamilyResource(Resource[Mode]):
    """Lineages of models by name, each grown on one dataset: ``client.families``."""

    create = method(family_calls.create)
    estimate = method(family_calls.estimate)
    list = method(family_calls.list_families)
    get = method(family_calls.get)
    switch = method(family_calls.switch)
    keep_warm = method(family_calls.keep_warm)
    bound = method(family_calls.bound)
    remove_bound = method(family_calls.remove_bound)
    abstain_on_novel = method(family_calls.abstain_on_novel)
    answer_novel = method(family_calls.answer_novel)
    roll_back = method(family_calls.roll_back)
    continue_ = method(family_calls.continue_)
    estimate_continue = method(family_calls.estimate_continue)
    check_continue = method(family_calls.check_continue)
    delete = method(family_calls.delete)
    shadow = method(family_calls.shadow)
    end_shadow = method(family_calls.end_shadow)
    compare_shadow = method(family_calls.compare_shadow)

    @answers
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

        ``model`` is a model's number or adapter id, or the fine-tune that made it. Without a
        ``timeout_s`` the wait has no end.

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
            return await self._until(family_calls.get(family), wait.is_over, looking, poll_s)


class JobsResource(JobResource[Mode, Any]):
    """Jobs of all kinds, and the calls of fine-tunes alone: ``client.jobs``.

    A fine-tune that succeeded need not have made a model: look at ``outcome`` and ``gate``.
    """

    noun = FINE_TUNE
    look = staticmethod(job_calls.get)
    all = pages(job_calls.all_page)
    list = pages(job_calls.page)
    events = method(job_calls.events)
    records = collects(job_calls.records)

    @answers
    async def get(self, job_id: str) -> Any:
        """Return a job of any kind, in its own form."""
        return await self.answer_to(part_of(self._client, self, job_id).look(job_id))

    @answers
    async def cancel(self, job_id: str, *, idempotency_key: str | None = None) -> Any:
        """Ask a job of any kind to stop; an ended one stays as it is."""
        call = part_of(self._client, self, job_id).look(job_id)
        return await self.answer_to(job_calls.cancel(call, idempotency_key))


class PromptTuningResource(JobResource[Mode, PromptTuningJob]):
    """A decision's wording rewritten, and the rewrite proved: ``client.prompt_tuning``."""

    noun = PROMPT_TUNING
    look = staticmethod(prompt_tuning_calls.get)
    list = pages(prompt_tuning_calls.page)
    create = method(prompt_tuning_calls.create)
    get = method(prompt_tuning_calls.get)
    dismiss_label_issues = method(prompt_tuning_calls.dismiss_label_issues)
    cancel = method(prompt_tuning_calls.cancel)


class AlarmResource(Resource[Mode]):
    """Watched metrics of an account's models, and their alarms: ``client.alarms``."""

    list = pages(alarm_calls.page)
    get = method(alarm_calls.get)
    acknowledge = method(alarm_calls.acknowledge)
    rules = method(alarm_calls.rules)
    set_rule = method(alarm_calls.set_rule)
    check_golden = method(alarm_calls.check_golden)
    remove_rule = method(alarm_calls.remove_rule)


class WebhookResource(Resource[Mode]):
    """An account's events, delivered to endpoints of other programs: ``client.webhooks``."""

    list = pages(webhook_calls.page)
    create = method(webhook_calls.create)
    get = method(webhook_calls.get)
    change = method(webhook_calls.change)
    delete = method(webhook_calls.delete)
    deliveries = pages(webhook_calls.deliveries_page)
    redeliver = method(webhook_calls.redeliver)
    test = method(webhook_calls.send_test)
