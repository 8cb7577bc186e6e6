"""Settings: those of a person, of the server and the account, and what it allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.accounts.wire import AccountSummary
from steelyard.discovery.wire import Discovery
from steelyard.errors import SteelyardError
from steelyard.serving.health_wire import Health
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.views import Details, empty, facts, heading, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.backup import BackupSection
from steelyard_workbench.parts.balance import usd

_WORDS = {
    "requests_per_minute": "Requests a minute",
    "tokens_per_minute": "Tokens a minute",
    "body_bytes": "Largest request",
    "upload_bytes": "Largest file",
    "dataset_bytes": "Largest dataset, sent at once",
    "max_decisions": "Questions in a request",
    "decisions": "Questions in a request",
    "max_outcomes": "Answers to choose from",
    "max_playground_decisions": "Questions in the playground",
    "live_limit": "Model lines that answer at once",
    "warm_limit": "Models kept ready",
    "fine_tune_queue": "Trainings that wait",
    "fine_tune_queue_per_account": "Trainings that wait, of one account",
    "dataset_min_rows": "Fewest rows of a dataset",
    "dataset_rows": "Most rows of a dataset",
    "fine_tune_min_rows": "Fewest rows to train on",
    "fine_tune_rows": "Most rows to train on",
    "prompt_tuning_min_rows": "Fewest rows to reword a question by",
    "prompt_tuning_rows": "Most rows to reword a question by",
    "labeling_rows": "Most rows to label at once",
}
_MB = 1024 * 1024
_DAY_S = 86_400
_PACKAGES = ("steelyard", "panel", "panel-material-ui", "bokeh", "polars", "onnxruntime")


def show_limits(limits: Mapping[str, int]) -> Viewable:
    """Show the bounds that hold for every account."""
    if not limits:
        return empty("Only members of an account see the limits.")
    return facts(
        {_WORDS.get(name, name.replace("_", " ")): _text(name, limits[name]) for name in limits},
        terms={_WORDS[name]: name for name in limits if name in _WORDS},
    )


def _text(name: str, value: int) -> str:
    """Return a limit; of those a minute, 0 stands for none."""
    if name.endswith("_bytes") and value >= _MB:
        return f"{value / _MB:,.0f} MB"
    return "no limit" if not value and name.endswith("_per_minute") else f"{value:,}"


@dataclass(frozen=True, slots=True)
class InstalledVersions:
    """The versions of the server's parts, as far as the caller may know, and the days that it stores."""

    health: Health
    discovery: Discovery
    parts: dict[str, str]
    retention_days: float | None


class SettingsPage(Page):
    """Shortcuts, environment and account."""

    slug = "settings"
    title = "Settings"
    look_ms = 1500
    backup: BackupSection | None = None

    def build(self) -> list[Viewable]:
        """Return a person's settings, then those of the server."""
        shortcuts = pmui.Switch(label="Single letters are shortcuts", value=self.session.shortcuts)
        shortcuts.link(self.session, value="shortcuts")
        return [
            heading("For you"),
            shortcuts,
            empty(
                "*Keys ?* in the bar at the top lists them, and the sun or moon turns the theme."
            ),
            heading("What is on"),
            self.part(Loaded("The environment", self._environment, show_environment)),
            heading("Account"),
            self.part(Loaded("The account", self.client.account.get, show_account)),
            *self._backup(),
        ]

    def _backup(self) -> list[Viewable]:
        """Return the backups without accounts; with them they are on the page of operators."""
        self.backup = None
        if self.session.who is not None:
            return []
        self.backup = BackupSection(self.session, self.visit)
        self.parts += self.backup.parts
        return [self.backup.__panel__()]

    async def look(self) -> None:
        """Bring a backup that goes on up to date."""
        if self.backup is not None:
            await self.backup.look()

    def _environment(self) -> InstalledVersions:
        try:
            parts = dict(self.client.ready().parts)
        except SteelyardError:  # an operator's to know, or a part that is not ready
            parts = {}
        newest = self.client.decision_log(limit=1).data
        days = None
        if newest:
            stored = self.client.stored_decision(newest[0].id)
            days = (stored.expires_at - stored.created_at) / _DAY_S
        return InstalledVersions(self.client.health(), self.client.capabilities(), parts, days)


def show_account(account: AccountSummary) -> Viewable:
    """Show the account, its spending limit, and its rate limits."""
    wallet = account.wallet
    view = facts(
        {
            "Name": account.user.name,
            "Credit": (
                f"{usd(wallet.available_usd)}, and {usd(wallet.reserved_usd)} held by work in progress"
                if account.accounts_enabled
                else "not counted: programs on this machine need no key"
            ),
        }
    )
    limits = Details(
        lambda: [show_limits(account.effective_limits)], "limits of a request and a minute"
    )
    return stack(view, limits)


def show_environment(environment: InstalledVersions) -> Viewable:
    """Show the server's functions; its parts, prices and libraries under *Details*."""
    discovery = environment.discovery
    views: list[Viewable] = [
        verdict("unsure", f"{warning.code}:", escape_markdown(warning.message))
        for warning in discovery.warnings
    ]
    prices = discovery.pricing.input_tokens_per_million_usd
    is_free = not any(float(price) for price in prices.values())
    broken = [name for name, state in environment.parts.items() if state != "ok"]
    values = {
        "Answers by": environment.health.model,
        "Training": _on(is_on=discovery.training_available),
        "Labeling by a model": _on(is_on=discovery.labeling_available),
        "Prompt tuning": _on(is_on=discovery.prompt_tuning.available),
        "Price": "every model here is free" if is_free else "by model: see Details",
    }
    if environment.retention_days is not None:
        days = f"{environment.retention_days:g} day{'' if environment.retention_days == 1 else 's'}"
        values["Stored answers are kept for"] = days
    if broken:
        values["Not working"] = ", ".join(broken)
    exact = {
        "Server": f"Steelyard {environment.health.version}",
        "Engine": environment.health.engine,
        **{f"Price of {model}": f"{price} USD a million tokens" for model, price in prices.items()},
        **{f"Part {name}": state for name, state in environment.parts.items()},
        **{name: _version(name) for name in _PACKAGES},
    }
    details = Details(
        lambda: [facts(exact), show_limits(discovery.limits)],
        "engine, prices, parts, libraries, limits",
    )
    return stack(*views, facts(values), details)


def _on(*, is_on: bool) -> str:
    return "on" if is_on else "off: this server is not set up for it"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
