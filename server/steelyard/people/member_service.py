"""Members of an account: invited by mail, changed, removed; the last owner stays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.accounts.store import find_account, get_account
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.people import limits
from steelyard.people import member_store as members
from steelyard.people import store as rows
from steelyard.people.mail_service import MailRoom
from steelyard.people.roles import Role, read_address
from steelyard.people.session_service import note, session_of
from steelyard.people.wire import ChangeMember, InviteMember, Member, MemberList, RemovedMember
from steelyard.storage import State
from steelyard.wire.filling import filled
from steelyard.wire.violations import BODY

#: Members and invitations of one account.
MAX_MEMBERS = 500


class Members:
    """Knows who has a part in which account."""

    def __init__(
        self,
        state: State,
        mail: MailRoom,
        *,
        now: Callable[[], float] | None = None,
        release: Callable[[Connection, str, str], None] = lambda *_: None,
    ) -> None:
        self._state = state
        self._mail = mail
        self._release = release
        self._now = now or limits.ForwardClock()
        self._writes = KeyedWrites(state, now=self._now)

    async def list(self, caller: Caller) -> MemberList:
        """Return the members of the caller's account, and who is invited."""
        find = functools.partial(members.all_members, account_id=caller.account_id)
        member_rows = await self._state.read(find)
        return MemberList(data=[_shown(row, self._now()) for row in member_rows])

    async def invite(self, write: Write, request: InviteMember) -> Member:
        """Invite a person by mail; an invitation that ran out is made anew."""
        caller, email = write.caller, read_address(request.email)
        sender = session_of(caller).email
        self._mail.check()

        def work(connection: Connection) -> Member:
            now = self._now()
            row = self._invited(connection, caller.account_id, email, request.role, sender, now)
            account = find_account(connection, caller.account_id)
            rows.insert_letter(
                connection,
                "invitation",
                email,
                at=now,
                expires_at=row.expires_at,
                account_name="" if account is None else account.name,
                sender=sender,
            )
            note(connection, caller, "member.invited", at=now, subject=f"{email} {request.role}")
            return _shown(row, now)

        return await self._writes.once(write, work)

    async def change(self, caller: Caller, member_id: str, request: ChangeMember) -> Member:
        """Change a member's role; its sessions get new tokens."""

        def work(connection: Connection) -> Member:
            now = self._now()
            row = _member(connection, caller, member_id)
            if row.role != request.role:
                _keep_an_owner(connection, row)
                members.MEMBERS.change(connection, row.id, role=request.role)
                rows.must_rotate(connection, row.email)
                change = f"{row.email} {row.role} to {request.role}"
                note(connection, caller, "member.changed", at=now, subject=change)
            return _shown(_member(connection, caller, member_id), now)

        return await self._state.write(work)

    async def remove(self, write: Write, member_id: str) -> RemovedMember:
        """End a person's part in the account, or withdraw an invitation; their unfinished rows are free."""
        caller = write.caller

        def work(connection: Connection) -> RemovedMember:
            row = _member(connection, caller, member_id)
            _keep_an_owner(connection, row)
            members.MEMBERS.delete(connection, row.id)
            rows.must_rotate(connection, row.email)
            self._release(connection, row.account_id, row.email)
            note(connection, caller, "member.removed", at=self._now(), subject=row.email)
            return RemovedMember(id=row.id)

        return await self._writes.once(write, work)

    def invite_now(self, account: str, address: str, role: Role) -> Member:
        """Invite a person without a letter, blocking: for an operator's command."""
        email = read_address(address)

        def work(connection: Connection) -> Member:
            row = get_account(connection, account)
            now = self._now()
            invited = self._invited(connection, row.id, email, role, None, now)
            return _shown(invited, now)

        return self._state.write_now(work)

    def has_operator(self) -> bool:
        """Whether a command made anybody an operator, blocking."""
        return self._state.read_now(rows.has_operator)

    def make_first_operator(self, address: str) -> str:
        """Make a user an operator and an owner of the server's own account, blocking."""
        email = self.make_operator(address)
        with suppress(errors.MemberExistsError):
            self.invite_now(LOCAL_ACCOUNT, email, "owner")
        return email

    def make_operator(self, address: str) -> str:
        """Make a user an operator, blocking, and return the address as it is kept."""
        email = read_address(address)

        def work(connection: Connection) -> None:
            if rows.find_user(connection, email) is None:
                rows.insert_user(connection, email, self._now())
            rows.make_operator(connection, email)
            rows.must_rotate(connection, email)

        self._state.write_now(work)
        return email

    def _invited(
        self,
        connection: Connection,
        account_id: str,
        email: str,
        role: Role,
        sender: str | None,
        now: float,
    ) -> Row[Any]:
        there = members.find_member(connection, account_id, email=email)
        if there is not None:
            if _state_of(there, now) != "expired":
                raise errors.MemberExistsError(
                    f"{email} is a member already, or invited; change the role instead."
                )
            members.MEMBERS.delete(connection, there.id)
        if len(members.all_members(connection, account_id)) >= MAX_MEMBERS:
            message = f"The account has {MAX_MEMBERS} members and invitations; remove one first."
            raise errors.InvalidRequestError.at((*BODY, "email"), message, "too_many")
        return members.insert_member(
            connection,
            account_id,
            email,
            role,
            at=now,
            expires_at=now + limits.INVITATION_S,
            invited_by=sender,
        )


def _member(connection: Connection, caller: Caller, member_id: str) -> Row[Any]:
    row = members.find_member(connection, caller.account_id, member_id=member_id)
    if row is None:
        raise errors.NotFoundError(
            "The account has no such member; GET /v1/account/members lists them."
        )
    return row


def _keep_an_owner(connection: Connection, row: Row[Any]) -> None:
    """Refuse to take the last owner's part away."""
    if row.role != "owner" or row.joined_at is None:
        return
    if members.count_owners(connection, row.account_id) == 1:
        raise errors.LastOwnerError(
            f"{row.email} is the only owner of the account; make somebody else an owner first."
        )


def _state_of(row: Row[Any], now: float) -> Literal["invited", "expired", "joined"]:
    if row.joined_at is not None:
        return "joined"
    return "invited" if row.expires_at > now else "expired"


def _shown(row: Row[Any], now: float) -> Member:
    return filled(Member, row, state=_state_of(row, now))
