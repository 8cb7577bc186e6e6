"""The account itself: its name, its export, and its deletion after days of grace."""

from __future__ import annotations

import asyncio

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.accounts.wire import AccountSummary
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.wire.storing import STORE_SENTENCES
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.components.details import Details
from steelyard_workbench.kit.components.download import Download, bounded
from steelyard_workbench.kit.components.facts import facts, heading
from steelyard_workbench.kit.components.numbers import moment
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.states import verdict
from steelyard_workbench.parts.storing import store_field

_EXPORT = (
    "A zip of all that the account has: datasets, models, stored answers, the ledger, members, keys "
    "without their secrets, and the audit. Three an hour."
)
_DELETION = (
    "All that the account has is removed after seven days: data, models, keys, credit and members. "
    "Until then everything works as before, and an owner can take it back here. **Export it first**: "
    "after the seven days nothing can be brought back."
)


class Profile(Section):
    """A user's role in the account, and the owner's actions on it."""

    def build(self) -> list[Viewable]:
        """Return the facts, and for owners the name, the export and the deletion."""
        self.called = pmui.TextInput(label="Name of the account", max_length=128, width=320)
        if self.session.role not in {"owner", "developer", "billing"}:
            return [facts(self._who())]
        self.account = Loaded("The account", self.client.account.get, self._show)
        return [self.part(self.account), self.said, self.question]

    def _who(self) -> dict[str, str]:
        who = self.session.who
        role = self.session.role
        account = next((account for account in who.accounts if account.id == who.account_id), None)
        values = {"You": who.user.email}
        if who.user.is_operator:
            values["On this server"] = "operator"
        if account is None:
            return values | {"Account": "none; an owner of one can invite you"}
        return values | {"Account": account.name, "Your role": role or ""}

    def _show(self, account: AccountSummary) -> Viewable:
        values = self._who() | {"Account": account.user.name}
        views: list[Viewable] = []
        is_owner = self.session.role == "owner"
        if account.deletes_at is not None:
            text = f"This account is deleted on {moment(account.deletes_at)} UTC"
            views.append(verdict("bad", f"{text}.", "" if is_owner else "An owner can restore it."))
            if is_owner:
                views.append(
                    self.button(
                        "Restore the account", self._restore, "Not restored.", variant="contained"
                    )
                )
        views += [
            facts(values),
            Details(lambda: [facts({"Id": self.session.who.account_id})], "id"),
        ]
        if not is_owner:
            return stack(*views)
        self.called.value = account.user.name
        self.store = store_field(account.store)
        views += [
            heading("Name"),
            pn.FlexBox(
                self.called,
                self.button("Rename", self._rename, "Not renamed."),
                align_items="center",
            ),
            heading("Answers that are stored"),
            pn.FlexBox(
                self.store, self.button("Set it", self._limit, "Not set."), align_items="center"
            ),
            heading("Export"),
            small_text(_EXPORT),
            self._download("Export the account"),
        ]
        # That of the server itself is never deleted.
        if account.deletes_at is None and self.session.who.account_id != LOCAL_ACCOUNT:
            delete = action_button(
                "Delete the account …",
                lambda _: self.ask_to_delete(account),
                color="danger",
                size="small",
            )
            views += [heading("Deletion"), small_text(_DELETION), delete]
        return stack(*views)

    def _download(self, label: str) -> Download:
        return Download(label, self.export, lambda: "account.zip")

    def export(self) -> bytes:
        """Return the account's data on the person, as a zip."""
        return bounded(
            lambda path, progress: self.client.account.export_to(path, progress=progress),
            "account.zip",
            "write it with client.account.export_to in Python.",
        )

    async def _rename(self) -> None:
        name = needed(self.called, "Write a name for the account.")
        renamed = await asyncio.to_thread(self.client.account.rename, name)
        await self.look_who()
        await self.account.refresh(quietly=True)
        self.tell(f"The account is called {renamed.user.name}.")

    async def _limit(self) -> None:
        limited = await asyncio.to_thread(self.client.account.limit_storing, self.store.value)
        self.tell(f"The account stores {STORE_SENTENCES[limited.store]}.")

    def ask_to_delete(self, account: AccountSummary) -> None:
        """Ask whether to delete the account, with an export offered first."""
        self.ask(
            "Delete the account?",
            _DELETION,
            "Delete the account",
            self._delete,
            "Not deleted.",
            self._download("Export it first"),
            typed=account.user.name,
        )

    async def _delete(self) -> None:
        account = await self.session.confirm(self.client.account.delete)
        await self.account.refresh(quietly=True)
        self.tell(
            f"The account is deleted on {moment(account.deletes_at)} UTC, unless you restore it."
        )

    async def _restore(self) -> None:
        await asyncio.to_thread(self.client.account.restore)
        await self.account.refresh(quietly=True)
        self.tell("The account stays.")
