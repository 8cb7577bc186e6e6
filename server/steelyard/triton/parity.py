"""Compare the answers of a Triton server and of this process, on a fixed set of requests.

The passes of a model are run twice, through the engine that the service uses for a server and
through this process's own, with everything else the same. Requests of every kind, packed ones and
ones read in stages must give the same probabilities, up to the rounding of floating point.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from tritonclient.grpc import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from steelyard.calibration.temperature import TemperatureTable
from steelyard.errors import SteelyardError
from steelyard.scoring.engine import PassEngine
from steelyard.scoring.entailment.encoder import Encoder
from steelyard.scoring.onnx import OnnxScorer
from steelyard.scoring.remote.triton_address import TritonAddress
from steelyard.scoring.remote.triton_engine import TritonEngine, connect
from steelyard.scoring.remote.triton_failures import failure_of
from steelyard.serving.decide import DecideService, Prepared
from steelyard.settings import InvalidSettingError
from steelyard.triton.repository import (
    PRECISION,
    SHA256,
    VERSION,
    ModelSource,
    ReaderSource,
    Source,
)

ParityVerdict = Literal["equal", "different", "failed", "foreign", "unloaded"]

#: A difference of a probability that is too large.
LIMIT = 1e-3
_ASK_S = 5.0
#: Seconds that a pass may take: one of a long context does on a machine that is busy.
_PASS_S = 60.0
_ROUNDS = 5
_READY = "READY"
#: Pairs that a reader is compared on.
_PAIRS = 6

_TEXT = (
    "the invoice was paid twice and the customer asks for the money back before friday because "
    "a parcel from the second warehouse arrived late with a broken screen while support said "
    "nothing about the delay or the new address on file so please check the order again"
)
WORDS = _TEXT.split()


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The comparison of one model."""

    model: str
    verdict: ParityVerdict
    precision: str = ""
    n_decisions: int = 0
    difference: float = 0.0
    vector_difference: float = 0.0
    here_ms: float = 0.0
    there_ms: float = 0.0
    message: str = ""


def check_server(address: TritonAddress, sources: Mapping[str, Source]) -> list[ModelComparison]:
    """Compare every model that a server has loaded."""
    comparisons = []
    with closing(connect(address)) as client:
        try:
            index = client.get_model_repository_index(client_timeout=_ASK_S).models
            for entry in sorted(index, key=lambda entry: str(entry.name)):
                if entry.state != _READY:
                    comparisons.append(
                        ModelComparison(entry.name, "unloaded", message=entry.reason)
                    )
                    continue
                config = client.get_model_config(entry.name, VERSION, client_timeout=_ASK_S).config
                parameters = {key: value.string_value for key, value in config.parameters.items()}
                comparisons.append(
                    _compare(client, address, entry.name, parameters, sources.get(entry.name))
                )
        except InferenceServerException as error:
            raise failure_of(error, address.url, "its models") from error
    return comparisons


def is_good(comparisons: Sequence[ModelComparison]) -> bool:
    """Return whether at least one model was compared, and each of them is equal."""
    verdicts = {comparison.verdict for comparison in comparisons}
    return "equal" in verdicts and not verdicts & {"different", "failed"}


def compare_engines(
    source: ModelSource, here: PassEngine, there: PassEngine, *, rounds: int = _ROUNDS
) -> ModelComparison:
    """Compare two engines of the same weights on the fixed requests."""
    ours, theirs = (
        source.files.scorer({}, threads=0, engine=pass_engine) for pass_engine in (here, there)
    )
    decide = DecideService(
        model_name=source.name,
        temperatures=TemperatureTable.from_dict(
            source.files.manifest["temperatures"][source.files.precision]
        ),
        tokenizer=source.files.tokenizer,
    )
    n_decisions, difference, vector_difference = 0, 0.0, 0.0
    for together in fixed_requests():
        prepared = [decide.prepare(payload) for payload in together]
        for answer, other in zip(
            _answers(decide, ours, prepared), _answers(decide, theirs, prepared), strict=True
        ):
            n_decisions += 1
            difference = _largest(difference, answer[0], other[0])
            vector_difference = _largest(vector_difference, answer[1], other[1])
    short = [decide.prepare(next(iter(fixed_requests()))[0]).rendered]
    return ModelComparison(
        source.name,
        # NaN and infinity are differences too.
        "equal" if difference < LIMIT and math.isfinite(vector_difference) else "different",
        precision=source.files.precision,
        n_decisions=n_decisions,
        difference=difference,
        vector_difference=vector_difference,
        here_ms=_median_ms(ours, short, rounds),
        there_ms=_median_ms(theirs, short, rounds),
    )


def fixed_requests() -> Iterator[list[dict[str, Any]]]:
    """Yield the requests, in lists that are scored together.

    First short ones alone, of every kind and of few and many outcomes; then some packed into one
    pass; then a context that is read in stages, with decisions that fit a row and one that does
    not, beside short ones.
    """
    short = [_request(n, 12 + 9 * n) for n in range(4)]
    for request in short:
        yield [request]
    yield [_request(n, 8 + 11 * (n % 5)) for n in range(4, 10)]
    long = _request(3, 600)
    long["decisions"].append(_decision("large", "single", 64, 40))
    yield [short[0], long, short[1]]


