"""What the routes need, handed to ``create_app`` by the composition root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.services.allowance import RequestLimits, TokenAllowance
from steelyard.settings import Settings

if TYPE_CHECKING:
    from steelyard.services.accounts import AccountService
    from steelyard.services.dataset_rows import DatasetRows
    from steelyard.services.datasets import DatasetService
    from steelyard.services.decision_log import DecisionLog
    from steelyard.services.decisions import DecisionService
    from steelyard.services.discovery import DiscoveryService
    from steelyard.services.draft_rows import DraftRows
    from steelyard.services.draft_seals import DraftSeals
    from steelyard.services.drafts import DraftService
    from steelyard.services.evaluation_figures import EvaluationFigures
    from steelyard.services.evaluations import EvaluationService
    from steelyard.services.families import FamilyService
    from steelyard.services.feedback import FeedbackService
    from steelyard.services.feedback_rows import FeedbackRows
    from steelyard.services.fine_tune_jobs import FineTuneJobs
    from steelyard.services.models import ModelRegistry
    from steelyard.services.openai_decisions import OpenAIDecisionService
    from steelyard.services.systemone import SystemOneService
    from steelyard.storage.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """The services behind the routes.

    Parameters
    ----------
    settings : steelyard.settings.Settings
        Bounds of bodies and times, and whether accounts are on.
    decisions : steelyard.services.decisions.DecisionService
        Answers decide, estimate and playground requests.
    decision_log : steelyard.services.decision_log.DecisionLog
        Gives stored decisions, and figures of them.
    feedback : steelyard.services.feedback.FeedbackService
        Records observed outcomes.
    feedback_rows : steelyard.services.feedback_rows.FeedbackRows
        Makes rows of datasets from them.
    models : steelyard.services.models.ModelRegistry
        The models that answer, with their queues.
    discovery : steelyard.services.discovery.DiscoveryService
        Says what this server can do.
    accounts : steelyard.services.accounts.AccountService
        Knows callers by their keys.
    systemone : steelyard.services.systemone.SystemOneService
        Answers requests in the TypeSafe shape.
    openai_decisions : steelyard.services.openai_decisions.OpenAIDecisionService
        Answers requests in the shape of OpenAI and LiteLLM.
    datasets : steelyard.services.datasets.DatasetService
        Makes, lists and deletes datasets.
    evaluations : steelyard.services.evaluations.EvaluationService
        Queues, lists, stops and retries evaluations.
    evaluation_figures : steelyard.services.evaluation_figures.EvaluationFigures
        Gives what evaluations measured.
    dataset_rows : steelyard.services.dataset_rows.DatasetRows
        Reads their rows.
    drafts : steelyard.services.drafts.DraftService
        Begins reviews of versions, takes their edits and gives their logs.
    draft_rows : steelyard.services.draft_rows.DraftRows
        Reads the queues of reviews, and edits whole ones.
    draft_seals : steelyard.services.draft_seals.DraftSeals
        Makes reviews datasets and versions.
    families : steelyard.services.families.FamilyService
        Starts, grows, switches, rolls back and deletes lines of tuned models.
    fine_tunes : steelyard.services.fine_tune_jobs.FineTuneJobs
        Lists, follows and stops fine-tunes.
    allowance : steelyard.services.allowance.TokenAllowance
        Input tokens that a caller may send in a minute.
    limits : steelyard.services.allowance.RequestLimits
        Requests that a caller or an address may send in a minute.
    state : steelyard.storage.state.State
        Where the server keeps what it must not lose; readiness asks whether it can be written.
    """

    settings: Settings
    decisions: DecisionService
    decision_log: DecisionLog
    feedback: FeedbackService
    feedback_rows: FeedbackRows
    models: ModelRegistry
    discovery: DiscoveryService
    accounts: AccountService
    systemone: SystemOneService
    openai_decisions: OpenAIDecisionService
    datasets: DatasetService
    dataset_rows: DatasetRows
    drafts: DraftService
    draft_rows: DraftRows
    draft_seals: DraftSeals
    evaluations: EvaluationService
    evaluation_figures: EvaluationFigures
    families: FamilyService
    fine_tunes: FineTuneJobs
    allowance: TokenAllowance
    limits: RequestLimits
    state: State
