"""What the routes need, handed to ``create_app`` by the composition root."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.services.answers import AnswerService


@dataclass(frozen=True, slots=True)
class ApiServices:
    """The services behind the routes.

    Parameters
    ----------
    answers : steelyard.services.answers.AnswerService
        Answers decide and playground requests.
    model : str
        Name of the model that answers, for health.
    engine : str
        Engine and precision, for health.
    body_bytes : int
        Largest request body.
    deadline_s : float
        Seconds after which a request without an answer ends.
    """

    answers: AnswerService
    model: str
    engine: str
    body_bytes: int
    deadline_s: float
