"""Bounds of a request that rooms share, and that accounts publish."""

from __future__ import annotations

#: The most decisions of a request.
MAX_DECISIONS = 64
#: The most questions of a request in the form of OpenAI's clients, of which each is a decision.
MAX_QUESTIONS = 128
#: The most decisions of a request to the playground.
MAX_PLAYGROUND_DECISIONS = 8
#: Bounds of the outcomes of a decision.
MIN_OUTCOMES, MAX_OUTCOMES = 2, 255
