"""Holds evidence against the log that its experiment wrote, and against git: no line of pytest-prereg runs here.

Run as ``python -I storm_audit.py EVIDENCE LOG REPOSITORY``: the folder of one experiment's session files, the
log, and the repository around. Prints one JSON object; a list in it that is not empty names what is wrong.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ATTEMPTS = 3
"""After so many of a slot have failed it is left at that."""

RUN_AGAIN = ("infrastructure", None)
"""Outcomes that settle nothing; ``None`` is a repeat that was started and has no end."""


def main(evidence: Path, log: Path, repository: Path) -> dict[str, object]:
    files = {path.name: path.read_bytes() for path in sorted(evidence.glob("*.jsonl"))}
    lines = {name: whole(content) for name, content in files.items()}
    said = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    attempts = [one for name in files for one in attempts_of(name, lines[name])]
    begun = [line for line in said if line["event"] == "began"]
    returned = [line for line in said if line["event"] == "returned"]
    return {
        "altered": [
            *broken_lines(files),
            *broken_footers(files),
            *broken_links(files),
            *uncommitted(files, evidence, repository),
        ],
        "unnamed": unnamed(files, begun, attempts),
        "beyond": [shown(one) for one in missing(begun, attempts) if not in_flight(one, begun, attempts)],
        "in_flight": len(missing(begun, attempts)),
        "returned_in_flight": len(missing(returned, attempts)),
        "values": wrong_values(returned, attempts),
        "invented": invented(returned, attempts),
        "bought_twice": bought_twice(begun, attempts),
        "order": out_of_order(begun, attempts),
        "disputed": disputed(attempts),
        "settled": settled(attempts),
        "given_up": given_up(attempts),
        "outcomes": Counter(str(one["outcome"]) for one in attempts),
        "begun": len(begun),
        "returned": len(returned),
        "files": len(files),
    }


# The files by themselves


def whole(content: bytes) -> list[dict]:
    """Every line that ends with a newline and can be read."""
    return [line for raw in content.splitlines(keepends=True) if (line := read(raw)) is not None]


FIELDS = {"started": ("repeat", "attempt", "arm", "index"), "finished": ("repeat", "attempt", "outcome")}
"""What is read of a line, by its type; a byte that is another may be one of a name."""


def read(raw: bytes) -> dict | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    if not raw.endswith(b"\n") or not isinstance(line, dict) or "type" not in line:
        return None
    return line if all(name in line for name in FIELDS.get(line["type"], ())) else None


def broken_lines(files: dict[str, bytes]) -> list[str]:
    """Lines that can't be read, but for what follows the last newline, and headers that are not where one belongs."""
    found = []
    for name, content in files.items():
        *lines, _ = content.split(b"\n")
        found += [
            f"{name}:{number}: unreadable"
            for number, line in enumerate(lines, 1)
            if read(line + b"\n") is None
        ]
        if lines and (read(lines[0] + b"\n") or {}).get("type") != "header":
            found.append(f"{name}:1: no header")
        found += [
            f"{name}:{number}: a second header"
            for number, line in enumerate(lines[1:], 2)
            if (read(line + b"\n") or {}).get("type") == "header"
        ]
    return found


def broken_footers(files: dict[str, bytes]) -> list[str]:
    """Footers that do not fit what is before them, or that something follows."""
    found = []
    for name, content in files.items():
        place = content.find(b'{"type":"footer"')
        if place < 0:
            continue
        end = content.find(b"\n", place) + 1
        footer, before = read(content[place:end] or b"") or {}, content[:place]
        fits = footer.get("digest") == sha256(before) and footer.get("lines") == before.count(b"\n")
        if not fits or end != len(content):
            found.append(f"{name}: the footer does not fit")
    return found


def broken_links(files: dict[str, bytes]) -> list[str]:
    """What a header says of other files that is not so: they had ended, so they are all that it names."""
    digests = {name: sha256(content[: content.rfind(b"\n") + 1]) for name, content in files.items()}
    return [
        f"{other}: not what {name} names"
        for name, known in links(files).items()
        for other, digest in known.items()
        if digest != digests.get(other)
    ]


def links(files: dict[str, bytes]) -> dict[str, dict[str, str]]:
    """By file, the digests of other files that its header names."""
    headers = {
        name: read(content.partition(b"\n")[0] + b"\n") or {}
        for name, content in files.items()
        if b"\n" in content
    }
    return {
        name: {other.rpartition("/")[2]: digest for other, digest in header.get("known", {}).items()}
        for name, header in headers.items()
    }


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# The files against git


def uncommitted(files: dict[str, bytes], evidence: Path, repository: Path) -> list[str]:
    """Files that HEAD has and that do not begin with what it has of them."""
    place = evidence.relative_to(repository)
    listed = git(repository, "ls-tree", "-r", "--name-only", "-z", "HEAD", "--", str(place)).decode()
    names = [Path(path).name for path in listed.split("\0") if path.endswith(".jsonl")]
    return [
        f"{name}: not what was committed"
        for name in names
        if not files.get(name, b"").startswith(git(repository, "show", f"HEAD:{place / name}"))
    ]


