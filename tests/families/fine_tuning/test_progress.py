"""A trainer's reports, as events and progress of a fine-tune."""

from __future__ import annotations

import msgspec
import pytest

from steelyard.families.fine_tune_wire import JobEvent
from steelyard.families.fine_tuning.progress import ProgressFile, Telling, progress_to_wire
from steelyard.trainer.task import Progress


def report(phase="heads", step=1, steps=10, **given):
    return Progress(phase=phase, step=step, steps=steps, message=f"Doing {phase}.", **given)


def events(*told):
    return [
        JobEvent(seq=number, created_at=0.0, type=type_, message=message)
        for number, (type_, message) in enumerate(told, 1)
    ]


def test_a_line_is_read_once_and_when_it_is_whole(tmp_path):
    path = tmp_path / "progress.jsonl"
    file = ProgressFile(path)
    assert file.read() == []
    line = msgspec.json.encode(report())
    path.write_bytes(line + b"\n" + line[:10])
    assert file.read() == [report()]
    with path.open("ab") as more:
        # A line that a kill cut short, ended by the next trainer.
        more.write(b"\n" + line + b"\n")
    assert file.read() == [report()]
    assert file.read() == []


@pytest.mark.parametrize("with_lora", [False, True])
def test_a_training_reports_each_five_percent_once(with_lora):
    phases = ["lora", "features", "heads"] if with_lora else ["features", "heads"]
    reports = [report(phase, step, 200) for phase in phases for step in range(201)]
    telling = Telling([], with_lora=with_lora)
    told = [event for one in reports for event in telling.events_of(one)]
    percents = [int(message.split()[0]) for _, message in told]
    assert percents == list(range(5, 100, 5))[: len(percents)]
    assert len(percents) >= 17
    # Another process that takes over tells nothing twice.
    again = Telling(events(*told[:10]), with_lora=with_lora)
    assert [event for one in reports for event in again.events_of(one)] == told[10:]


def test_a_step_says_its_loss():
    telling = Telling([], with_lora=False)
    ((type_, message),) = telling.events_of(report("heads", 5, loss=0.123456))
    assert (type_, message) == ("step", "80 %: Doing heads. The loss is 0.1235.")


def test_the_end_of_the_training_is_reported_once_and_last():
    telling = Telling([], with_lora=False)
    told = [event for step in range(3) for event in telling.events_of(report("scoring", step))]
    assert [type_ for type_, _ in told] == ["trained", "scoring"]
    assert telling.events_of(report("gate", 1, 1)) == []
    # A trainer that was killed while scoring begins with the phases before.
    assert telling.events_of(report("heads", 9)) == []
    again = Telling(events(*told), with_lora=False)
    assert again.events_of(report("scoring", 1)) == []


def test_tokens_are_reported_once():
    telling = Telling([], with_lora=False)
    told = telling.count_tokens(12_345, 678)
    assert told == [("tokens_counted", "678 rows to train on; 12,345 tokens are trained.")]
    assert telling.count_tokens(12_345, 678) == []
    assert Telling(events(*told), with_lora=False).count_tokens(12_345, 678) == []


def test_progress_names_the_phases_of_the_wire():
    assert progress_to_wire(report("gate", 0, 1)).phase == "scoring"
    told = progress_to_wire(report("lora", 3, 40, loss=0.5))
    assert (told.phase, told.step, told.steps, told.loss) == ("lora", 3, 40, 0.5)
    assert Telling([], with_lora=False).events_of(report("lora", 3, 0)) == []
