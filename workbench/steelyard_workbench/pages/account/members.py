"""The members of an account: invited by mail, with a role that owners change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.people.roles import ROLES
from steelyard.people.wire import Member
from steelyard_workbench.kit.basics import action_button
from steelyard_workbench.kit.components.facts import facts, heading, table
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.numbers import moment
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.states import empty

_MAY = {
    "owner": "everything, members and deletion included",
    "developer": "data, models and keys of its own; no money, no members",
    "billing": "money and receipts; reads usage",
    "reviewer": "reads datasets, reviews rows and labeling jobs",
}
_COLUMNS = ("address", "role", "state", "invited by", "since")
_STATES = {"joined": "joined", "invited": "invited", "expired": "invitation ran out"}


class MemberSection(Section):
    """The members of the account."""

    def build(self) -> list[Viewable]:
        """Return the members, and for owners a form that invites."""
        self.members = Loaded("The members", lambda: self.client.members.list().data, self._show)
        self.email = pmui.TextInput(label="E-mail address", width=300)
        self.role = pmui.Select(label="Role", options=list(ROLES), value="developer", width=150)
        views = [side_by_side(self.part(self.members), self.opened), self.said, self.question]
        if self.session.role == "owner":
            views += [
                heading("Invite somebody"),
                pn.FlexBox(
                    self.email,
                    self.role,
                    self.button(
                        "Invite",
                        self._invite,
                        "Not invited.",
                        variant="contained",
                        fields={"email": self.email, "role": self.role},
                    ),
                    align_items="center",
                ),
            ]
        return [*views, heading("Roles"), facts(_MAY)]

    def _show(self, members: Sequence[Member]) -> Viewable:
        rows = [
            (
                member.email,
                member.role,
                _STATES[member.state],
                member.invited_by or "—",
                moment(member.joined_at or member.created_at),
            )
            for member in members
        ]
        if not members:
            return empty("This account has no members yet.")
        if self.session.role != "owner":
            return table(_COLUMNS, rows, label="Members")
        return mark_table(
            _COLUMNS,
            rows,
            label="Members",
            open_=lambda place: self.open_member(members[place]),
            opens="Change the role, or remove",
        )

    def open_member(self, member: Member) -> None:
        """Show a member's role, and its changes."""
        self.new_role = pmui.Select(label="Role", options=list(ROLES), value=member.role, width=150)
        change = self.button("Change the role", partial(self._change, member), "Not changed.")
        remove = action_button(
            "Remove …", lambda _: self.ask_to_remove(member), size="small", color="danger"
        )
        self.open(heading(member.email), self.new_role, pn.Row(change, remove, self.close_button()))

    def ask_to_remove(self, member: Member) -> None:
        """Ask whether to remove a member."""
        self.ask(
            f"Remove {member.email}?",
            "What they made stays. Their keys go on working: revoke them under Keys if they should not.",
            "Remove",
            partial(self._remove, member),
            "Not removed.",
        )

    async def _invite(self) -> None:
        email = needed(self.email, "Write an e-mail address.")
        member = await self.session.confirm(self.client.members.invite, email, self.role.value)
        self.email.param.update(value="", value_input="")
        await self.members.refresh(quietly=True)
        self.tell(f"{member.email} is invited as {member.role}, for 14 days.")

    async def _change(self, member: Member) -> None:
        changed = await self.session.confirm(
            self.client.members.change, member.id, self.new_role.value
        )
        await self._again(member)
        self.tell(f"{changed.email} is {changed.role}.")

    async def _remove(self, member: Member) -> None:
        await self.session.confirm(self.client.members.remove, member.id)
        await self._again(member)
        self.tell(f"{member.email} is no longer a member of the account.")

    async def _again(self, member: Member) -> None:
        self.close()
        if member.email == self.session.who.user.email:
            await self.look_who()
        await self.members.refresh(quietly=True)
