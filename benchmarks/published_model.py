"""What a published number is, and whether it follows from what is published with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STUDY = "study"
ARTICLE = "article"


class Status(StrEnum):
    """What came of recomputing a number; never stated, always derived from what was found."""

    DIFFERS = "Does not reproduce exactly"
    UNKNOWN = "Can't be recomputed from what is published"
    REPRODUCES = "Reproduces exactly: numbers recomputed"
    HOLDS = "Holds as read here: words, by a criterion of ours"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one function recomputed, in the scale in which the number was published."""

    value: float | None = None
    holds: bool | None = None
    """Whether a conclusion in words follows, by the criterion that ``note`` states.

    A number is compared as it was rounded.
    """
    missing: str = ""
    """What would have to be published as well. ``value`` is then one that fits, if any does."""
    note: str = ""
    """What it rests on, or what it would take."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A published number or conclusion, and the function that recomputes it."""

    name: str
    source: str
    quote: str
    published: str
    unit: str
    recompute: Callable[[], Found]

    @property
    def what(self) -> str:
        """The number in words: the first line of its function's docstring."""
        return (self.recompute.__doc__ or "").partition("\n")[0].removesuffix(".")

    @property
    def decimals(self) -> int | None:
        """To how many decimals it was rounded; ``None`` if it was put in words."""
        digits = self.published.replace(",", "")
        if not digits.replace(".", "", 1).isdigit():
            return None
        return len(digits.partition(".")[2])

    @property
    def rounding(self) -> str:
        """The step to which it was rounded."""
        return "in words" if self.decimals is None else f"{10.0**-self.decimals:g}"

    def shown(self, value: float) -> str:
        """Return a value to one digit more than was published; of words, to four significant ones."""
        if self.decimals is None:
            return f"{value:.4g}"
        return f"{value:,.{0 if value == int(value) else self.decimals + 1}f}"

    def status(self, found: Found) -> Status:
        """Whether what was found is what was published."""
        if found.missing:
            return Status.UNKNOWN
        if not self._agrees(found):
            return Status.DIFFERS
        return Status.HOLDS if self.decimals is None else Status.REPRODUCES

    def _agrees(self, found: Found) -> bool:
        if found.holds is not None:
            return found.holds
        if self.decimals is None or found.value is None:
            raise ValueError(f"{self.name}: {self.published!r} is no number: say whether it holds")
        return f"{found.value:.{self.decimals}f}" == self.published.replace(",", "")


@dataclass
class Numbers:
    """The numbers of one source, in the order in which they were noted."""

    source: str
    noted: list[Number] = field(default_factory=list)

    def number(
        self, quote: str, published: str, unit: str = ""
    ) -> Callable[[Callable[[], Found]], Callable[[], Found]]:
        """Note a number with the function that is decorated; its docstring says in words what it is."""

        def note(recompute: Callable[[], Found]) -> Callable[[], Found]:
            self.noted.append(
                Number(
                    name=recompute.__name__,
                    source=self.source,
                    quote=quote,
                    published=published,
                    unit=unit,
                    recompute=recompute,
                )
            )
            return recompute

        return note
