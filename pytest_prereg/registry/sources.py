"""Where a study's experiments are, what they declare, and a digest of their code; nothing is imported."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.builtins import built_ins, workload_versions
from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.commands import commanded
from pytest_prereg.registry.declarations import Declared, Module, metric, read_declarations
from pytest_prereg.registry.imports import Imported, Scope, repository_root, resolve
from pytest_prereg.registry.module_graph import edges, module_graph
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.scripts import scope_of, scripts_of
from pytest_prereg.registry.subjects import data_digest, subject_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.registry.model import Experiment, Source, Study
    from pytest_prereg.registry.tables import StudyTable

__all__ = [
    "Declared",
    "find_experiments",
    "import_root",
    "metric",
    "repository_root",
    "source_digest",
    "source_files",
]

DEFAULT_FOLDER = "experiments"


def find_experiments(table: StudyTable, folder: Path) -> dict[str, Declared]:
    """The experiments that a study can use, by name: those of its own modules, then the built-in ones.

    A study's own experiment hides a built-in one of the same name, so that no release can take a name away.

    Args:
        table: The ``[study]`` table.
        folder: The folder of the prediction file.

    Raises:
        StudyError: PR041, every malformed declaration of every module at once.
    """
    own: dict[str, tuple[Declared, Module]] = {}
    problems: list[Problem] = []
    for module in _modules(table, folder, problems):
        found, wrong = read_declarations(module)
        problems += wrong
        for declared in found:
            name = declared.source.function
            if name in own:
                problems.append(_declared_twice(declared, module, own[name]))
            own[name] = declared, module
    if problems:
        raise StudyError(problems)
    return built_ins() | {name: declared for name, (declared, _) in own.items()}


def _declared_twice(declared: Declared, module: Module, earlier: tuple[Declared, Module]) -> Problem:
    first, where = earlier
    place = f"{where.shown}:{first.source.line}"
    message = (
        f"experiment {quoted(declared.source.function)} is declared a second time; the first is at {place}"
    )
    return Problem(code="PR041", path=module.shown, line=declared.source.line, message=message)


def _modules(table: StudyTable, folder: Path, problems: list[Problem]) -> Iterator[Module]:
    """Every module that may declare experiments, in a fixed order."""
    base = folder.resolve()
    seen = set()
    for entry in [DEFAULT_FOLDER] if table.experiments is None else table.experiments:
        place = _place(base, entry)
        if place is None:
            if table.experiments is not None:
                message = f"experiments names {quoted(entry)}, and there is no such folder or module here"
                problems.append(Problem(code="PR041", path=str(folder), message=message))
            continue
        root = base if place.is_relative_to(base) else place.parent
        for path in _python_files(place, base / table.evidence):
            if path not in seen:
                seen.add(path)
                name = ".".join(path.relative_to(root).with_suffix("").parts)
                shown = folder / path.relative_to(base) if root == base else path
                yield Module(name=name, path=path, shown=str(shown))


def _place(base: Path, entry: str) -> Path | None:
    """The folder or file that an entry of ``[study].experiments`` means: a path, or a dotted name.

    Symbolic links are left as they are: a module is imported under the name that leads to it.
    """
    dotted = base.joinpath(*entry.split("."))
    candidates = (base / entry, dotted.with_name(f"{dotted.name}.py"), dotted)
    found = (Path(os.path.normpath(path)) for path in candidates if path.is_dir() or path.is_file())
    return next(found, None)


def _python_files(place: Path, evidence: Path) -> Iterator[Path]:
    """A module itself, or the modules below a folder but for hidden and private ones and the evidence."""
    if place.is_file():
        yield place
        return
    for parent, folders, files in os.walk(place):
        here = Path(parent)
        folders[:] = sorted(name for name in folders if name[0] not in "._" and here / name != evidence)
        yield from (here / name for name in sorted(files) if name.endswith(".py") and name[0] not in "._")


def import_root(source: Source) -> Path | None:
    """The folder to put first on ``sys.path`` for a source's module; ``None`` for a built-in."""
    return source.path.parents[source.module.count(".")] if source.path else None


def source_digest(study: Study, experiment: Experiment) -> str | None:
    """``sha256:…`` of the code that an experiment runs; ``None`` where nothing is run (imports).

    For a function: its module and every module of the repository that this imports, transitively, as syntax
    trees without comments, docstrings or paths. A built-in counts by its versions, a command by its
    arguments and, as modules do, by the scripts of the repository that they name. Modules of the repository
    that are preloaded count in any case: they run before the others. Modules of the experiment's subject are
    left out; its data count by their digest.

    Raises:
        StudyError: There is no such subject (PR042), or no such data (PR043).
    """
    subject = frozenset(subject_files(study, experiment))
    if experiment.kind == "import":
        return None
    code = _code(study, experiment, subject)
    data = data_digest(study, experiment)
    return _digest(code if data is None else {"code": code, "data": data})


def source_files(study: Study, experiment: Experiment) -> list[Path]:
    """Modules that the source digest of an experiment is taken of; none if all that it runs is installed.

    Raises:
        StudyError: There is no such subject (PR042).
    """
    if experiment.kind == "import":
        return []
    subject = frozenset(subject_files(study, experiment))
    return list(_modules_run(study, experiment, subject))


def _code(study: Study, experiment: Experiment, subject: frozenset[Path]) -> Any:
    """What counts of the code that is run, as plain data."""
    source = experiment.source
    modules = list(_modules_run(study, experiment, subject).values())
    if source is None:
        return commanded(experiment.table) | ({"scripts": modules} if modules else {})
    if source.path is not None:
        return modules
    versions = workload_versions(source.module)
    return [versions, modules] if modules else versions


def _modules_run(study: Study, experiment: Experiment, subject: frozenset[Path]) -> dict[Path, list[Any]]:
    """What counts of each module of the repository that an experiment runs."""
    source = experiment.source
    if source is None:
        scripts = scripts_of(study, experiment)
        return module_graph(scripts, [], scope_of(study, scripts), subject)
    scope = _scope(source, study.folder.resolve())
    preloaded = _preloaded(experiment, source, study.path.resolve(), scope)
    if source.path is None:
        return module_graph(preloaded, [], scope, subject)
    start = resolve(Imported(level=0, name=source.module), source.path, scope)
    return module_graph([source.path.resolve(), *start], preloaded, scope, subject)


def _preloaded(experiment: Experiment, source: Source, importer: Path, scope: Scope) -> list[Path]:
    """Files of the repository that preloading runs; what is installed is none of them."""
    names = [*source.preload, *(experiment.table.preload or ())]
    found = (edge for name in names for edge in edges(Imported(level=0, name=name), importer, scope))
    return list(dict.fromkeys(edge for edge in found if isinstance(edge, Path)))


def _digest(content: Any) -> str:
    return f"sha256:{hashlib.sha256(canonical_json(content)).hexdigest()}"


def _scope(source: Source, folder: Path) -> Scope:
    """Where a study's modules are found: as its fork server finds them, then as if they were installed."""
    root = import_root(source) or folder
    repository = repository_root(root / DEFAULT_FOLDER)
    of_repository = (repository, repository / "src") if repository else ()
    roots = tuple(dict.fromkeys([root, folder, *of_repository]))
    return Scope(roots=roots, within=repository or root.resolve())