def git(repository: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", repository, *arguments], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return done.stdout


# The files against the log


def attempts_of(name: str, lines: list[dict]) -> list[dict]:
    """Every ``started`` line of a file with the ``finished`` line that belongs to it."""
    found: dict[tuple[str, int], dict] = {}
    for line in lines:
        key = (line.get("repeat"), line.get("attempt"))
        if line["type"] == "started":
            found[key] = {
                "file": name,
                "slot": (line["arm"], line["index"]),
                "pid": None,
                "outcome": None,
                "value": None,
            }
        elif line["type"] == "finished" and key in found:
            end = {
                "outcome": line["outcome"],
                "pid": line.get("environment", {}).get("pid"),
                "value": line.get("values", {}).get("t"),
            }
            found[key] |= end
    return list(found.values())


def slot_of(line: dict) -> tuple[str, int]:
    return line["arm"], line["index"]


def shown(line: dict) -> str:
    return f"{line['session']} {line['arm']}/{line['index']} by {line['pid']}"


def kept(attempts: list[dict]) -> dict[tuple, dict]:
    """Attempts with a result, by slot and process."""
    return {(*one["slot"], one["pid"]): one for one in attempts if one["outcome"] not in RUN_AGAIN}


def missing(said: list[dict], attempts: list[dict]) -> list[dict]:
    """What the log tells of and the evidence has no result of."""
    results = kept(attempts)
    return [line for line in said if (*slot_of(line), line["pid"]) not in results]


def in_flight(line: dict, begun: list[dict], attempts: list[dict]) -> bool:
    """Whether a repeat was the last of its session, or is known to have failed by no fault of its own."""
    last = [one for one in begun if one["session"] == line["session"]][-1]
    failed = {one["slot"] for one in attempts if one["outcome"] == "infrastructure"}
    return line["pid"] == last["pid"] or slot_of(line) in failed


def wrong_values(returned: list[dict], attempts: list[dict]) -> list[str]:
    """Results of repeats that returned and are not what they returned."""
    results = kept(attempts)
    pairs = [(line, results.get((*slot_of(line), line["pid"]))) for line in returned]
    return [
        shown(line) for line, one in pairs if one and (one["outcome"], one["value"]) != ("ok", line["value"])
    ]


def invented(returned: list[dict], attempts: list[dict]) -> list[str]:
    """Values that no repeat returned."""
    known = {(*slot_of(line), line["pid"]) for line in returned}
    return [f"{key}" for key, one in kept(attempts).items() if one["outcome"] == "ok" and key not in known]


def bought_twice(begun: list[dict], attempts: list[dict]) -> list[str]:
    """Repeats that began though the same clone had a result for their slot."""
    results, done, found = kept(attempts), set(), []
    for line in begun:
        slot = (line["session"].partition(":")[0], *slot_of(line))
        if slot in done:
            found.append(shown(line))
        if (*slot_of(line), line["pid"]) in results:
            done.add(slot)
    return found


def sessions_of(begun: list[dict], attempts: list[dict]) -> dict[str, list[tuple[str, int]]]:
    """By clone, its files in order of name, each with the number of the session that wrote it."""
    labels = {(*slot_of(line), line["pid"]): line["session"] for line in begun}
    seen = {one["file"]: labels[key] for key, one in kept(attempts).items() if key in labels}
    found: dict[str, list[tuple[str, int]]] = {}
    for name in sorted(seen):
        clone, _, number = seen[name].partition(":")
        found.setdefault(clone, []).append((name, int(number)))
    return found


def out_of_order(begun: list[dict], attempts: list[dict]) -> list[str]:
    """Files whose names are not in the order of the sessions of one clone."""
    sessions = sessions_of(begun, attempts)
    return [
        f"{clone}: {files}"
        for clone, files in sessions.items()
        if files != sorted(files, key=lambda file: file[1])
    ]


def unnamed(files: dict[str, bytes], begun: list[dict], attempts: list[dict]) -> list[str]:
    """Files that no other names, though the same clone has a later one."""
    named = {other for known in links(files).values() for other in known}
    earlier = [name for several in sessions_of(begun, attempts).values() for name, _ in several[:-1]]
    return [name for name in earlier if name not in named]


def disputed(attempts: list[dict]) -> list[str]:
    """Slots that have results which differ."""
    values: dict[tuple[str, int], set[float]] = {}
    for one in kept(attempts).values():
        values.setdefault(one["slot"], set()).add(one["value"])
    return [f"{arm}/{index}" for (arm, index), several in values.items() if len(several) > 1]


def settled(attempts: list[dict]) -> dict[str, int]:
    """How many slots of each arm have a result."""
    return Counter(arm for arm, _ in {one["slot"] for one in kept(attempts).values()})


def given_up(attempts: list[dict]) -> dict[str, int]:
    """How many slots of each arm have none, for three attempts failed by no fault of their own."""
    done = {one["slot"] for one in kept(attempts).values()}
    failures = Counter(one["slot"] for one in attempts if one["outcome"] == "infrastructure")
    return Counter(slot[0] for slot, count in failures.items() if count >= ATTEMPTS and slot not in done)


if __name__ == "__main__":
    print(json.dumps(main(*(Path(argument) for argument in sys.argv[1:]))))
