"""The field of the most that is stored of answers: of a key, an account or a named decision."""

from __future__ import annotations

import panel_material_ui as pmui

from steelyard.wire.storing import STORE_SENTENCES, StoreSetting


def store_field(value: StoreSetting = "on") -> pmui.Select:
    """Return the field, which says in words what is stored."""
    options = {sentence: setting for setting, sentence in STORE_SENTENCES.items()}
    return pmui.Select(label="Stored of it at most", options=options, value=value, width=270)
