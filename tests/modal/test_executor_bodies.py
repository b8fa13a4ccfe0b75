"""What a body does has the same end on Modal as on this machine: the same server and supervisor see to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.local import LocalExecutor

if TYPE_CHECKING:
    from modal_studies import Workshop
    from standin_handle import Service

    from pytest_prereg.measure.executors.base import Job, Result

TOP = """
import random, threading
class Odd(Exception):
    def __init__(self, one, other):
        super().__init__(f'{one} and {other}')
"""
BODY = """
how = params['how']
chance = random.Random(repeat.seed)
if how == 'many':
    repeat.record('t', [chance.random() for _ in range(350_000)])
else:
    repeat.record('t', chance.random())
if how == 'slow':
    time.sleep(30)
elif how == 'exception':
    raise RuntimeError('no')
elif how == 'two arguments':
    raise Odd('one', 'other')
elif how == 'sys.exit':
    sys.exit(3)
elif how == 'exit':
    os._exit(3)
elif how == 'diagnostics':
    repeat.record('lock', threading.Lock())
elif how == 'seen':
    repeat.record('seen', dict(os.environ))
    repeat.record('at', os.getcwd())
elif how == 'signal':
    os.kill(os.getpid(), signal.SIGSEGV)
"""
ENDS = {
    "good": (Outcome.OK, None),
    "slow": (Outcome.TIMEOUT, "deadline"),
    "exception": (Outcome.TASK_FAILED, "exception"),
    "two arguments": (Outcome.TASK_FAILED, "exception"),
    "sys.exit": (Outcome.TASK_FAILED, "exit"),
    "exit": (Outcome.TASK_FAILED, "exit"),
    "diagnostics": (Outcome.OK, None),
    "signal": (Outcome.TASK_FAILED, "signal"),
    "many": (Outcome.OK, None),
}


@pytest.fixture
def jobs() -> list[dict[str, Any]]:
    timeouts = {how: 0.4 if how == "slow" else 20.0 for how in ENDS}
    return [
        {"index": index, "seed": index, "params": {"how": how}, "timeout": timeouts[how]}
        for index, how in enumerate(ENDS)
    ]


def test_every_end_of_a_body_is_that_which_it_has_here(
    service: Service, workshop: Workshop, jobs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THIS_SHELL", "here")
    executor = workshop.started(BODY, top=TOP, env={"OF_THE_ARM": "there"})
    ended: dict[str, tuple[Job, Result]] = {}
    for asked in jobs:
        executor.launch(workshop.job(executor, **asked))
    executor.launch(workshop.job(executor, index=99, params={"how": "seen"}))
    for _ in range(len(jobs) + 1):
        job, result = executor.collect()
        ended[job.params["how"]] = job, result
    check_seen(ended.pop("seen")[1])
    with LocalExecutor(executor.study, executor.experiment) as local:
        for how, (job, there) in ended.items():
            here = local.run(job)
            assert (there.outcome, there.cause) == (here.outcome, here.cause) == ENDS[how]
            assert there.values == here.values
            assert plain(there.diagnostics) == plain(here.diagnostics)
            assert last_line(there.error) == last_line(here.error)
    executor.close()
    assert len(workshop.bodies()) == 2 * len(ENDS) + 1
    assert service.state()["missing"] == {}
    large = ended["many"][1]
    assert len(json.dumps(large.values)) > 6 << 20
    check_times(ended["good"][1])
    check_place(service, ended["good"][1])


def plain(diagnostics: dict[str, Any]) -> dict[str, str]:
    """Without addresses of objects."""
    return {name: str(value).partition(" at 0x")[0] for name, value in diagnostics.items()}


def last_line(error: str | None) -> str | None:
    return error and error.splitlines()[-1]


def check_times(result: Result) -> None:
    seconds = result.seconds
    assert seconds.keys() == {"queue", "launch", "body", "total"}
    assert 0 < seconds["body"] < seconds["launch"] < seconds["total"]
    assert seconds["queue"] >= 0


def check_place(service: Service, result: Result) -> None:
    environment = result.environment
    began = [each["container"] for each in service.events("container_started")]
    assert environment["container_id"] in began
    assert environment["image_id"] == service.events("image")[-1]["image"]
    assert environment["region"] == "standin-1"
    assert environment["backend"] == "modal"
    assert environment["gpu"] == []
    assert environment["cpu"]
    assert "load_average" in environment


def check_seen(result: Result) -> None:
    """A body sees its arm's variables, and neither this shell's nor a token of Modal's."""
    seen = result.diagnostics["seen"]
    assert seen["OF_THE_ARM"] == "there"
    assert "OF_THIS_SHELL" not in seen
    assert not any("TOKEN" in name or "SECRET" in name for name in seen)
    assert result.diagnostics["at"].endswith("/prereg_study")
