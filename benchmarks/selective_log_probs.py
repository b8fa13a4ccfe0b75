"""Peak memory and time of log p(chosen) and its gradients: 4 × 1280 tokens, a head of 151,936 rows, float32.

Every call has a process of its own, all ways in turns; medians of some rounds. Memory is the peak of resident
pages over what was there before the call, less the two gradients. The promise is made on the naive way, which
takes 9 to 12 GB. Errors are norms of the difference from float64, on fewer tokens, so that float64 fits.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from table import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Way = Callable[[Tensor, Tensor, Tensor], Tensor]

BATCH, POSITIONS, VOCABULARY = 4, 1280, 151_936
ROUNDS = {64: 5, 1024: 5}
"""By the hidden size."""
CHUNK = 64
THREADS = 2


def rows() -> list[Row]:
    """Ours beside each other way."""
    found = []
    for hidden, rounds in ROUNDS.items():
        seen: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
        for _ in range(rounds):
            for name, runs in seen.items():
                runs.append(in_a_process(name, hidden))
        found += rows_of(hidden, seen)
        errors = in_a_process(ERRORS, hidden)
        found += [
            Row(what=f"H = {hidden}: error, {of}", ours=error, unit="", limit=1e-6)
            for of, error in errors.items()
        ]
    return found


def rows_of(hidden: int, seen: dict[str, list[dict[str, float]]]) -> list[Row]:
    """One hidden size."""
    middle = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in seen.items()
    }
    return [
        Row(
            what=f"H = {hidden}: {what}",
            ours=middle[OURS][key],
            other=middle[name][key],
            against=name,
            unit=unit,
            at_least=promised if name == NAIVE else None,
        )
        for key, what, unit, promised in (("memory", "memory", "MB", 20.0), ("seconds", "time", "s", 1.0))
        for name in WAYS
        if name != OURS
    ]


def in_a_process(name: str, hidden: int) -> dict[str, float]:
    """Megabytes and seconds."""
    done = subprocess.run(
        [sys.executable, __file__, name, str(hidden)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def measured(name: str, hidden: int) -> dict[str, float]:
    """One call, forward and backward, after another on next to nothing."""
    import torch  # noqa: PLC0415  # an extra

    torch.set_num_threads(THREADS)
    once(WAYS[name], *inputs(hidden, 2, 8, 64))
    states, head, chosen = inputs(hidden, BATCH, POSITIONS, VOCABULARY)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    began = time.perf_counter()
    once(WAYS[name], states, head, chosen)
    seconds = time.perf_counter() - began
    gradients = 4 * (states.numel() + head.numel())
    return {"memory": (resident("VmHWM") - before - gradients) / 1e6, "seconds": seconds}


def errors(hidden: int) -> dict[str, float]:
    """Of both gradients, relative to their norms."""
    states, head, chosen = inputs(hidden, BATCH, POSITIONS // 16, VOCABULARY)
    once(ours, states, head, chosen)
    wide = [each.detach().double().requires_grad_() for each in (states, head)]
    once(naive, *wide, chosen)
    pairs = {"gradient of states": (states, wide[0]), "gradient of head": (head, wide[1])}
    return {
        of: float((one.grad - other.grad).norm() / other.grad.norm()) for of, (one, other) in pairs.items()
    }


def inputs(hidden: int, batch: int, positions: int, vocabulary: int) -> tuple[Tensor, Tensor, Tensor]:
    import torch  # noqa: PLC0415

    generator = torch.Generator().manual_seed(1)
    states = torch.randn(batch, positions, hidden, generator=generator)
    head = torch.empty(vocabulary, hidden).normal_(0, 0.02, generator=generator)
    chosen = torch.randint(vocabulary, (batch, positions), generator=generator)
    return states.requires_grad_(), head.requires_grad_(), chosen


def once(
    way: Callable[[Tensor, Tensor, Tensor], Tensor], states: Tensor, head: Tensor, chosen: Tensor
) -> None:
    way(states, head, chosen).sum().backward()


def resident(key: str) -> int:
    """Bytes, as the kernel counts them."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


def ours(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs  # noqa: PLC0415

    return selective_log_probs(states.flatten(0, 1), head, chosen.flatten())


def naive(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs  # noqa: PLC0415

    return naive_log_probs(states.flatten(0, 1), head, chosen.flatten())


def row_by_row(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    """TRL's ``selective_log_softmax``, or where that isn't installed what version 1.16 does on a CPU."""
    import torch  # noqa: PLC0415

    logits = states @ head.T
    try:
        from trl.trainer.utils import selective_log_softmax  # noqa: PLC0415
    except ImportError:
        picked = logits.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
        return picked - torch.stack([torch.logsumexp(row, dim=-1) for row in logits])
    return selective_log_softmax(logits, chosen)


def checkpointed(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    """What a user would write: some tokens at a time, each lot again in the backward pass."""
    import torch  # noqa: PLC0415
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

    parts = zip(states.flatten(0, 1).split(CHUNK), chosen.flatten().split(CHUNK), strict=True)
    return torch.cat([checkpoint(chunk, part, head, ids, use_reentrant=False) for part, ids in parts])


def chunk(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    logits = states @ head.T
    return logits.gather(-1, chosen.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


OURS, NAIVE, ERRORS = "ours", "naive", "errors"
WAYS: dict[str, Way] = {
    OURS: ours,
    NAIVE: naive,
    "row by row (TRL)": row_by_row,
    f"checkpoints of {CHUNK} tokens": checkpointed,
}

if __name__ == "__main__":
    name, hidden = sys.argv[1], int(sys.argv[2])
    print(json.dumps(errors(hidden) if name == ERRORS else measured(name, hidden)))
