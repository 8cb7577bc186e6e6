"""Every error Steelyard raises on purpose: one tree, one body on the wire.

Here: the exceptions, their codes and statuses, and the body each gives. Not here: the HTTP headers
that go with them (``steelyard.http``). Every module may import this one; it imports none of ours.
Each class has a code, a status and a builtin that it also is: ``error_classes`` returns them, and the
documents list them in *Errors*, both from the classes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

# Every class of these modules is public.
from steelyard.errors.accounts import *  # noqa: F403
from steelyard.errors.base import MAX_DETAILS as MAX_DETAILS
from steelyard.errors.base import WHOLE
from steelyard.errors.base import Operation as Operation
from steelyard.errors.base import PathStep as PathStep
from steelyard.errors.base import SteelyardError as SteelyardError
from steelyard.errors.base import Violation as Violation
from steelyard.errors.base import errors_of as errors_of
from steelyard.errors.datasets import *  # noqa: F403
from steelyard.errors.evaluations import *  # noqa: F403
from steelyard.errors.families import *  # noqa: F403
from steelyard.errors.kinds import *  # noqa: F403
from steelyard.errors.labeling import *  # noqa: F403
from steelyard.errors.maps import *  # noqa: F403
from steelyard.errors.named import *  # noqa: F403
from steelyard.errors.people import *  # noqa: F403
from steelyard.errors.prompt_tuning import *  # noqa: F403
from steelyard.errors.purchases import *  # noqa: F403
from steelyard.errors.requests import *  # noqa: F403
from steelyard.errors.review import *  # noqa: F403
from steelyard.errors.serving import *  # noqa: F403
from steelyard.errors.webhooks import *  # noqa: F403


def error_classes() -> dict[str, type[SteelyardError]]:
    """Return every class of the tree by its code.

    Examples
    --------
    >>> error_classes()["not_found"].__name__
    'NotFoundError'
    """
    by_code: dict[str, type[SteelyardError]] = {}
    pending: list[type[SteelyardError]] = SteelyardError.__subclasses__()
    while pending:
        cls = pending.pop()
        # Neither a kind, which has no code of its own, nor a client's own class.
        if "code" in vars(cls) and globals().get(cls.__name__) is cls:
            by_code[cls.code] = cls
        pending.extend(cls.__subclasses__())
    return dict(sorted(by_code.items()))


def error_from_body(
    status: int, body: object, *, retry_after_s: float | None = None
) -> SteelyardError:
    """Return the error that the server raised, from the decoded body of a failed call.

    Of the class with the body's code; of the base class when the code or the body is unknown: the
    message then names the HTTP status. ``retry_after_s`` is that of the ``Retry-After`` header.

    >>> str(error_from_body(404, NotFoundError("There is no such row.").body("req_1")))
    'There is no such row.'
    """
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return SteelyardError(
            f"The server answered {status} without an error body; is a Steelyard server there?",
            retry_after_s=retry_after_s,
        )
    details = error.get("details")
    if isinstance(details, list):  # of another server's, whatever they are
        details = [detail for detail in details if isinstance(detail, Mapping)]
    cls = error_classes().get(str(error.get("code")), SteelyardError)
    message = str(error["message"])
    if details == [Violation(WHOLE, message, cls.code).body()]:  # it repeats the message
        details = None
    return cls(
        message,
        details=details if isinstance(details, list) else None,
        retry_after_s=retry_after_s,
    )
