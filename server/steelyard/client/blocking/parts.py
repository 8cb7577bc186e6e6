"""The parts of a client whose methods are its calls: ``client.models``, ``client.jobs`` and others."""

# Made of asynchronous/parts.py by scripts/blocking_client.py: edit that one.

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
    view_calls,
    webhook_calls,
)
from steelyard.client.blocking.resource import (
    JobResource,
    Resource,
    collects,
    pages,
    saves,
)
from steelyard.client.calls import blocking_method as _method
from steelyard.client.model_choices import ModelChoice, list_choices
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import Looking, ServingWait, part_of
from steelyard.evaluations.wire import EVALUATION, Evaluation
from steelyard.families.fine_tune_wire import FINE_TUNE, Job
from steelyard.families.wire import Family
from steelyard.prompt_tuning.wire import PROMPT_TUNING, PromptTuningJob


class Models(Resource):
    """The models that a client's account can ask: ``client.models``."""

    list = _method(decide_calls.list_models)
    get = _method(decide_calls.get_model)

    def choices(self) -> Sequence[ModelChoice]:
        """Return every name that can be asked: families first, each with why it cannot answer now.

        Then base and connected models and routes, and the numbers of families last.
        """
        models = self._client.send(decide_calls.list_models())
        families = self._client.send(family_calls.list_families())
        return list_choices(models, families)

    ready = _method(decide_calls.get_model_ready)
    switch = _method(family_calls.switch_model)
    keep_warm = _method(family_calls.keep_model_warm)
    delete = _method(family_calls.delete_model)
    routes = _method(route_calls.routes)
    fit_route = _method(route_calls.fit_route)
    remove_route = _method(route_calls.remove_route)


class Account(Resource):
    """The account of a client's key: ``client.account``."""

    get = _method(decide_calls.get_account)
    billing = _method(decide_calls.get_billing)
    purchases = pages(decide_calls.list_purchases)
    transactions = pages(decide_calls.list_transactions)
    usage = _method(console_calls.usage)
    keys = pages(decide_calls.list_account_keys)
    create_key = _method(console_calls.create_key)
    change_key = _method(console_calls.change_key)
    revoke_key = _method(console_calls.revoke_key)
    sessions = _method(console_calls.sessions)
    end_session = _method(console_calls.end_session)
    end_other_sessions = _method(console_calls.end_other_sessions)
    rename = _method(console_calls.rename_account)
    delete = _method(console_calls.delete_account)
    restore = _method(console_calls.restore_account)
    audit = pages(console_calls.audit_page)
    export_to = saves(export_calls.save_account)


class Auth(Resource):
    """Signing in with a code that comes by mail, a passkey, or an identity provider: ``client.auth``.

    Of a client whose ``ClientOptions`` have ``session=""``, or the token of a session.
    """

    ways = _method(console_calls.ways)
    start = _method(console_calls.start)
    verify = _method(console_calls.verify)
    start_oidc = _method(console_calls.start_oidc)
    verify_oidc = _method(console_calls.verify_oidc)
    start_passkey = _method(console_calls.start_passkey)
    verify_passkey = _method(console_calls.verify_passkey)
    passkeys = _method(console_calls.passkeys)
    start_adding_passkey = _method(console_calls.start_adding_passkey)
    add_passkey = _method(console_calls.add_passkey)
    remove_passkey = _method(console_calls.remove_passkey)
    session = _method(console_calls.session)
    sign_out = _method(console_calls.sign_out)


class Members(Resource):
    """The members of an account and who is invited: ``client.members``."""

    list = _method(console_calls.list_members)
    invite = _method(console_calls.invite)
    change = _method(console_calls.change_member)
    remove = _method(console_calls.remove_member)


class Operator(Resource):
    """Every account, payments to look into, and connected models: ``client.operator``."""

    accounts = pages(console_calls.accounts_page)
    add_credit = _method(console_calls.add_credit)
    confirm_purchase = _method(console_calls.confirm_purchase)
    notices = _method(console_calls.notices)
    clear_notice = _method(console_calls.clear_notice)
    models = _method(console_calls.connected_models)


class Billing(Resource):
    """An account's balances, purchases, top-ups and referrals: ``client.billing``."""

    get = _method(decide_calls.get_billing)
    purchase = _method(console_calls.purchase)
    buy = _method(console_calls.buy)
    purchases = pages(decide_calls.list_purchases)
    receipt = _method(console_calls.receipt)
    transactions = pages(decide_calls.list_transactions)
    transactions_csv = _method(console_calls.transactions_csv)
    set_top_up = _method(console_calls.set_top_up)
    end_top_up = _method(console_calls.end_top_up)
    referral = _method(console_calls.referral)
    redeem = _method(console_calls.redeem)


class Drafts(Resource):
    """Reviews of versions, which become datasets or versions when sealed: ``client.drafts``."""

    create = _method(draft_calls.create)
    list = _method(draft_calls.list_drafts)
    get = _method(draft_calls.get)
    delete = _method(draft_calls.delete)
    edit = _method(draft_calls.edit)
    bulk = _method(draft_calls.bulk)
    outcomes = _method(draft_calls.outcomes)
    edit_outcomes = _method(draft_calls.edit_outcomes)
    undo = _method(draft_calls.undo)
    redo = _method(draft_calls.redo)
    history = _method(draft_calls.history)
    rows = _method(draft_calls.rows)
    assign = _method(draft_calls.assign)
    assignments = _method(draft_calls.assignments)
    move_assigned = _method(draft_calls.move_assigned)
    answer = _method(draft_calls.answer)
    import_answers = _method(draft_calls.import_answers)
    agreement = _method(draft_calls.agreement)
    seal = _method(draft_calls.seal)


