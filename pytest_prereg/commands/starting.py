"""The command that makes a study of one line: new."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_prereg.commands.group import main, say, say_wrapped, study_file, study_option
from pytest_prereg.errors import Problem, UsageError
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.commands.adding import Added
    from pytest_prereg.registry.command_lines import CommandLine

_PLAIN_WORD = re.compile(r"[\w./+-]+(?=\s|$)")


@main.command(short_help="Write a study from one line.")
@click.argument("name", metavar="ID")
@click.option("--command", required=True, metavar="TEXT", help="What is run, as typed in a shell.")
@click.option("--versus", metavar="TEXT", help="What it is compared with: new / old.")
@click.option(
    "--metric",
    default="wall",
    metavar="NAME",
    show_default=True,
    help="wall, user, system, max_rss or exit_code; with --read, the name of what is read.",
)
@click.option(
    "--predicts", metavar="REGION", help="What is expected: '<= 0.5', '[9, 11] s', 'within 5% of 2'."
)
@click.option("--falsifier", metavar="REGION", help="What would prove it wrong: '>= 0.8', 'otherwise'.")
@click.option("-n", "repeats", type=int, default=10, show_default=True, help="Repeats of each command.")
@click.option("--claim", metavar="TEXT", help="The claim in words; made of the rest unless given.")
@click.option("--timeout", metavar="TIME", help="After which a repeat is stopped: '5 min'.")
@click.option(
    "--read", "result", metavar="FILE", help="What the command leaves in {out}; - is what it prints."
)
@click.option("--format", "form", metavar="FORMAT", help="Of that file: json, csv, hyperfine, pyperf, …")
@click.option("--select", metavar="NAME", help="The benchmark in it that is meant.")
@click.option("--from", "source", metavar="NAME", help="What the metric is called in it.")
@click.option("--unit", metavar="UNIT", help="Of the metric that is read.")
@study_option
def new(name: str, *, file: Path | None, result: str | None, **typed_in: Any) -> None:
    """Write a study that compares two commands, or looks at one: into predictions.toml, or to its end.

    A command is started without a shell unless it needs one. {out} in it is a folder of each repeat's own.
    """
    from pytest_prereg.commands.adding import add_to_study  # noqa: PLC0415
    from pytest_prereg.registry.one_line import Asked  # noqa: PLC0415

    _require(predicts=typed_in["predicts"], falsifier=typed_in["falsifier"])
    # --study, which is no part of what is asked for
    added = add_to_study(Asked(id=name, file=result, **typed_in), _target(file))
    for sentence in (*_written(name, added), *_notes(name, added)):
        say_wrapped(sentence)
    for command in _next(name, added):
        say(command)


_REGIONS = {
    "predicts": "--predicts, the value that is expected, as in --predicts '<= 0.5'",
    "falsifier": "--falsifier, what would prove it wrong, as in --falsifier '>= 0.8' or 'otherwise'",
}


def _require(**regions: str | None) -> None:
    """Ask for what makes a prediction of a benchmark, all of it at once.

    Raises:
        click.UsageError: Something of it is missing.
    """
    if missing := [_REGIONS[name] for name, region in regions.items() if region is None]:
        raise click.UsageError(f"It lacks {'; and '.join(missing)}.")


def _target(file: Path | None) -> Path:
    """Return the prediction file that is written or added to.

    Raises:
        UsageError: PR100, if there are several and none is named, or it can't be one.
    """
    from pytest_prereg.registry.load import find_studies  # noqa: PLC0415

    folder = file or Path()
    if folder.is_dir():
        return study_file(file) if find_studies(folder) else folder / "predictions.toml"
    if folder.suffix != ".toml":
        message = f"{quoted(folder)} can't be a prediction file, whose name ends in .toml"
        raise UsageError(Problem(code="PR100", message=message))
    if not folder.parent.is_dir():
        raise UsageError(Problem(code="PR100", message=f"there is no folder {quoted(folder.parent)}"))
    return folder


def _written(name: str, added: Added) -> Iterator[str]:
    from pytest_prereg.registry.starter import ATTRIBUTES_FILE  # noqa: PLC0415
    from pytest_prereg.registry.toml import shown  # noqa: PLC0415

    did = "wrote" if added.is_new else "added to"
    arms = f" (arms {', '.join(added.commands)})" if len(added.commands) > 1 else ""
    yield f"{did} {shown(added.study.path)}: experiment {name}{arms}, 1 prediction"
    if added.attributes:
        yield f"wrote {shown(added.study.folder / ATTRIBUTES_FILE)}: how git keeps locks and evidence"


def _notes(name: str, added: Added) -> Iterator[str]:
    yield from _of_commands(name, added)
    yield from _of_files(name, added)


def _of_files(name: str, added: Added) -> Iterator[str]:
    from pytest_prereg.audit.history.committed import uncommitted_files  # noqa: PLC0415
    from pytest_prereg.report.commands import uncommitted_text  # noqa: PLC0415

    for path in uncommitted_files(added.study, added.study.experiments[name]):
        yield uncommitted_text(added.study, path)


def _of_commands(name: str, added: Added) -> Iterator[str]:
    read = added.study.experiments[name].table.read
    is_below_out = read is not None and read.file != "-" and read.file[:1] not in ("/", "{")
    for arm, command in added.commands.items():
        who = f"{arm} is" if arm else "it is"
        if command.sign is not None:
            yield f"note: {who} run by sh -c: only a shell can act on its {quoted(command.sign)}"
        if command.braces is not None:
            yield f"note: {who} given {quoted(command.braces)} as it stands: sh does not write it out"
        if read is not None and is_below_out and not any("{out}" in each for each in command.arguments):
            yield f"note: {who} not told of {{out}}, where {quoted(read.file)} is read"
        if missing := _missing(command, added.study.folder):
            yield f"note: there is no program {quoted(missing)} here{f', which {arm} starts' if arm else ''}"


def _missing(command: CommandLine, folder: Path) -> str | None:
    """Return the program that a command names first, if it is not to be found from a study's folder."""
    import subprocess  # noqa: PLC0415 - no other command has a use for it

    if command.sign is not None:
        word = _PLAIN_WORD.match(command.arguments[-1])
        asked = ["sh", "-c", 'command -v -- "$0"', word[0] if word else "sh"]
        done = subprocess.run(asked, cwd=folder, capture_output=True, check=False)
        return word[0] if word and done.returncode else None
    program = command.arguments[0]
    if "/" not in program:
        return None if shutil.which(program) else program
    return None if "{" in program or os.access(folder / program, os.X_OK) else program


def _next(name: str, added: Added) -> Iterator[str]:
    from pytest_prereg.audit.history.git import Repository  # noqa: PLC0415
    from pytest_prereg.registration import commit_command  # noqa: PLC0415
    from pytest_prereg.registry.load import find_studies  # noqa: PLC0415
    from pytest_prereg.registry.toml import shown  # noqa: PLC0415

    path, repository = added.study.path, Repository.find(added.study.folder)
    is_only = [each.resolve() for each in find_studies(Path())] == [path.resolve()]
    file = typed(shown(path))
    of_it = "" if is_only else f" --study {file}"
    commit = commit_command(added.study, [name], "Register")
    if repository is None:
        begin, _, commit = commit.partition(" && ")
        yield f"first:     {begin}"
    yield f"try it:    pytest-prereg try {typed(name)}{of_it}"
    yield f"register:  pytest-prereg lock{of_it} && {commit}"
    is_root = repository is None or repository.root.resolve() == Path.cwd().resolve()
    yield f"measure:   pytest --prereg --prereg-record{'' if is_only and is_root else f' {file}'}"
