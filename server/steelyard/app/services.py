"""What the routes need, handed to ``create_app`` by the composition root."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeVar, get_type_hints

from steelyard.accounts.rate_limits import RequestLimits, TokenAllowance
from steelyard.accounts.service import AccountService
from steelyard.alarms.service import Alarms
from steelyard.alarms.watching import Watcher
from steelyard.billing.service import PurchaseService
from steelyard.datasets.from_feedback import FeedbackRows
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.decision_log.feedback import FeedbackService
from steelyard.decision_log.service import DecisionLog
from steelyard.dialects.openai.service import OpenAIDecisionService
from steelyard.dialects.systemone.service import SystemOneService
from steelyard.discovery.service import DiscoveryService
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.frontier import EvaluationFrontier
from steelyard.evaluations.service import EvaluationService
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.service import FamilyService
from steelyard.labeling.finalizing import LabelingFinalizer
from steelyard.labeling.reviewed import LabelingReviews
from steelyard.labeling.service import LabelingJobs
from steelyard.labeling.sources import LabelingSources
from steelyard.labeling.teachers import Teachers
from steelyard.maps.service import DatasetMaps
from steelyard.models.service import FamilyModels
from steelyard.people.account_service import OwnAccount
from steelyard.people.export_service import AccountExports
from steelyard.people.key_service import Keys
from steelyard.people.member_service import Members
from steelyard.people.oidc_service import OidcSignIns
from steelyard.people.operator_service import Operator
from steelyard.people.passkey_service import Passkeys
from steelyard.people.session_service import Sessions
from steelyard.people.sign_in_service import SignIns
from steelyard.people.usage_service import UsageService
from steelyard.prompt_tuning.service import PromptTunings
from steelyard.review.answering import BlindAnswers
from steelyard.review.assigning import DraftAssignments
from steelyard.review.outcome_service import DraftOutcomeService
from steelyard.review.rows import DraftRows
from steelyard.review.seal import DraftSeals
from steelyard.review.service import DraftService
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService
from steelyard.settings import Settings
from steelyard.shadows.service import Shadows
from steelyard.storage import State
from steelyard.views.service import Views
from steelyard.webhooks.service import Webhooks

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """The services behind the routes."""

    settings: Settings
    decisions: DecisionService
    decision_log: DecisionLog
    feedback: FeedbackService
    feedback_rows: FeedbackRows
    models: ModelRegistry
    discovery: DiscoveryService
    accounts: AccountService
    alarms: Alarms
    alarm_watcher: Watcher
    systemone: SystemOneService
    openai_decisions: OpenAIDecisionService
    datasets: DatasetService
    dataset_rows: DatasetRows
    drafts: DraftService
    draft_rows: DraftRows
    draft_seals: DraftSeals
    draft_assignments: DraftAssignments
    blind_answers: BlindAnswers
    draft_outcomes: DraftOutcomeService
    evaluations: EvaluationService
    evaluation_figures: EvaluationFigures
    evaluation_frontier: EvaluationFrontier
    labeling_finalizer: LabelingFinalizer
    labeling_jobs: LabelingJobs
    labeling_reviews: LabelingReviews
    labeling_sources: LabelingSources
    labeling_teachers: Teachers
    exports: AccountExports
    keys: Keys
    oidc_sign_ins: OidcSignIns
    passkeys: Passkeys
    own_account: OwnAccount
    maps: DatasetMaps
    members: Members
    operator: Operator
    prompt_tunings: PromptTunings
    purchases: PurchaseService
    sessions: Sessions
    sign_ins: SignIns
    families: FamilyService
    family_models: FamilyModels
    shadows: Shadows
    usage: UsageService
    webhooks: Webhooks
    views: Views
    fine_tunes: FineTuneJobs
    allowance: TokenAllowance
    limits: RequestLimits
    state: State

    def get(self, kind: type[T]) -> T:
        """Return the service of a class."""
        found: T = getattr(self, _names()[kind])
        return found


@cache
def _names() -> dict[type, str]:
    """Return the names of the services by their classes."""
    return {kind: name for name, kind in get_type_hints(ApiServices).items()}