class Judges(Resource):
    """Download, connect, check, calibrate and qualify judges and readers: ``client.judges``.

    Long work is begun; ``list`` gives its progress.
    """

    list = _method(judge_calls.list_judges)
    download = _method(judge_calls.download)
    stop = _method(judge_calls.stop)
    connect = _method(judge_calls.connect)
    check = _method(judge_calls.check)
    calibrate = _method(judge_calls.calibrate)
    qualifications = _method(judge_calls.qualifications)
    qualify = _method(judge_calls.qualify)
    use_in_route = _method(judge_calls.use_in_route)


class Evaluations(JobResource[Evaluation]):
    """Models scored on the evaluation rows of datasets: ``client.evaluations``."""

    noun = EVALUATION
    look = staticmethod(evaluation_calls.get)
    list = pages(evaluation_calls.page)
    create = _method(evaluation_calls.create)
    get = _method(evaluation_calls.get)
    cancel = _method(evaluation_calls.cancel)
    retry = _method(evaluation_calls.retry)
    detail = _method(evaluation_calls.detail)
    records = collects(evaluation_calls.records)
    records_page = _method(evaluation_calls.records_page)
    export = _method(evaluation_calls.export_records)
    export_to = saves(export_calls.save_records)
    compare = _method(evaluation_calls.compare)
    frontier = _method(evaluation_calls.frontier)
    try_policy = _method(evaluation_calls.try_policy)
    cost_curve = _method(evaluation_calls.cost_curve)
    outcome_threshold = _method(evaluation_calls.outcome_threshold)


class Families(Resource):
    """Lineages of models by name, each grown on one dataset: ``client.families``."""

    create = _method(family_calls.create)
    estimate = _method(family_calls.estimate)
    list = _method(family_calls.list_families)
    get = _method(family_calls.get)
    switch = _method(family_calls.switch)
    keep_warm = _method(family_calls.keep_warm)
    bound = _method(family_calls.bound)
    remove_bound = _method(family_calls.remove_bound)
    abstain_on_novel = _method(family_calls.abstain_on_novel)
    answer_novel = _method(family_calls.answer_novel)
    roll_back = _method(family_calls.roll_back)
    continue_ = _method(family_calls.continue_)
    estimate_continue = _method(family_calls.estimate_continue)
    check_continue = _method(family_calls.check_continue)
    delete = _method(family_calls.delete)
    shadow = _method(family_calls.shadow)
    end_shadow = _method(family_calls.end_shadow)
    compare_shadow = _method(family_calls.compare_shadow)

    def wait(
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
            return self._until(family_calls.get(family), wait.is_over, looking, poll_s)


class Jobs(JobResource[Any]):
    """Jobs of all kinds, and the calls of fine-tunes alone: ``client.jobs``.

    A fine-tune that succeeded need not have made a model: look at ``outcome`` and ``gate``.
    """

    noun = FINE_TUNE
    look = staticmethod(job_calls.get)
    all = pages(job_calls.all_page)
    list = pages(job_calls.page)
    events = _method(job_calls.events)
    records = collects(job_calls.records)

    def get(self, job_id: str) -> Any:
        """Return a job of any kind, in its own form."""
        return self.send(part_of(self._client, self, job_id).look(job_id))

    def cancel(self, job_id: str, *, idempotency_key: str | None = None) -> Any:
        """Ask a job of any kind to stop; an ended one stays as it is."""
        call = part_of(self._client, self, job_id).look(job_id)
        return self.send(job_calls.cancel(call, idempotency_key))


class PromptTuning(JobResource[PromptTuningJob]):
    """A decision's wording rewritten, and the rewrite proved: ``client.prompt_tuning``."""

    noun = PROMPT_TUNING
    look = staticmethod(prompt_tuning_calls.get)
    list = pages(prompt_tuning_calls.page)
    create = _method(prompt_tuning_calls.create)
    get = _method(prompt_tuning_calls.get)
    dismiss_label_issues = _method(prompt_tuning_calls.dismiss_label_issues)
    cancel = _method(prompt_tuning_calls.cancel)


class Alarms(Resource):
    """Watched metrics of an account's models, and their alarms: ``client.alarms``."""

    list = pages(alarm_calls.page)
    get = _method(alarm_calls.get)
    acknowledge = _method(alarm_calls.acknowledge)
    rules = _method(alarm_calls.rules)
    set_rule = _method(alarm_calls.set_rule)
    remove_rule = _method(alarm_calls.remove_rule)


class Views(Resource):
    """Views of the workbench that an account saved: ``client.views``."""

    list = pages(view_calls.page)
    save = _method(view_calls.save)
    delete = _method(view_calls.delete)


class Webhooks(Resource):
    """An account's events, delivered to endpoints of other programs: ``client.webhooks``."""

    list = pages(webhook_calls.page)
    create = _method(webhook_calls.create)
    get = _method(webhook_calls.get)
    change = _method(webhook_calls.change)
    delete = _method(webhook_calls.delete)
    deliveries = pages(webhook_calls.deliveries_page)
    redeliver = _method(webhook_calls.redeliver)
    test = _method(webhook_calls.send_test)