def _request(seed: int, n_words: int) -> dict[str, Any]:
    return {
        "context": _text(seed, n_words),
        "decisions": [
            _decision(f"single{seed}", "single", 12 if seed % 4 == 1 else 2 + seed % 3, seed),
            _decision(f"binary{seed}", "binary", 0, seed + 1),
            _decision(f"ordinal{seed}", "ordinal", 2 + seed % 3, seed + 2),
        ],
    }


def _decision(name: str, kind: str, n_outcomes: int, seed: int) -> dict[str, Any]:
    decision: dict[str, Any] = {
        "id": name,
        "kind": kind,
        "question": f"{_text(seed + 5, 6).capitalize()}?",
    }
    outcomes = {f"{_text(seed + i, 2)} {i}": _text(seed + 3 * i, 5) for i in range(n_outcomes)}
    if kind == "single":
        decision["outcomes"] = outcomes
    elif kind == "ordinal":
        decision["rubric"] = list(outcomes)
    return decision


def _text(seed: int, n_words: int) -> str:
    """Return words that are the same in every run and differ between seeds."""
    return " ".join(
        WORDS[(seed * 13 + i * (7 + seed % 4) + i // 11) % len(WORDS)] for i in range(n_words)
    )


def _compare(
    client: InferenceServerClient,
    address: TritonAddress,
    name: str,
    parameters: Mapping[str, str],
    source: Source | None,
) -> ModelComparison:
    precision = parameters.get(PRECISION, "")
    if SHA256 not in parameters:
        message = "It was not exported by steelyard."
        return ModelComparison(name, "foreign", precision, message=message)
    if source is None:
        message = "This installation has no such model in use; use the service's home."
        return ModelComparison(name, "failed", precision, message=message)
    here = source.files
    if parameters[SHA256] != source.sha256 or precision != here.precision:
        message = (
            f"The server has {parameters[SHA256][:12]} in {precision}, and this installation "
            f"{source.sha256[:12]} in {here.precision}; export it again, or use the same --engine."
        )
        return ModelComparison(name, "failed", precision, message=message)
    if isinstance(source, ReaderSource):
        return _compare_reader(client, address, source)
    there = TritonEngine(
        address, name, sha256=source.sha256, precision=precision, timeout_s=_PASS_S
    )
    local: PassEngine | None = None
    try:
        there.open(loads=False)
        local = source.engine()
        return compare_engines(source, local, there)
    except SteelyardError as error:
        return ModelComparison(name, "failed", precision, message=error.message)
    finally:
        there.close()
        if local is not None:
            local.close()


def _compare_reader(
    client: InferenceServerClient, address: TritonAddress, source: ReaderSource
) -> ModelComparison:
    """Compare the logits of a reader for pairs of a text and a statement, each a pass of its own."""
    difference, here_ms, there_ms = 0.0, [], []
    try:
        encoder = Encoder(source.facts)
        for seed in range(_PAIRS):
            pair = _text(seed, 12 + 30 * seed), _text(seed + 5, 6)
            began = time.perf_counter()
            ours = encoder.logits(*pair)
            here_ms.append((time.perf_counter() - began) * 1000.0)
            inputs = []
            for name, array in encoder.inputs(*pair).items():
                given = InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
                inputs.append(given.set_data_from_numpy(array))
            began = time.perf_counter()
            answer = client.infer(
                source.name,
                inputs,
                VERSION,
                outputs=[InferRequestedOutput(encoder.output)],
                client_timeout=_PASS_S,
            )
            there_ms.append((time.perf_counter() - began) * 1000.0)
            theirs = np.asarray(answer.as_numpy(encoder.output), np.float64).reshape(-1)
            if theirs.shape != ours.shape or not np.isfinite(theirs).all():
                difference = math.nan
                break
            shares = [np.exp(logits - np.logaddexp.reduce(logits)) for logits in (ours, theirs)]
            difference = _largest(difference, *shares)
    except (SteelyardError, InvalidSettingError, InferenceServerException) as error:
        if isinstance(error, InferenceServerException):
            error = failure_of(error, address.url, source.name)
        precision = source.files.precision
        return ModelComparison(source.name, "failed", precision, message=str(error))
    return ModelComparison(
        source.name,
        "equal" if difference < LIMIT else "different",
        precision=source.files.precision,
        n_decisions=_PAIRS,
        difference=difference,
        here_ms=statistics.median(here_ms),
        there_ms=statistics.median(there_ms),
    )


def _answers(
    decide: DecideService, scorer: OnnxScorer, prepared: Sequence[Prepared]
) -> Iterator[tuple[list[float], Any]]:
    """Yield the probabilities and the marker vectors of every decision."""
    scored = scorer.score([entry.rendered for entry in prepared])
    for entry, scores in zip(prepared, scored, strict=True):
        for decision, score in zip(entry.request.decisions, scores, strict=True):
            yield decide.probabilities(decision, score), score.marker_vectors


def _largest(so_far: float, ours: Any, theirs: Any) -> float:
    differences = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64))
    # Python's ``max`` would lose a NaN.
    return float(np.max([so_far, differences.max(initial=0.0)]))


def _median_ms(scorer: OnnxScorer, requests: Sequence[Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        scorer.score(requests)
        times.append((time.perf_counter() - began) * 1000.0)
    return statistics.median(times) if times else 0.0
