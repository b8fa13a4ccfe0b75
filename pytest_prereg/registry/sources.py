"""Where a study's experiments are, what they declare, and a digest of their code; nothing is imported."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.builtins import built_ins, modules_of_package, workload_versions
from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.declarations import Declared, Module, is_ours, metric, read_declarations
from pytest_prereg.registry.imports import Imported, Scope, imported_names, resolve
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.trees import tree_digest

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


def repository_root(path: Path) -> Path | None:
    """The work tree of the git repository that holds ``path``, found without running git."""
    return next((parent for parent in path.resolve().parents if (parent / ".git").exists()), None)


def source_digest(study: Study, experiment: Experiment) -> str | None:
    """``sha256:…`` of the code that an experiment runs; ``None`` where nothing is run (imports).

    For a function: its module and every module of the repository that this imports, transitively, as syntax
    trees without comments, docstrings or paths. A built-in counts by its versions, a command by its
    arguments. Modules of the repository that are preloaded count in any case: they run before the others.
    """
    if experiment.kind == "command":
        return _digest({"command": experiment.table.command})
    if experiment.source is None:
        return None
    modules = list(_modules_run(study, experiment, experiment.source).values())
    if experiment.source.path is not None:
        return _digest(modules)
    versions = workload_versions(experiment.source.module)
    return _digest([versions, modules] if modules else versions)


def source_files(study: Study, experiment: Experiment) -> list[Path]:
    """Files that the source digest of an experiment is taken of; none if all that it runs is installed."""
    return list(_modules_run(study, experiment, experiment.source)) if experiment.source else []


def _modules_run(study: Study, experiment: Experiment, source: Source) -> dict[Path, list[Any]]:
    """What counts of each module of the repository that an experiment runs."""
    scope = _scope(source, study.folder.resolve())
    preloaded = _preloaded(experiment, source, study.path.resolve(), scope)
    if source.path is None:
        return _graph(preloaded, [], scope)
    start = resolve(Imported(level=0, name=source.module), source.path, scope)
    return _graph([source.path.resolve(), *start], preloaded, scope)


def _preloaded(experiment: Experiment, source: Source, importer: Path, scope: Scope) -> list[Path]:
    """Files of the repository that preloading runs; what is installed is none of them."""
    names = [*source.preload, *(experiment.table.preload or ())]
    edges = (edge for name in names for edge in _edges(Imported(level=0, name=name), importer, scope))
    return list(dict.fromkeys(edge for edge in edges if isinstance(edge, Path)))


def _digest(content: Any) -> str:
    return f"sha256:{hashlib.sha256(canonical_json(content)).hexdigest()}"


def _scope(source: Source, folder: Path) -> Scope:
    """Where a study's modules are found: as its fork server finds them, then as if they were installed."""
    root = import_root(source) or folder
    repository = repository_root(root / DEFAULT_FOLDER)
    of_repository = (repository, repository / "src") if repository else ()
    roots = tuple(dict.fromkeys([root, folder, *of_repository]))
    return Scope(roots=roots, within=repository or root.resolve())


def _graph(start: list[Path], last: list[Path], scope: Scope) -> dict[Path, list[Any]]:
    """Modules as they are met, each as the digest of its tree and the numbers of those that it imports.

    Numbers stand for paths: files may move, and yet two modules that trade places make a difference. Those of
    ``last`` that nothing has led to come after all others.
    """
    met = list(dict.fromkeys(start))
    graph: dict[Path, list[Any]] = {}
    for path in met:  # grows on the way
        text = path.read_bytes()
        edges = [edge for imported in imported_names(text) for edge in _edges(imported, path, scope)]
        met += [edge for edge in dict.fromkeys(edges) if isinstance(edge, Path) and edge not in met]
        numbers = [met.index(edge) if isinstance(edge, Path) else edge for edge in edges]
        graph[path] = [tree_digest(text), numbers]
        if len(graph) == len(met):
            met += [path for path in last if path not in met]
    return graph


def _edges(imported: Imported, importer: Path, scope: Scope) -> list[Any]:
    """Files that an import leads to; of this package versions of workloads, which stand for code."""
    if imported.level or not is_ours(imported.name):
        return list(resolve(imported, importer, scope))
    modules = modules_of_package(imported, importer)
    return [version for module in modules for version in workload_versions(module)]
