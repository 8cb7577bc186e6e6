"""Steelyard: calibrated decisions in process, from a shell or over HTTP.

``steelyard.decide`` answers a request in this process, and ``steelyard.lint`` says what about one
makes its answers worse. Importing the package loads none of the engine, the web framework or NumPy:
they load with the first decision.

Examples
--------
>>> import steelyard
>>> answer = steelyard.decide(
...     "Invoice 118 was paid twice.",
...     [{"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}],
... )  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.version import __version__

__all__ = ["__version__", "decide", "lint"]


def decide(
    context: str | Mapping[str, Any] | Sequence[Any],
    decisions: Sequence[Mapping[str, Any]],
    *,
    temperature: float | None = None,
    model: str | None = None,
) -> dict[str, Any]:
    """Answer decisions about one context, in this process.

    The fields are those of ``POST /v1/decide`` and so is the answer. The model loads on the first
    call and stays loaded.

    Parameters
    ----------
    context : str, mapping or sequence
        What the decisions are about: a text, or any JSON object or array.
    decisions : sequence of mapping
        1 to 64 of them, each with ``id``, ``question``, and by kind ``kind``, ``outcomes``,
        ``rubric`` and the fields of the action.
    temperature : float, optional
        0.2 to 5; below 1 sharpens the probabilities, above 1 softens them.
    model : str, optional
        Name of a base model; the shipped one when left out.

    Returns
    -------
    dict
        ``decisions`` maps each id to its ``probabilities`` (in outcome order, summing to 1),
        ``top``, ``p_top`` and ``action``; beside it ``model``, ``usage`` and ``timing_ms``.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When a field cannot be used; ``details`` names each one.
    steelyard.errors.EngineUnavailableError
        When the model cannot be loaded or is too busy.

    Notes
    -----
    Safe to call from several threads; concurrent calls share the engine's passes.
    """
    from steelyard.bootstrap import default_deployment

    request: dict[str, Any] = {"context": context, "decisions": decisions}
    if temperature is not None:
        request["temperature"] = temperature
    if model is not None:
        request["model"] = model
    return default_deployment().answers.answer_dict(request)


def lint(
    context: str | Mapping[str, Any] | Sequence[Any],
    decisions: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Say what about decisions makes their answers worse; loads no model.

    The fields are those of ``decide``, and the answer is that of ``POST /v1/lint``.

    Parameters
    ----------
    context : str, mapping or sequence
        What the decisions are about.
    decisions : sequence of mapping
        1 to 64 of them, as for ``decide``.

    Returns
    -------
    dict
        ``warnings``: a list of dicts with ``decision`` (its id), ``rule``, ``severity``
        (``warning`` or ``info``) and ``message``, by decision and then by rule. Empty when nothing
        was found.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When a field cannot be used; ``details`` names each one.

    Examples
    --------
    >>> question = {"id": "late", "kind": "binary", "question": "Is the parcel not late?"}
    >>> [warning["rule"] for warning in lint("It came on time.", [question])["warnings"]]
    ['negation']
    """
    from steelyard.services.lint import lint_dict

    return lint_dict({"context": context, "decisions": decisions})
