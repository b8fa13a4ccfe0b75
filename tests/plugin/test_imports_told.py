"""What is said of imports works as it is typed: the commands of the next series, and what states an instrument."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from small_study import Project, Verdicts, new_repository

DOCS = Path(__file__).parents[2] / "docs"

PACK = """\
[study]
id = "pack"

[experiments.pack]
repeats = 3
[experiments.pack.arms]
new = { level = 1 }
old = { level = 9 }
[experiments.pack.metrics]
t = { from = "times", unit = "s" }

[predictions.quicker]
claim = "The new one takes at most half."
experiment = "pack"
contrast = "new / old"
quantity = "t"
predicts = "<= 0.5"
falsifier = ">= 0.8"
"""
STATED = """\
[study]
id = "stated"

[instruments.clock-of-the-tool]
trusted = "it was held against ours for a day"

[experiments.bench]
command = ["sh", "-c", 'echo "{\\"speed\\": 2.$$}"']
read = { file = "-", format = "json" }
repeats = 3
[experiments.bench.metrics]
stated = { from = "speed", unit = "s", instrument = "clock-of-the-tool" }
bare   = { from = "speed", unit = "s" }
ours   = { from = "speed", unit = "s", instrument = "wall-clock" }

[experiments.runs]
repeats = 3
[experiments.runs.metrics]
t = { from = "times", unit = "s", instrument = "clock-of-the-tool" }
"""
CLAIM = """
[predictions.{name}]
claim = "It takes less than {seconds} seconds."
experiment = "{experiment}"
quantity = "{metric}"
predicts = "< {seconds} s"
falsifier = ">= {seconds} s"
"""


def registered(folder: Path, text: str) -> Project:
    project = new_repository(folder / "study")
    project.write("predictions.toml", text)
    project.done("lock")
    project.commit("Register")
    return project


def hyperfine(project: Project, name: str, *shifts: float) -> None:
    """A file of two commands, of which the first one is the quicker."""
    commands = [("zstd -q x", 0.2, shifts[0]), ("gzip x", 1.1, shifts[-1])]
    results = [
        {"command": text, "times": [about + shift + 0.00137 * run for run in range(3)]}
        for text, about, shift in commands
    ]
    project.write(name, json.dumps({"results": results}))


def explained(project: Project, prediction: str) -> str:
    return " ".join(project.done("explain", prediction).split())


def test_a_replication_is_taken_in_by_the_commands_that_explain_tells(tmp_path: Path) -> None:
    project = registered(tmp_path, PACK)
    hyperfine(project, "a.json", 0.00011)
    hyperfine(project, "b.json", 0.00023)
    project.done("import", "a.json", "--experiment", "pack", "--arm", "new", "--select", "zstd -q x")
    project.done("import", "a.json", "--experiment", "pack", "--arm", "old", "--select", "2")

    told = explained(project, "quicker")

    (commands,) = re.findall(r"as a replication, listed beside it: (.*) p-hacking", told)
    assert commands == (
        "pytest-prereg import FILE --experiment pack --arm new --select 'zstd -q x' and "
        "pytest-prereg import FILE --experiment pack --arm old --select 2"
    )
    for command in commands.split(" and "):
        project.done(*shlex.split(command.replace("FILE", "b.json"))[1:])
    assert "pack/2 complete, 6 repeats" in explained(project, "quicker")


def test_where_nothing_was_taken_in_the_arms_are_named(tmp_path: Path) -> None:
    project = registered(tmp_path, PACK)

    told = explained(project, "quicker")

    assert (
        'no evidence yet; pytest-prereg import FILE --experiment pack, with --arm where FILE names none of "new" and "old"'
        in told
    )


def test_what_read_a_file_is_stated_by_an_instrument_of_the_study(tmp_path: Path) -> None:
    read = ("stated", "bare", "ours")
    claims = [
        CLAIM.format(name=one, metric=one, experiment="bench", seconds=3 + n) for n, one in enumerate(read)
    ]
    claims.append(CLAIM.format(name="imported", metric="t", experiment="runs", seconds=3))
    project = registered(tmp_path, STATED + "".join(claims))
    hyperfine(project, "a.json", 0.00011)
    project.done("import", "a.json", "--experiment", "runs", "--select", "1")

    done = project.process("--prereg", "--prereg-json", "r.json", "-p", "no:cacheprovider")

    assert done.returncode == 0, done.stdout
    assert Verdicts(project.path / "r.json").each("flags") == {
        "stated": [],
        "bare": ["instrument-unstated"],
        "ours": ["instrument-unstated"],
        "imported": ["imported"],
    }
    trusted = "clock-of-the-tool, an instrument of this study's own ({}): trusted, since it was held"
    assert trusted.format("stated") in explained(project, "stated")
    assert trusted.format("t") in explained(project, "imported")
    for name in ("bare", "ours"):
        told = explained(project, name)
        assert f"read from what the command left ({name}): no instrument is named" in told
        assert f'by a NAME of its own: {name} = {{ from = "speed", unit = "s", instrument = "NAME" }}' in told
        assert 'and [instruments.NAME] trusted = "why"' in told


def test_the_documented_studies_say_what_takes_their_readings(tmp_path: Path) -> None:
    studies = {
        page: re.findall(
            r"toml\n(?::caption: .*\n\n)?(\[study\]\n.*?)```", (DOCS / page).read_text(), re.DOTALL
        )[-1]
        for page in ("importing.md", "commands.md")
    }
    for page in studies:
        (tmp_path / page).mkdir()
    imported = registered(tmp_path / "importing.md", studies["importing.md"])
    measured = registered(tmp_path / "commands.md", studies["commands.md"])
    keys = ("duration", "request_throughput", "total_token_throughput")
    names = [f"{number}.json" for number in range(5)]
    for number, name in enumerate(names):
        run = dict.fromkeys(keys, 1.0) | {
            "model_id": "m",
            "completed": 9,
            "output_throughput": 1100.5 + number / 7,
        }
        imported.write(name, json.dumps(run))
    imported.done("import", *names, "--experiment", "serve")

    measured.process("--prereg", "--prereg-json", "r.json", "-p", "no:cacheprovider")

    assert "client, an instrument of this study's own (throughput): trusted" in explained(
        imported, "serves-1000"
    )
    assert "instrument-unstated" not in Verdicts(measured.path / "r.json")["sums-quickly"]["flags"]
