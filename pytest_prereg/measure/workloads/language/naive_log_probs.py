"""Log-probabilities of chosen tokens the plain way: all logits, their log-softmax, one number of each row.

What a training step costs this way, in memory above all, is itself worth predicting; and a study that was
told to take the other way must not have taken this one.
"""

from __future__ import annotations

import torch

from pytest_prereg.measure.workloads.language.log_prob_inputs import check_inputs

WORKLOAD_VERSION = "1"


def naive_log_probs(
    states: torch.Tensor, head: torch.Tensor, chosen: torch.Tensor, *, temperature: float = 1.0
) -> torch.Tensor:
    """Return what :func:`selective_log_probs` does, by way of several (tokens, vocabulary) matrices.

    Logits have the dtype of what is given; their log-softmax is float32, or float64 of float64.
    """
    check_inputs(states, head, chosen, temperature)
    logits = states @ head.T
    wide = logits if logits.dtype == torch.float64 else logits.float()
    if temperature != 1:
        wide = wide / temperature
    return wide.log_softmax(-1).gather(1, chosen[:, None]).squeeze(1)
