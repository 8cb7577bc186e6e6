"""API keys: made with a scope, a cap and an end; the secret of one is shown once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import islice

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.accounts.wire import ApiKey
from steelyard.wire.storing import STORE_SENTENCES
from steelyard_workbench.kit import corner
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed, typed
from steelyard_workbench.kit.views import empty, facts, heading, with_details
from steelyard_workbench.kit.words import ago, moment
from steelyard_workbench.parts.storing import store_field

#: Keys that are listed.
_MOST = 500
_DAY_S = 86_400
_ENDS = {"never": 0, "in 7 days": 7, "in 30 days": 30, "in 90 days": 90, "in a year": 365}
_SCOPES = {
    "inference: asks for decisions": "inference",
    "read: reads everything": "read",
    "full: everything that programs do": "full",
}
_COLUMNS = ("name", "begins with", "scope", "made by", "last used", "spent this month", "ends")
_NONE = with_details(
    "**No keys.** A program calls with one: make it below, and put its secret where the program "
    "reads it.",
    "Programs of this client read it as `STEELYARD_API_KEY`.",
)
_ONCE = "Copy the secret now. It is not stored, and is not shown again."


class ApiKeys(Section):
    """The keys of the account."""

    def build(self) -> list[Viewable]:
        """Return the keys and the form that makes one."""
        self.revoked = pmui.Switch(label="Revoked ones too", value=False)
        self.keys: Loaded[list[ApiKey]] = Loaded("The keys", self._fetch, self._show)
        pn.bind(lambda _: self.keys.start(), self.revoked, watch=True)
        self.called = pmui.TextInput(label="Name", max_length=128, width=220)
        self.scope_of = pmui.Select(label="Scope", options=_SCOPES, value="inference", width=270)
        self.cap = pmui.TextInput(label="Most in a month, USD", width=190)
        self.ends = pmui.Select(label="Ends", options=_ENDS, value=0, width=140)
        self.store = store_field()
        pn.bind(self._on_scope, self.scope_of, watch=True)
        return [
            side_by_side(self.part(self.keys), self.opened),
            self.revoked,
            heading("Make a key"),
            self.form(
                "Make a key",
                self._make,
                "No key was made.",
                name=self.called,
                scope=self.scope_of,
                monthly_cap_usd=self.cap,
                expires_at=self.ends,
                store=self.store,
            ),
            self.said,
            self.question,
        ]

    def _on_scope(self, scope: str) -> None:
        """Take a cap for keys that spend alone."""
        self.cap.disabled = scope != "inference"
        if self.cap.disabled:
            self.cap.param.update(value="", value_input="")

    def _fetch(self) -> list[ApiKey]:
        revoked = None if self.revoked.value else False
        return list(islice(self.client.account.keys(revoked=revoked), _MOST))

    def _show(self, keys: Sequence[ApiKey]) -> Viewable:
        if not keys:
            return empty(_NONE)
        return mark_table(
            _COLUMNS,
            [
                (
                    key.name,
                    key.prefix,
                    key.scope,
                    key.made_by or "—",
                    ago(key.last_used_at),
                    _spent(key),
                    end_text(key),
                )
                for key in keys
            ],
            label="API keys",
            open_=lambda place: self.open_key(keys[place]),
            opens="Rename, cap or revoke",
        )

    def open_key(self, key: ApiKey) -> None:
        """Show a key and its editable fields."""
        values = {
            "Id": key.id,
            "Made": moment(key.created_at),
            "Cap": f"{key.monthly_cap_usd} USD a month" if key.monthly_cap_usd else "none",
            "Stored of it at most": STORE_SENTENCES[key.store],
            "State": end_text(key) if key.revoked_at is not None else "active",
        }
        close = self.close_button()
        views: list[Viewable] = [heading(key.name), facts(values)]
        is_own = key.made_by == self.session.who.user.email
        if key.revoked_at is not None:
            self.open(*views, close)
        elif self.session.role != "owner" and not is_own:
            why = empty("A developer changes only their own keys. Ask an owner.")
            self.open(*views, why, close)
        else:
            self.open(*views, *self._changes(key, close))

    def _changes(self, key: ApiKey, close: Viewable) -> list[Viewable]:
        self.new_name = pmui.TextInput(label="New name", value=key.name, max_length=128, width=220)
        self.new_cap = pmui.TextInput(
            label="New cap, USD; empty for none",
            value=key.monthly_cap_usd or "",
            width=260,
            visible=key.scope == "inference",
        )
        self.new_store = store_field(key.store)
        revoke = self.harmful(
            "Revoke …",
            f"Revoke {key.name}?",
            "Programs that use it are refused at once, and it cannot be restored.",
            "Revoke",
            partial(self._revoke, key),
            "Not revoked.",
        )
        change = self.button("Change the key", partial(self._change, key), "Not changed.")
        return [self.new_name, self.new_cap, self.new_store, pn.Row(change, revoke, close)]

    async def _make(self) -> None:
        name = needed(self.called, "Write a name for the key, such as that of its program.")
        cap = typed(self.cap)
        days = self.ends.value
        new_key = await self.session.confirm(
            self.client.account.create_key,
            name,
            self.scope_of.value,
            monthly_cap_usd=cap or None,
            expires_at=time.time() + days * _DAY_S if days else None,
            store=self.store.value,
        )
        if self.scope.has_ended:
            corner.say_failure(
                f"The key {new_key.name} was made after its page was left, so that its secret is not "
                "shown. Revoke it and make another."
            )
            return
        self.called.param.update(value="", value_input="")
        self.tell(
            f"The key {new_key.name} is made. {_ONCE}", CopyText(new_key.secret, "the secret")
        )
        await self.keys.refresh(quietly=True)

    async def _change(self, key: ApiKey) -> None:
        cap = typed(self.new_cap) if self.new_cap.visible else ""
        changed = await self.session.confirm(
            self.client.account.change_key,
            key.id,
            name=typed(self.new_name) or key.name,
            monthly_cap_usd=cap or None,
            store=self.new_store.value,
        )
        await self.done(f"The key {changed.name} is changed.", self.keys)

    async def _revoke(self, key: ApiKey) -> None:
        await self.session.confirm(self.client.account.revoke_key, key.id)
        await self.done(f"The key {key.name} is revoked.", self.keys)


def end_text(key: ApiKey) -> str:
    """Return when a key ends, or that it has."""
    if key.revoked_at is not None:
        return f"revoked {ago(key.revoked_at)}"
    return "never" if key.expires_at is None else moment(key.expires_at)


def _spent(key: ApiKey) -> str:
    if key.monthly_cap_usd is None:
        return "no cap"
    return f"{key.month_spent_usd or 0} of {key.monthly_cap_usd} USD"
