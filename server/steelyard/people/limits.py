"""How long codes, invitations and sessions live, and how often a person may ask for a code.

Every end is stored as a time when something begins, so that no later change lengthens it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, time

CODE_S = 600.0
#: Wrong codes that are taken over all codes that an address has from one network.
TRIES = 5
#: Codes of one address that live at a time: a request does not end the code under way.
LIVE_CODES = 3
#: Codes in an hour: for an address from one network, for an address from all networks that nobody
#: signed in from before, and from one network.
CODES_PER_ADDRESS = 5
CODES_FROM_STRANGERS = 20
CODES_PER_NETWORK = 20
#: Sign-ins with an identity provider, and as many with a passkey, begun from one network in an hour:
#: an office has one address, and neither sends a letter.
SIGN_INS_PER_NETWORK = 200
#: Passkeys that a user begins to add in an hour, dialogs that are cancelled included; and the most
#: that one has.
PASSKEYS_BEGUN, PASSKEYS = 20, 20
HOUR_S = 3600.0
IDLE_S = 12 * HOUR_S
SESSION_S = 30 * 24 * HOUR_S
#: A code this old still confirms a sensitive action.
CONFIRMED_S = 900.0
INVITATION_S = 14 * 24 * HOUR_S
#: How long a deletion of an account can be taken back.
GRACE_S = 7 * 24 * HOUR_S
#: Exports of an account in an hour.
EXPORTS = 3
AUDIT_S = 400 * 24 * HOUR_S
#: Seconds within which uses of a session count as one.
TOUCH_S = 60.0
#: Seconds in which the token before a rotation is still taken, and answered with the new one.
ROTATION_S = 10.0
#: Seconds that clocks of several machines may differ by.
_SKEW_S = 60.0


def wait_s(times: Sequence[float], limit: int, now: float) -> float | None:
    """Return the seconds until one more fits an hour's limit; ``None`` where it fits now.

    >>> wait_s([10.0, 20.0], 3, 30.0) is None, wait_s([10.0, 20.0], 2, 30.0)
    (True, 3580.0)
    """
    recent = sorted(at for at in times if at > now - HOUR_S)
    if len(recent) < limit:
        return None
    return max(1.0, recent[-limit] + HOUR_S - now)


def is_alive(began_at: float, ends_at: float, now: float) -> bool:
    """Whether something with a stored end lives: also not where the clock was set back before it began.

    >>> (
    ...     is_alive(1000.0, 1600.0, 1599.0),
    ...     is_alive(1000.0, 1600.0, 1600.0),
    ...     is_alive(1000.0, 1600.0, 0.0),
    ... )
    (True, False, False)
    """
    return began_at - _SKEW_S <= now < ends_at


class ForwardClock:
    """The time in Unix seconds, which in one process never runs back or slower than it passes."""

    def __init__(
        self, wall: Callable[[], float] = time, steady: Callable[[], float] = monotonic
    ) -> None:
        self._wall = wall
        self._steady = steady
        # One value, so that threads see a pair that belongs together.
        self._last = (wall(), steady())

    def __call__(self) -> float:
        """Return the time now."""
        at, then = self._last
        steady = self._steady()
        now = max(self._wall(), at + steady - then)
        self._last = (now, steady)
        return now
