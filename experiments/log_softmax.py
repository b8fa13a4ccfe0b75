"""Five ways to the log-probabilities of chosen tokens, and what each takes in memory and in time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_prereg import experiment

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from pytest_prereg import Repeat

    Form = Callable[[Tensor, Tensor, Tensor], Tensor]
    """Takes states (sequences, positions, hidden), a head (vocabulary, hidden), and the ids chosen."""

NOTHING = "nothing"
"""What every other form is held against: its inputs are there, and nothing is done."""
TOLERANCE = 1e-5
"""How far a form may be from float64: numbers are below 10, in float32."""


@experiment(
    metrics={"peak": {"unit": "MiB", "instrument": "process-memory"}, "t_pass": "s"},
    preload=["torch", "torch.utils.checkpoint"],
)
def log_softmax_form(
    repeat: Repeat,
    *,
    form: str = "naive",
    sequences: int = 4,
    positions: int = 128,
    vocabulary: int = 151_936,
    hidden: int = 64,
    chunk: int = 32,
    backward: bool = True,
) -> None:
    """Compute log p(chosen) of random hidden states in one form, in float32, with both gradients or none.

    Forms are ``"naive"`` (log-softmax of all logits, then one of each row), ``"gather"`` (the chosen logits
    less the logsumexp of the whole batch), ``"rows"`` (that logsumexp sequence by sequence, as TRL does on a
    CPU), ``"chunked"`` (``chunk`` tokens at a time, each lot computed again in the backward pass) and
    ``"fused"`` (the package's own), besides ``"nothing"``. ``peak`` is of the whole process, ``t_pass`` of
    the same pass, which is the first at its size: what it costs to get pages is in it, as it is in a trainer
    that gives large blocks back. A form that is wrong on a few tokens makes the repeat invalid.
    """
    forms = forms_of(chunk)
    if problem := problem_with(form, forms, backward=backward):
        repeat.invalidate(problem)
        return
    given = inputs(repeat.seed, sequences, positions, vocabulary, hidden)
    with repeat.instrument("process-memory").window("peak"), repeat.timer("t_pass"):
        once(forms[form], *given, backward=backward)


def forms_of(chunk: int) -> dict[str, Form]:
    """Return every form by its name; all but ``"nothing"`` return log p(chosen), (tokens,)."""
    return {
        NOTHING: nothing,
        "naive": naive,
        "gather": gathered,
        "rows": row_by_row,
        "chunked": partial(chunked, chunk=chunk),
        "fused": fused,
    }


def nothing(_states: Tensor, _head: Tensor, chosen: Tensor) -> Tensor:
    """Return zeros."""
    import torch  # noqa: PLC0415  # an extra

    return torch.zeros(chosen.numel(), requires_grad=True)


def naive(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    """All logits, all their log-probabilities, and of each row one."""
    from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs  # noqa: PLC0415

    return naive_log_probs(states.flatten(0, 1), head, chosen.flatten())


def gathered(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    """The chosen logits, less what normalises each row."""
    return _picked(logits := states.flatten(0, 1) @ head.T, chosen.flatten()) - logits.logsumexp(-1)


def row_by_row(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    """The same with a logsumexp for each sequence, as ``selective_log_softmax`` of TRL 1.16 on a CPU."""
    import torch  # noqa: PLC0415

    logits = states @ head.T
    return (_picked(logits, chosen) - torch.stack([row.logsumexp(-1) for row in logits])).flatten()


def chunked(states: Tensor, head: Tensor, chosen: Tensor, *, chunk: int) -> Tensor:
    """Some tokens at a time, of which the backward pass computes the logits once more."""
    import torch  # noqa: PLC0415
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

    parts = zip(states.flatten(0, 1).split(chunk), chosen.flatten().split(chunk), strict=True)
    return torch.cat([checkpoint(_of_chunk, part, head, ids, use_reentrant=False) for part, ids in parts])


def fused(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    """Tiles of the vocabulary, with a backward pass of its own."""
    from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs  # noqa: PLC0415

    return selective_log_probs(states.flatten(0, 1), head, chosen.flatten())


def _of_chunk(states: Tensor, head: Tensor, chosen: Tensor) -> Tensor:
    return _picked(logits := states @ head.T, chosen) - logits.logsumexp(-1)


def _picked(logits: Tensor, chosen: Tensor) -> Tensor:
    return logits.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def inputs(
    seed: int, sequences: int, positions: int, vocabulary: int, hidden: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return random states, head and ids; logits are of the size that an untrained model's are."""
    import torch  # noqa: PLC0415

    generator = torch.Generator().manual_seed(seed % 2**63)
    states = torch.randn(sequences, positions, hidden, generator=generator)
    head = torch.empty(vocabulary, hidden).normal_(0, 0.02, generator=generator)
    chosen = torch.randint(vocabulary, (sequences, positions), generator=generator)
    return states.requires_grad_(), head.requires_grad_(), chosen


def once(form: Form, states: Tensor, head: Tensor, chosen: Tensor, *, backward: bool) -> Tensor:
    """Return log-probabilities; with ``backward`` both inputs have the gradients of their sum."""
    import torch  # noqa: PLC0415

    with torch.set_grad_enabled(backward):
        found = form(states, head, chosen)
        if backward:
            found.sum().backward()
    return found.detach()


def problem_with(form: str, forms: dict[str, Form], *, backward: bool) -> str | None:
    """Return what is wrong with a form on a few tokens, if anything; it does what torch does only once."""
    few = inputs(1, 2, 4, 64, 8)
    if form == NOTHING:  # it has loaded what every other form has
        once(forms["naive"], *few, backward=backward)
        return None
    wide = tuple(each.detach().double().requires_grad_() for each in few[:2])
    found = once(forms[form], *few, backward=backward)
    right = once(forms["naive"], *wide, few[2], backward=backward)
    pairs = [(found, right)]
    if backward:
        pairs += [(one.grad, other.grad) for one, other in zip(few[:2], wide, strict=True)]
    errors = [float((one - other).abs().max()) for one, other in pairs]
    return f"{form} is off by {max(errors):.1e}" if max(errors) > TOLERANCE else None
