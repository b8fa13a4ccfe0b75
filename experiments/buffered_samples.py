"""Whether the driver's buffered samples of a GPU's utilisation can be had at all where this runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg import experiment
from pytest_prereg.measure.instruments.square_wave import drive
from pytest_prereg.measure.instruments.wave_devices import device_for

if TYPE_CHECKING:
    from pytest_prereg import Repeat


@experiment(metrics={"readable": {"unit": "1", "exact": True}}, preload=["torch"])
def buffered_samples(repeat: Repeat, *, seconds: float = 6.0) -> None:
    """Ask for them over a square wave that keeps the current CUDA device busy for a half of ``seconds``.

    ``readable`` is 1 where there is a reading of them. Where the driver's rate can't be read either, or there
    is no device, the repeat says nothing of the samples and is invalid.
    """
    import torch  # noqa: PLC0415  # an extra, and heavy

    if not torch.cuda.is_available():
        repeat.invalidate("there is no CUDA device whose samples could be asked for; run this where one is")
        return
    device = device_for("nvml-samples", 5e-4)
    rate = repeat.instrument("nvml-utilisation").window("rate")
    samples = repeat.instrument("nvml-samples").window("samples")
    with rate, samples:
        drive(device, duty=0.5, period=0.1, seconds=seconds)
    if rate.reading is None:
        repeat.invalidate("the driver's rate can't be read either, so nothing is known of its samples alone")
        return
    repeat.record("readable", samples.reading is not None)
