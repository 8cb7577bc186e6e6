"""The fixed requests of a comparison cover all shapes of passes."""

from __future__ import annotations

import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.scoring.onnx import PACKED_TOKENS, WHOLE_DECISION_TOKENS, OnnxScorer
from steelyard.serving.decide import DecideService
from steelyard.triton import parity
from steelyard.triton.parity import fixed_requests
from support.models.random_model import WORDS


def test_they_are_the_same_each_time():
    assert list(fixed_requests()) == list(fixed_requests())


@pytest.mark.parametrize("words", [parity.WORDS, WORDS], ids=["long", "short"])
def test_they_are_valid_and_cover_every_kind_and_stage(base, monkeypatch, words):
    # The random model's tokenizer reads its own words as a token each, others letter by letter.
    monkeypatch.setattr(parity, "WORDS", words)
    decide = DecideService(
        model_name="m", temperatures=TemperatureTable(), tokenizer=base.files.tokenizer
    )
    scorer = OnnxScorer(None, base.files.tokenizer, name="m", engine_name="")
    kinds, packed, staged, large = set(), 0, 0, 0
    for together in fixed_requests():
        laid = [scorer.lay_out(decide.prepare(request).rendered) for request in together]
        short = [one for one in laid if len(one.layout) <= PACKED_TOKENS]
        packed = max(packed, len(short))
        staged += len(laid) - len(short)
        for one in laid:
            kinds |= set(one.layout.kinds)
            large += sum(stop - start > WHOLE_DECISION_TOKENS for start, stop in one.layout.spans)
    assert kinds == {"single", "binary", "ordinal"}
    assert packed > 1
    assert staged
    assert large
