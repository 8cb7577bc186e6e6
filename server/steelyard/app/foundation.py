"""The foundation that the rooms of a server and of its job worker are opened on."""

from __future__ import annotations

import functools
from contextlib import ExitStack

from steelyard.app.backup import make_backup
from steelyard.app.rooms import job_queues, model_uses, names_of_decisions
from steelyard.house import House
from steelyard.ledger.prices import Prices
from steelyard.serving import base
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.readiness import write_probe
from steelyard.serving.registry import Engines
from steelyard.settings import InvalidSettingError, Settings, frames_url_of, home_of
from steelyard.storage import open_state
from steelyard.storage.damage import DamageNotes, damage_of_database, is_empty_database
from steelyard.storage.frame_store import FrameStore, open_store
from steelyard.storage.home import state_path_of, state_url_of
from steelyard.storage.probing import StateProbe


def open_house(
    settings: Settings,
    load_model: base.ModelLoader | None,
    load_further: base.NamedModelLoader | None,
    closing: ExitStack,
    *,
    answers: bool = True,
) -> House:
    """Open the state and load every base model."""
    _check_state_is_there(settings)
    state = open_state(
        state_url_of(settings),
        DamageNotes(home_of(settings)),
        timeout_s=settings.state_timeout_s,
    )
    closing.callback(state.close)
    host = base.open_host(settings, closing)
    declarations = Declarations(state, home_of(settings))
    models, bases = base.open_models(
        settings,
        Prices.parse(settings.prices),
        base.parse_base_models(settings.base_models),
        load_model or functools.partial(base.load_named_model, host=host),
        load_further or functools.partial(base.load_further_model, host=host),
        closing,
        host,
        declarations,
    )
    house = House(
        settings=settings,
        state=state,
        frames=functools.partial(open_frames, settings),
        closing=closing,
        answers=answers,
        decisions=names_of_decisions(),
        queues=job_queues(),
        model_uses=model_uses,
        back_up=functools.partial(make_backup, settings),
    )
    house.add(settings, state, StateProbe(state, write_probe), declarations)
    house.add(models, Engines(bases, host))
    return house


def _check_state_is_there(settings: Settings) -> None:
    """Refuse to make a state beside files that another one refers to."""
    path = state_path_of(settings)
    if path is None or settings.new_state == "on" or not is_empty_database(path):
        return
    frames = home_of(settings) / "frames"
    if next(frames.glob("*/owner/state"), None) is not None:
        raise InvalidSettingError(
            f"The state {path} is empty or missing, and {frames} has the files of one. Put it back, "
            "with `steelyard restore` from a backup; or start with --new-state on, which begins anew "
            "and leaves the files."
        )


def open_frames(settings: Settings, name: str) -> FrameStore:
    """Return the store of a room's files."""
    try:
        return open_store(frames_url_of(settings), name, DamageNotes(home_of(settings)))
    except ValueError as error:
        raise InvalidSettingError(
            f"The setting frames_url (STEELYARD_FRAMES_URL) cannot be used: {error}"
        ) from error


def database_damage(settings: Settings) -> str | None:
    """Return the damage found in the state's file; ``None`` without damage or without a file."""
    path = state_path_of(settings)
    return None if path is None else damage_of_database(path, deep=False)
