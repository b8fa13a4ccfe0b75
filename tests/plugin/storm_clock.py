"""Faults of the clock: of one session's, by libfaketime, and never of the machine's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storm_sessions import Storm


def library() -> Path | None:
    """The library that changes what time a process sees, if it is installed."""
    found = importlib.util.find_spec("libfaketime")
    if found is None or found.origin is None:
        return None
    built = list(Path(found.origin).parent.rglob("libfaketime.so.1"))
    return built[0] if built else None


def clock(**setting: str) -> dict[str, str]:
    """Variables under which a process sees another time; its monotonic clock goes on as ever."""
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        **setting,
    }


def back_between_sessions(storm: Storm) -> None:
    """The session that goes on lives hours, or months, before the one that began."""
    back = storm.chance.choice(["-1s", "-2h", "-90d"])
    killed = storm.chance.random() < 0.5
    storm.what.append(f"{back} after {'kill' if killed else 'interrupt'}")
    storm.partly(killed=killed)
    storm.variables |= clock(FAKETIME=back)


def back_while_measuring(storm: Storm) -> None:
    """The clock is set back while a session measures, which is then cut short or not."""
    setting = storm.study.path.with_name("clock")
    setting.write_text("+0\n")
    process = storm.start(**clock(FAKETIME_TIMESTAMP_FILE=str(setting)))
    storm.after_a_few(process)
    back = storm.chance.choice(["-1\n", "-7200\n", "-9000000\n"])
    new = setting.with_name("clock.new")
    new.write_text(back)
    new.replace(setting)
    storm.what.append(back.strip())
    storm.variables |= clock(FAKETIME_TIMESTAMP_FILE=str(setting))
    if storm.chance.random() < 0.5:
        storm.what.append("then interrupted")
        storm.after_a_few(process)
        storm.may_lose = 1
        storm.interrupt(process)
        return
    status, output = storm.end(process)
    assert status == 0, output
    assert "1 supported" in output, output
