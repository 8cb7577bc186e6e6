"""``POST /v1/feedback``: what really happened, for a stored decision."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import read_json_bytes, reply_response
from steelyard.api.callers import caller_of, key_of, services_of
from steelyard.api.routing import Access, Route
from steelyard.errors import IdempotencyConflictError, NotFoundError, RequestInProgressError
from steelyard.wire.feedback import FeedbackRequest, FeedbackResponse


async def post_feedback(request: Request) -> HTTPResponse:
    """Record observed outcomes."""
    body = await read_json_bytes(request)
    feedback = services_of(request).feedback
    return reply_response(await feedback.record(caller_of(request), body, key_of(request)))


ROUTES = (
    Route(
        method="POST",
        path="/v1/feedback",
        handler=post_feedback,
        summary="Record what really happened, for decisions that were stored.",
        access=Access.KEYED,
        tags=("decide",),
        request=FeedbackRequest,
        response=FeedbackResponse,
        errors=(NotFoundError, IdempotencyConflictError, RequestInProgressError),
    ),
)
