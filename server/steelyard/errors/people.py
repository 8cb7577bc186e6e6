"""Errors of signing in and of the console."""

from steelyard.errors.base import SteelyardError
from steelyard.errors.kinds import ConflictError, UnauthenticatedError, UnavailableError


class NotSignedInError(UnauthenticatedError):
    """A route of the console without a session that lives."""


class InvalidCodeError(UnauthenticatedError):
    """A code that is wrong, used, too old or tried too often; or a passkey that is none here."""


class SignUpRefusedError(SteelyardError, PermissionError):
    """An address that was proved and may not become a user."""

    code = "sign_up_refused"
    status = 403


class RoleForbiddenError(SteelyardError, PermissionError):
    """A route of the console that the user's role does not cover."""

    code = "role_forbidden"
    status = 403


class ConfirmSignInError(SteelyardError, PermissionError):
    """A sensitive change whose session has given no code lately."""

    code = "confirm_sign_in"
    status = 403


class LastOwnerError(ConflictError):
    """A change that would leave an account without an owner."""


class MemberExistsError(ConflictError):
    """An invitation of a person who is a member, or is invited."""


class MailUnavailableError(UnavailableError):
    """A letter that a server without SMTP cannot send."""

    retryable = False


class AccountNeededError(ConflictError):
    """A change of the account that the server itself needs."""


class PasskeysOffError(UnavailableError):
    """A passkey where the server lacks the package that verifies it."""

    retryable = False


class PasskeyLimitError(ConflictError):
    """One passkey more than a user may have."""


class OidcOffError(UnavailableError):
    """A sign-in with an identity provider where the server has none."""

    retryable = False


class IdentityProviderError(UnavailableError):
    """An identity provider that does not answer, or not as one."""

    code = "identity_provider_unavailable"
    default_retry_after_s = 5.0
