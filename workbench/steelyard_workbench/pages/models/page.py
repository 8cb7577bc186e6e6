"""All models: the shipped ones, those of other servers, routes, and families, with how each stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import panel as pn
from msgspec import UNSET
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.model_choices import ModelChoice, list_choices
from steelyard.models.pressures import REWORDED
from steelyard.models.wire import Model
from steelyard_workbench.kit.basics import action_button
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import empty, facts, heading, with_details
from steelyard_workbench.kit.words import everyday, measure_text, percent_text
from steelyard_workbench.pages.models.judges import JudgeSection
from steelyard_workbench.pages.models.routes import Routes

_KINDS = {"family": "model line", "base": "shipped", "connected": "connected", "route": "combined"}
#: Of models that are connected: what each wire is, and where it runs.
_WIRES = {
    "connected-entailment": ("reader", "this server"),
    "connected-gguf": ("judge", "this machine"),
    "connected-hub": ("encoder", "this server"),
    "route": ("combined", "its models"),
}
_CONNECT = with_details(
    "Models of other servers, which an operator connects, are checked here, and combined with "
    "others. Programs name both like any other model.",
    "`steelyard model add NAME` connects one (with `--teacher` it labels rows too); `steelyard model stress NAME` tests one under pressure.",
)


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A name that requests may have, and the facts of its model."""

    choice: ModelChoice
    model: Model | None


def fetch_models(client: Client) -> list[ListedModel]:
    """Return families, shipped and connected models, and routes; numbers of families are not among them."""
    models, families = client.models.list(), client.families.list()
    by_id = {model.id: model for model in models.data}
    served = {family.id: family.served for family in families.data}
    listed = []
    for choice in list_choices(models, families):
        if choice.kind == "number":
            continue
        number = served.get(choice.name)
        listed.append(ListedModel(choice, by_id.get(choice.name if number is None else number.ref)))
    return listed


class ModelsPage(Page):
    """Every model that can be asked."""

    slug = "models"
    title = "All models"
    look_ms = 1500
    summary = "Every model that a request can name, and whether it answers now."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.opened = pn.Column(width=420, visible=False)
        self.judges: JudgeSection | None = None
        self.routes: Routes | None = None

    def build(self) -> list[Viewable]:
        """Return the list, and the model that is open beside it."""
        self.opened.visible = False
        self.listed = Loaded("The models", lambda: fetch_models(self.client), self._show)
        who = self.session.who
        is_operator = who is None or who.user.is_operator
        self.judges = JudgeSection(self.session, self.visit) if is_operator else None
        self.routes = Routes(self.session, self.visit) if is_operator else None
        shown = [side_by_side(self.part(self.listed), self.opened), empty(_CONNECT)]
        for section in (self.judges, self.routes):
            if section is not None:
                shown.append(section.__panel__())
                self.parts += section.parts
        return shown

    async def look(self) -> None:
        """Refresh running work of judges and routes, and the list once a route changed."""
        if not self.session.is_connected:
            return
        if self.judges is not None:
            await self.judges.look()
        if self.routes is not None and await self.routes.look():
            await self.listed.refresh(quietly=True)

    def _show(self, models: Sequence[ListedModel]) -> Viewable:
        return mark_table(
            ("model", "kind", "now", "USD a million tokens", "changed by small edits", "runs on"),
            [
                (
                    listed.choice.name,
                    _kind_of(listed),
                    listed.choice.reason or listed.choice.note or "answers",
                    _price_of(listed.model),
                    _flips_of(listed.model),
                    "" if listed.model is None else _place_of(listed.model),
                )
                for listed in models
            ],
            label="Models",
            numbers=(3,),
            open_=lambda place: self.open_model(models[place]),
            opens="Show what is known of it",
        )

    def open_model(self, listed: ListedModel) -> None:
        """Show a model, and where to go on with it."""
        choice, model = listed.choice, listed.model
        values = {"Kind": _kind_of(listed), "Now": choice.reason or "answers"}
        if model is not None:
            values |= {
                "What it is": everyday(model.description),
                "Runs on": f"{_place_of(model)} ({model.engine})",
                "Released": model.release_date,
                "Price": f"{_price_of(model)} USD a million input tokens",
                "Longest request": f"{model.max_input_tokens:,} tokens",
            }
            values |= _stress_facts(model)
        ask = action_button(
            "Ask it",
            lambda _: self.session.open("playground", model=choice.name, named=""),
            variant="contained",
            size="small",
            disabled=choice.reason is not None,
        )
        actions = [ask]
        if choice.kind == "family":
            family = action_button(
                "Open the model line",
                lambda _: self.session.open("families", family=choice.name, job=""),
                size="small",
            )
            actions.append(family)
        close = action_button(
            "Close", lambda _: self.opened.param.update(visible=False), variant="text", size="small"
        )
        self.opened[:] = [heading(choice.name), facts(values), pn.Row(*actions, close)]
        self.opened.visible = True


def _flips_of(model: Model | None) -> str:
    """Return the share of answers that flip where they do most, beside that of harmless wording."""
    if model is None or model.stress is UNSET:
        return "—"
    shares = {line.pressure: line.flipped for line in model.stress.lines}
    noise = shares.pop(REWORDED, None)
    known = {name: share.value for name, share in shares.items() if share is not None}
    if not known:
        return "—"
    worst = max(known, key=lambda name: known[name])
    beside = "" if noise is None else f"; noise {percent_text(noise.value)}"
    return f"{percent_text(known[worst])} ({worst}){beside}"


def _stress_facts(model: Model) -> dict[str, str]:
    if model.stress is UNSET:
        return {"Under pressure": "not tested"}
    return {f"Flipped: {line.pressure}": measure_text(line.flipped) for line in model.stress.lines}


def _kind_of(listed: ListedModel) -> str:
    """Return the kind of a model, in a word."""
    engine = "" if listed.model is None else listed.model.engine
    return _WIRES.get(engine, (_KINDS[listed.choice.kind], ""))[0]


def _place_of(model: Model) -> str:
    """Return where a model runs."""
    is_elsewhere = model.engine.startswith("connected-")
    return _WIRES.get(model.engine, ("", "another server" if is_elsewhere else "this server"))[1]


def _price_of(model: Model | None) -> str:
    if model is None or model.decision_price_nano is None:
        return "—"
    usd = Decimal(model.decision_price_nano) / 1000
    return f"{usd.normalize():f}" if usd else "0"
