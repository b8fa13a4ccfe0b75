"""What became of a call that brought no answer of its container's: never the outcome of a task.

Modal raises exceptions of its own, of the standard library's and of the body's. Here each is one outcome and
a cause in a word; what they leave open is decided by the marks of the call's starts.
"""

from __future__ import annotations

import builtins
import os
from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.executors.text import tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.executors.modal.messages import Mark

LATE = "Modal ended the container after its own limit, by when the time of the body was over"
HIDDEN = "(hidden)"
SECRETS = ("token_id", "token_secret", "oauth_refresh_token", "oauth_client_secret", "oauth_jwt_key")


def is_silence(error: BaseException) -> bool:
    """Whether the service could not be asked, which says nothing of the call."""
    import modal.exception as said  # noqa: PLC0415

    silent = (said.ConnectionError, said.ServiceError, said.InternalError, said.ClientClosed)
    return isinstance(error, (*silent, builtins.ConnectionError, builtins.TimeoutError))


def is_refused_for_now(error: BaseException) -> bool:
    """Whether there were too many requests."""
    import modal.exception as said  # noqa: PLC0415

    return isinstance(error, said.ResourceExhaustedError)


def result_of(error: BaseException, marks: Sequence[Mark]) -> Result:
    """Return how an attempt ended whose call raised ``error``.

    A limit of Modal's that ran out is a timeout only where a mark says that the body had been reached: the
    limit is so long that then it had all of its time. Before that it was an import that hung.
    """
    restarts = max(0, len(marks) - 1)
    if _is_late(error) and marks and marks[-1].imported:
        return Result(outcome=Outcome.TIMEOUT, cause="deadline", error=LATE, restarts=restarts)
    return Result(outcome=Outcome.INFRASTRUCTURE, cause=_cause(error), error=told(error), restarts=restarts)


def _is_late(error: BaseException) -> bool:
    import modal.exception as said  # noqa: PLC0415

    return isinstance(error, said.FunctionTimeoutError)


def _cause(error: BaseException) -> str:
    import modal.exception as said  # noqa: PLC0415

    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (said.FunctionTimeoutError, "start"),
        (said.OutputExpiredError, "expired"),
        (said.NotFoundError, "forgotten"),
        (said.ResourceExhaustedError, "rate limit"),
        (said.InternalFailure, "machine"),
        (said.RemoteError, "container"),
        (said.InputCancellation, "cancelled"),
    )
    return next((cause for kind, cause in kinds if isinstance(error, kind)), "service")


def told(error: BaseException) -> str:
    """Return what an exception says, without anything that is to be kept from others."""
    text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    for secret in _secrets():
        text = text.replace(secret, HIDDEN)
    return tail(text)


def _secrets() -> list[str]:
    """Return what the client was given to prove who it is."""
    from modal.config import config  # noqa: PLC0415

    values = [str(config.get(key) or "") for key in SECRETS]
    values += [os.environ.get(f"MODAL_{key.upper()}", "") for key in SECRETS]
    return [value for value in values if value]
