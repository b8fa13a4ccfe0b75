"""NVML itself: its library, what it refuses, and which GPU the body uses.

Read through ``nvidia-ml-py``, which loads the driver's own ``libnvidia-ml.so.1``.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from pytest_prereg.evidence import gpu_readings
from pytest_prereg.evidence.gpu_readings import Gpu
from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.reading import UnreadableError


class RefusalError(UnreadableError):
    """NVML answered with an error, whose number is ``code``."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Device(NamedTuple):
    """A GPU: what NVML calls it while it is initialised, and what it is called for good."""

    handle: Any
    uuid: str


def device_of_body() -> Device:
    """Return the GPU that the body uses: torch's current device, else the first that the environment names.

    NVML has to be initialised. Where nothing is named, a GPU that is the only one is meant.

    Raises:
        UnreadableError: There is none, there are several and nothing says which, or it is cut into slices.
    """
    written = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if written.strip().startswith("MIG-"):
        raise UnreadableError(f'CUDA_VISIBLE_DEVICES="{written}" is a slice of a GPU, which has no reading')
    uuid = uuid_of_torch() or _named_gpu().uuid
    device = Device(ask("nvmlDeviceGetHandleByUUID", uuid), uuid)
    if _sliced(device):
        raise UnreadableError(f'GPU "{uuid}" is cut into slices (MIG), which have no readings of their own')
    return device


def uuid_of_torch() -> str | None:
    """Return the UUID of torch's current device, ``None`` if it uses none; before torch 2.5 it can't tell.

    Raises:
        UnreadableError: CUDA has failed in this process.
    """
    cuda = wall_clock.cuda_in_use()
    if cuda is None:
        return None
    try:
        uuid = getattr(cuda.get_device_properties(cuda.current_device()), "uuid", None)
    except RuntimeError as error:
        raise UnreadableError(f"torch can't tell its current device: {error}") from error
    return None if uuid is None else f"GPU-{str(uuid).removeprefix('GPU-')}"


def _named_gpu() -> Gpu:
    """Return the GPU of torch's current index, else the first, among those that the environment names."""
    gpus = [_gpu(index) for index in range(ask("nvmlDeviceGetCount"))]
    named = gpu_readings.named(gpus, os.environ)
    if named is None and len(gpus) == 1:
        return gpus[0]
    written = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None and gpus:
        # Unlike GPUs are counted by their speed, which NVML doesn't know.
        said = "is not set" if written is None else f'is "{written}", which doesn\'t say'
        choice = ", ".join(f"{gpu.uuid} ({gpu.name})" for gpu in gpus)
        raise UnreadableError(f"CUDA_VISIBLE_DEVICES {said}: make it the UUID of one of {choice}")
    cuda = wall_clock.cuda_in_use()
    index = 0 if cuda is None else cuda.current_device()
    if not named or index >= len(named):
        said = "" if written is None else f', with CUDA_VISIBLE_DEVICES="{written}"'
        raise UnreadableError(f"NVML shows no GPU that this process can use{said}")
    return named[index]


def _gpu(index: int) -> Gpu:
    handle = ask("nvmlDeviceGetHandleByIndex", index)
    return Gpu(
        index=index,
        uuid=ask("nvmlDeviceGetUUID", handle),
        name=ask("nvmlDeviceGetName", handle),
        clock_mhz=None,
        temp_c=None,
        reasons=None,
        slowed_us=None,
    )


def _sliced(device: Device) -> bool:
    """Whether the GPU is in MIG mode; one that knows no such mode isn't."""
    nvml = library()
    try:
        current, _ = ask("nvmlDeviceGetMigMode", device.handle)
    except RefusalError as error:
        if error.code in {nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND}:
            return False
        raise
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)


def ask(function: str, *arguments: Any) -> Any:
    """Call a function of NVML.

    Raises:
        UnreadableError: It answers with an error, in its own words.
    """
    nvml = library()
    if not hasattr(nvml, function):
        raise UnreadableError(f"{nvml.__file__} has no {function}: pip install --upgrade nvidia-ml-py")
    try:
        return getattr(nvml, function)(*arguments)
    except nvml.NVMLError as error:
        about = "".join(f" for {each}" for each in arguments if isinstance(each, str))
        raise RefusalError(f'NVML answers {function}{about} with "{error}"', error.value) from error


def library() -> Any:
    """Return ``pynvml``, which loads the driver's library when it is initialised.

    Raises:
        UnreadableError: It is not installed.
    """
    try:
        import pynvml  # noqa: PLC0415
    except ImportError as error:
        raise UnreadableError(
            f"NVML is read through nvidia-ml-py, which can't be imported ({error}): "
            "pip install 'pytest-prereg[nvml]'"
        ) from error
    return pynvml


def shut_down() -> None:
    """Give NVML back; what was read stands, whatever it answers."""
    nvml = library()
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError:
        return
