"""The built-in ``grpo_step``: one step of group-relative policy optimisation, every stage of it for real.

The policy is untrained and of Qwen3's shape with its true vocabulary; the completions are rewarded by running
them as programs in processes with a deadline; one policy-gradient update follows.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_prereg.measure.experiment import experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.repeat import Repeat

WORKLOAD_VERSION = "1"

_PROGRAM = """\
ids = {ids}
while sum(ids) % {hang_one_in} == 0:
    pass
assert sorted(ids)[len(ids) // 2] % 2 == 0
"""


@experiment(
    metrics={
        "t_gen": "s",
        "t_sample": "s",
        "t_reward": "s",
        "t_train": "s",
        "tokens": {"unit": "token", "exact": True},
        "completions": {"unit": "1", "exact": True},
        "passed": {"unit": "1", "exact": True},
        "timed_out": {"unit": "1", "exact": True},
    },
    preload=["torch", "torch._dynamo"],  # every torch optimiser imports the second, which takes as long
)
def grpo_step(
    repeat: Repeat,
    *,
    prompts: int = 2,
    group: int = 8,
    prompt_tokens: int = 16,
    new_tokens: int = 32,
    deadline: float = 1.0,
    hang_one_in: int = 1_000_000_000,
) -> None:
    """One GRPO step: sample ``prompts`` x ``group`` completions, run each as a program, train on them.

    ``t_sample`` has one sample per position, the draw from the vocabulary, and is part of ``t_gen``.
    ``tokens`` counts the tokens that bore loss. About one completion in ``hang_one_in`` is a program that
    never ends and is cut off at ``deadline`` seconds.
    """
    from pytest_prereg.measure.workloads import policy as policies  # noqa: PLC0415  # torch is an extra
    from pytest_prereg.measure.workloads.reward import Outcome, run_programs  # noqa: PLC0415

    policies.warm_up()  # no stage should be charged for what torch does only once
    policy = policies.random_policy(repeat.seed)
    questions = policies.random_prompts(policy, prompts=prompts, group=group, length=prompt_tokens)

    with repeat.timer("t_gen"):
        completions = policies.sample(policy, questions, new_tokens, lambda: repeat.timer("t_sample"))
    with repeat.timer("t_reward"):
        programs = [program(ids, hang_one_in=hang_one_in) for ids in completions.tolist()]
        outcomes = run_programs(programs, deadline=deadline, parallel=len(os.sched_getaffinity(0)))
    with repeat.timer("t_train"):
        rewards = [float(outcome is Outcome.PASSED) for outcome in outcomes]
        tokens = policies.train(policy, questions, completions, policies.group_advantages(rewards, group))

    repeat.record("tokens", tokens)
    repeat.record("completions", len(outcomes))
    repeat.record("passed", outcomes.count(Outcome.PASSED))
    repeat.record("timed_out", outcomes.count(Outcome.TIMED_OUT))


def program(ids: Sequence[int], *, hang_one_in: int) -> str:
    """Return the Python program that a completion is.

    It passes if its median token id is even, and never ends if the ids add up to a multiple of
    ``hang_one_in``.
    """
    return _PROGRAM.format(ids=list(ids), hang_one_in=hang_one_in)
