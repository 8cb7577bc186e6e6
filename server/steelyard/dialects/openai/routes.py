"""``POST /v1/decisions``: the shape of a decision that OpenAI's client and LiteLLM use."""

from steelyard.dialects.openai.mapping import error_body, read_decisions
from steelyard.dialects.openai.service import OpenAIDecisionService
from steelyard.dialects.openai.wire import (
    DecisionsRequest,
    DecisionsResponse,
    NamedDecisionsRequest,
)
from steelyard.errors import NamedDecisionArchivedError
from steelyard.http.routing import Access, row
from steelyard.serving.routes import PAID_ERRORS, check_flood

ROUTES = (
    row(
        "POST /v1/decisions",
        OpenAIDecisionService.answer,
        "Answer a request in the shape of OpenAI's decisions, charged like decide.",
        access=Access.KEYED,
        tags=("compatibility",),
        request=DecisionsRequest,
        also_takes=(NamedDecisionsRequest,),
        read=read_decisions,
        response=DecisionsResponse,
        check=check_flood,
        errors=(*PAID_ERRORS, NamedDecisionArchivedError),
        is_inference=True,
        error_body=error_body,
    ),
)
