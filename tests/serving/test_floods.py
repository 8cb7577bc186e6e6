"""A flood of one account: refused from the head alone, for longer and longer, while there is no room."""

from __future__ import annotations

import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.serving.floods import MOST_S, Floods


class Engine:
    is_full = True
    looks = 0

    def check(self):
        self.looks += 1
        if self.is_full:
            raise EngineUnavailableError("The scoring queue is full.", retry_after_s=0.1)


def test_a_flood_waits_longer_each_time_and_ends_with_the_first_room():
    now, engine = [0.0], Engine()
    floods = Floods(lambda: now[0])
    floods.check("crowd")  # nobody was refused
    refusal = EngineUnavailableError("The scoring queue is full.", retry_after_s=0.1)
    floods.note("crowd", refusal, engine.check)
    waits = [refusal.retry_after_s]
    for _ in range(1_000):
        with pytest.raises(EngineUnavailableError) as caught:
            floods.check("crowd")
        waits.append(caught.value.retry_after_s)
    assert waits == sorted(waits)
    assert (waits[0], waits[20], waits[-1]) == (1.1, 2.0, MOST_S)
    floods.check("quiet")
    engine.is_full = False
    floods.check("crowd")
    engine.is_full, now[0] = True, 10.0
    with pytest.raises(EngineUnavailableError) as caught:  # one flood, with a gap
        floods.check("crowd")
    assert 10 < caught.value.retry_after_s < MOST_S
    engine.is_full, now[0] = False, 200.0
    floods.check("crowd")
    looks = engine.looks
    floods.check("crowd")
    assert engine.looks == looks  # it is over
