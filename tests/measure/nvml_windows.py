"""Takes readings in a process of its own, whose driver is what ``fake_nvml.c`` was built into.

Reads scenarios by name from its standard input, and writes what came of each to its standard output, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import threading
import time
from types import SimpleNamespace

from pytest_prereg.measure.instruments import nvml_library
from pytest_prereg.measure.instruments.readers import reader_of
from pytest_prereg.measure.instruments.reading import UnreadableError


def absolute(setting: str) -> str:
    """``+0.4`` in a setting is that many seconds from now."""
    return re.sub(r"\+([\d.]+)", lambda found: f"{time.time() + float(found[1]):.6f}", setting)


def attempt(step):
    try:
        return step()
    except UnreadableError as error:
        return str(error)


def begin(reader):
    """The reader if it could be started, else why not."""
    return attempt(lambda: reader.start() or reader)


def read(reader):
    def end():
        reader.stop()
        reading = reader.reading()
        return {"value": reading.value, "instrument": reading.instrument, **reading.details}

    return reader if isinstance(reader, str) else attempt(end)


def window(*, readers, seconds=0.0, meanwhile=None, deaf=0.0, torch_meanwhile=None, set_clock=0.0, **_):
    """What each reader makes of one window, in which the body sleeps, deaf to other threads in its last part."""
    clock = time.time_ns
    running = {name: begin(reader_of(name)) for name in readers}
    os.environ.update({name: absolute(setting) for name, setting in (meanwhile or {}).items()})
    time.sleep(seconds)
    ctypes.PyDLL(None).usleep(int(deaf * 1e6))
    time.time_ns = lambda: clock() + int(set_clock * 1e9)
    if torch_meanwhile:
        sys.modules["torch"] = torch_on(*torch_meanwhile)
    found = {name: read(reader) for name, reader in running.items()}
    sys.modules.pop("torch", None)
    time.time_ns = clock
    return found


def torch_on(uuid, index=0):
    """A stand-in for torch with a current device, for want of a GPU."""
    device = SimpleNamespace(**({"uuid": uuid} if uuid else {}))
    cuda = SimpleNamespace(
        is_initialized=lambda: True, current_device=lambda: index, get_device_properties=lambda _: device
    )
    return SimpleNamespace(cuda=cuda)


def chosen(*, torch=None, **_):
    """UUID of the GPU that a body in this environment uses, or why there is none."""
    if torch is not None:
        sys.modules["torch"] = torch_on(*torch)

    def choose():
        nvml_library.ask("nvmlInit")
        try:
            return nvml_library.device_of_body().uuid
        finally:
            nvml_library.shut_down()

    found = attempt(choose)
    sys.modules.pop("torch", None)
    return found


def without_pynvml(**_):
    sys.modules["pynvml"] = None
    found = attempt(reader_of("nvml-energy").start)
    del sys.modules["pynvml"]
    return found


def left_open():
    """How often NVML was initialised and not given back, and what threads are left."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    return [library.fake_references(), [thread.name for thread in threading.enumerate()][1:]]


def run(scenario):
    before = dict(os.environ)
    os.environ.update({name: absolute(setting) for name, setting in scenario.get("environ", {}).items()})
    take = {"window": window, "chosen": chosen, "without": without_pynvml}[scenario.get("take", "window")]
    found = take(**scenario)
    os.environ.clear()
    os.environ.update(before)
    return found


if __name__ == "__main__":
    results = {name: run(scenario) for name, scenario in json.load(sys.stdin).items()}
    if "--left" in sys.argv:
        results["left"] = left_open()
    print(json.dumps(results))
