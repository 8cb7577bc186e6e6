"""Answering for one family: its switch, those of its models, and keep warm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import panel_material_ui as pmui

from steelyard.errors import LiveLimitError, PriceChangedError, SteelyardError, WarmLimitError
from steelyard.families.wire import Answering, KeptWarm, ModelVersion
from steelyard.wire.decoding import convert
from steelyard_workbench.kit.words import ago, escape_markdown
from steelyard_workbench.pages.families.changes import FamilyChanges, adapter_of


class Serving(FamilyChanges):
    """Switching a family and its models, and keeping them warm."""

    async def switch(self, on: bool) -> None:
        """Switch the family on or off."""
        served = adapter_of(self.family.served)
        await self._with_places(
            f"Switch {self._name} {'on' if on else 'off'}",
            f"{self._name} is {'on' if on else 'off'}.",
            lambda names: self._client.families.switch(
                self._name, on, switch_off=names or None, served=served
            ),
        )

    async def switch_model(self, model: ModelVersion, on: bool) -> None:
        """Switch a model's own switch."""
        await self._with_places(
            f"Switch {model.ref} {'on' if on else 'off'}",
            f"The switch of {model.ref} is {'on' if on else 'off'}.",
            lambda names: self._client.models.switch(
                model.ref, on, switch_off=names or None, adapter=model.adapter
            ),
        )

    async def ask_switch_off(self) -> None:
        """Ask about switching the family off."""
        served = adapter_of(self.family.served)
        warm = " Its keep warm stops." if self.family.keep_warm else ""
        self._ask(
            f"Switch {self._name} off?",
            f"Calls to {self._name} are refused until it is on again."
            f"{warm} Numbers whose own switch is on go on answering.",
            action="Switch off",
            act=lambda: self._confirmed(
                f"{self._name} is off.",
                lambda: self._client.families.switch(self._name, False, served=served),
            ),
        )

    async def keep_warm(self) -> None:
        """Keep the family's served model loaded; the price of an hour is asked about first."""
        served = adapter_of(self.family.served)
        await self._keep_warm(
            self._name,
            lambda price, names: self._client.families.keep_warm(
                self._name, max_price_usd=price, switch_off=names or None, served=served
            ),
        )

    async def keep_model_warm(self, model: ModelVersion) -> None:
        """Keep a model loaded through its own switch; the price is asked about first."""
        await self._keep_warm(
            model.ref,
            lambda price, names: self._client.models.keep_warm(
                model.ref, max_price_usd=price, switch_off=names or None, adapter=model.adapter
            ),
        )

    async def stop_warm(self, model: ModelVersion | None = None) -> None:
        """Stop keeping the family, or a model of it, warm."""
        served = adapter_of(self.family.served)
        name = self._name if model is None else model.ref
        stop = (
            partial(self._client.families.keep_warm, name, False, served=served)
            if model is None
            else partial(self._client.models.keep_warm, name, False, adapter=model.adapter)
        )
        await self._directly(f"Stopping the keep warm of {name}", f"{name} is not kept warm.", stop)

    async def _with_places(self, doing: str, done: str, call: Callable[[list[str]], Any]) -> None:
        """Do something that takes a place; where none is free, ask for a model to switch off."""
        try:
            await self._run(done, lambda: call([]))
        except (LiveLimitError, WarmLimitError) as error:
            self._ask_places(doing, done, error, call)
        except Exception as error:  # noqa: BLE001
            await self._fail(error, doing)

    def _ask_places(
        self, doing: str, done: str, error: SteelyardError, call: Callable[[list[str]], Any]
    ) -> None:
        boxes = pmui.CheckBoxGroup(
            label="Switch off",
            options={holder.label: holder for holder in holders_of(error)},
            value=[],
            inline=False,
        )

        async def go_on() -> bool:
            names = dict.fromkeys(name for holder in boxes.value for name in holder.names)
            return await self._confirmed(done, lambda: call([*names]))

        self._ask(
            f"{doing}?",
            f"{escape_markdown(error.message)} Choose which model to switch off.",
            boxes,
            action="Switch these off and go on",
            act=go_on,
        )

    async def _keep_warm(self, name: str, call: Callable[[str, list[str]], Any]) -> None:
        """Keep something warm; with a bound of nothing the server tells the price of an hour."""
        doing, done = f"Keep {name} warm", f"{name} is kept warm."
        try:
            await self._run(done, lambda: call("0", []))
        except (LiveLimitError, WarmLimitError) as error:
            self._ask_places(doing, done, error, lambda names: call("0", names))
        except PriceChangedError as error:
            price = _price_of(error)
            if price is None:
                await self._fail(error, doing)
                return
            self._ask_price(doing, done, price, call)
        except Exception as error:  # noqa: BLE001
            await self._fail(error, doing)

    def _ask_price(
        self, doing: str, done: str, price: str, call: Callable[[str, list[str]], Any]
    ) -> None:
        async def go_on() -> bool:
            try:
                return await self._confirmed(done, lambda: call(price, []))
            except (LiveLimitError, WarmLimitError) as error:
                self._ask_places(doing, done, error, lambda names: call(price, names))
                return False

        self._ask(
            f"{doing}?",
            f"An hour costs **{price} USD**. It is held now and at the start of every hour "
            "to come; the minutes used are charged.",
            action=f"Keep warm for {price} USD an hour",
            act=go_on,
        )


def _price_of(error: SteelyardError) -> str | None:
    for detail in error.details or ():
        price = detail.get("price_usd")
        if isinstance(price, str):
            return price
    return None


@dataclass(frozen=True, slots=True)
class Holder:
    """A model that takes a place."""

    model: str
    names: tuple[str, ...]
    used_at: float | None

    @property
    def label(self) -> str:
        """The label of the button."""
        return f"{self.model}: switches off {', '.join(self.names)}; used {ago(self.used_at)}"


def holders_of(error: SteelyardError) -> list[Holder]:
    """Return the models that take the places, the longest unused first, from an error's details."""
    holders: list[Holder] = []
    for detail in error.details or ():
        holders += [
            Holder(
                model.model, (*((model.model,) if model.on else ()), *model.serves), model.used_at
            )
            for model in _read(detail, "answering", Answering)
        ]
        holders += [
            Holder(
                model.model,
                (*((model.model,) if model.keep_warm else ()), *model.families),
                model.used_at,
            )
            for model in _read(detail, "warm", KeptWarm)
        ]
    return holders


def _read(detail: Mapping[str, Any], name: str, type_: type[Any]) -> list[Any]:
    return convert(detail.get(name, []), list[type_])  # type: ignore[valid-type]
