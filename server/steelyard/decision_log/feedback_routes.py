"""``POST /v1/feedback``: what really happened, for a stored decision."""

from __future__ import annotations

from steelyard.decision_log.feedback import FeedbackService
from steelyard.decision_log.feedback_wire import FeedbackRequest, FeedbackResponse
from steelyard.errors import IdempotencyConflictError, NotFoundError, RequestInProgressError
from steelyard.http.routing import Access, Route

ROUTES = (
    Route(
        method="POST",
        path="/v1/feedback",
        use=lambda call: call.service(FeedbackService).record(call.write, call.body),
        summary="Record what really happened, for decisions that were stored.",
        access=Access.KEYED,
        tags=("decide",),
        request=FeedbackRequest,
        response=FeedbackResponse,
        errors=(NotFoundError, IdempotencyConflictError, RequestInProgressError),
    ),
)
