"""The image that repeats run in, and what of the study comes into it.

Unless the study names an image, it has the Python and the releases that are installed here: those that this
package needs, and those that the experiment's modules import. The files come on top of it when a container
starts, so that a change of the study builds nothing anew.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.git_environment import environment
from pytest_prereg.measure.executors.local import setup_for
from pytest_prereg.measure.executors.modal import bytecode
from pytest_prereg.measure.executors.modal.bytecode import PACKAGE
from pytest_prereg.measure.executors.modal.messages import STUDY
from pytest_prereg.registry.imports import imported_names, repository_root
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.sources import source_files
from pytest_prereg.registry.subjects import data_files, subject_files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.measure.executors.messages import Setup
    from pytest_prereg.registry.model import Experiment, Study

HERE = f"/root/{STUDY}"
_RECIPE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
NOT_MEASURING = frozenset({"audit", "report", "commands"})
"""Folders of this package that nothing which measures imports: the layers above it."""
LEFT_OUT = frozenset({".git", "__pycache__", ".venv", "venv", "node_modules"})
"""Folders that no container needs, where git can't be asked."""


class Files(NamedTuple):
    """Which files containers get, and where among them the study is."""

    ground: Path
    """The folder here that is :data:`HERE` there: the study's, or its repository where that is needed."""
    folder: Path
    chosen: frozenset[Path]
    """Relative to ``ground``."""
    setup: Setup
    """As the container gets it: relative to ``ground``."""


def files_for(study: Study, experiment: Experiment) -> Files:
    """Return what containers get of the study.

    Raises:
        MeasureError: PR139, if some of it lies outside of the study's repository, or folder.
        StudyError: What ``data`` or ``subject`` name is not there.
    """
    folder = study.folder.resolve()
    modules = {*source_files(study, experiment), *subject_files(study, experiment)}
    needed = {*modules, *data_files(study, experiment)}
    ground = folder if all(path.is_relative_to(folder) for path in needed) else _repository(folder)
    setup = setup_for(experiment, folder)
    roots = [*setup.paths, *(str(root) for root in _installed_from(ground, modules, setup))]
    absolute = [*needed, *map(Path, roots), *([Path(setup.file)] if setup.file else ())]
    for path in absolute:
        if not path.is_relative_to(ground):
            raise MeasureError(_outside(experiment, path, ground))
    chosen = {path.relative_to(ground) for path in needed} | _files_of(ground, study)
    return Files(
        ground=ground,
        folder=folder.relative_to(ground),
        chosen=frozenset(chosen),
        setup=msgspec.structs.replace(
            setup,
            file=None if setup.file is None else str(Path(setup.file).relative_to(ground)),
            paths=[str(Path(path).relative_to(ground)) for path in roots],
        ),
    )


def image_for(study: Study, experiment: Experiment, files: Files, compiled: Path) -> Any:
    """Return the ``modal.Image`` of the experiment's containers.

    Args:
        study: The study.
        experiment: The experiment.
        files: What containers get of them.
        compiled: An empty folder, which has to be there until the image is built.

    Raises:
        MeasureError: PR139, if the study names a recipe that is none.
    """
    chosen = files.chosen

    def is_left_out(path: Path) -> bool:
        return path not in chosen

    bytecode.write(compiled)
    base = _base(study, experiment).add_local_python_source(PACKAGE, ignore=_is_idle)
    ours = base.add_local_dir(compiled, f"/root/{PACKAGE}")
    return ours.add_local_dir(files.ground, HERE, ignore=is_left_out)


def _is_idle(path: Path) -> bool:
    """Whether a file of this package, relative to it, has no part in measuring."""
    return path.suffix != ".py" or path.parts[0] in NOT_MEASURING


def pins(modules: Iterable[str] = ()) -> list[str]:
    """Return requirements at the releases that are installed here: this package's, and those of ``modules``.

    What is installed from somewhere else than an index is left out: no other machine could have it.
    """
    distributions = importlib.metadata.packages_distributions()
    asked = [
        _NAME.match(line) for line in importlib.metadata.requires("pytest-prereg") or () if ";" not in line
    ]
    names = [found[0] for found in asked if found]
    names += [name for module in modules for name in distributions.get(module, ())]
    pinned = (_pinned(name) for name in dict.fromkeys(names))
    return sorted(pin for pin in pinned if pin is not None)


def _pinned(name: str) -> str | None:
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    if found.read_text("direct_url.json") is not None or name == "pytest-prereg":
        return None
    # What follows a plus sign says how it was built for this machine: an index knows the release alone.
    return f"{name}=={found.version.partition('+')[0]}"


def imports_of(study: Study, experiment: Experiment) -> list[str]:
    """Return the top names of all that the experiment's own modules import, or have preloaded."""
    files = [*source_files(study, experiment), *subject_files(study, experiment)]
    texts = [path.read_bytes() for path in files if path.suffix == ".py"]
    found = [one.name for text in texts for one in imported_names(text) if not one.level]
    source = experiment.source
    found += [*(source.preload if source else ()), *(experiment.table.preload or ())]
    tops = dict.fromkeys(name.partition(".")[0] for name in found)
    return [name for name in tops if name not in sys.stdlib_module_names and name != PACKAGE]


def _base(study: Study, experiment: Experiment) -> Any:
    import modal  # noqa: PLC0415

    table = study.executors.modal
    named = table.image if table is not None else None
    if named is not None and (recipe := _recipe(study, named)) is not None:
        return recipe
    needed = pins(imports_of(study, experiment))
    python = ".".join(map(str, sys.version_info[:2]))
    if named is not None:
        return modal.Image.from_registry(named, add_python=python).pip_install(*needed)
    return modal.Image.debian_slim(python_version=python).pip_install(*needed)


def _recipe(study: Study, named: str) -> Any:
    """Return the image that a module beside the study defines, ``None`` where the name is a registry's."""
    import modal  # noqa: PLC0415

    found = _RECIPE.fullmatch(named)
    file = study.folder.joinpath(*found[1].split(".")).with_suffix(".py") if found else None
    if found is None or file is None or not file.is_file():
        return None
    image = getattr(_loaded(file.resolve(), study.folder.resolve()), found[2], None)
    if not isinstance(image, modal.Image):
        message = (
            f"[executors.modal] image is {quoted(named)}, but {file.name} has no modal.Image of that name"
        )
        raise MeasureError(Problem(code="PR139", message=message, path=str(study.path)))
    return image


def _loaded(file: Path, folder: Path) -> Any:
    """Run the module of a recipe under a name that nothing else has."""
    spec = importlib.util.spec_from_file_location(f"_prereg_image_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise MeasureError(Problem(code="PR139", message=f"{file} can't be read as a module"))
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        message = f"the recipe of the image could not be imported: {type(error).__name__}: {error}"
        raise MeasureError(Problem(code="PR139", message=message, path=str(file))) from error
    finally:
        sys.path.remove(str(folder))
    return module


def _repository(folder: Path) -> Path:
    return repository_root(folder / "any") or folder


def _installed_from(ground: Path, modules: Iterable[Path], setup: Setup) -> list[Path]:
    """Return folders of the repository whose modules are found here since they are installed from there."""
    found: list[Path] = []
    for root in (ground / "src", ground):
        below = [path for path in modules if path.is_relative_to(root)]
        known = [*map(Path, setup.paths), *found]
        if any(not any(path.is_relative_to(each) for each in known) for path in below):
            found.append(root)
    return found


def _files_of(ground: Path, study: Study) -> set[Path]:
    """Return the files of a folder that are no evidence, and that git does not ignore."""
    evidence = study.evidence_folder.resolve()
    every = _listed(ground)
    return {path for path in every if not (ground / path).is_relative_to(evidence)}


def _listed(ground: Path) -> list[Path]:
    command = ["git", "-C", str(ground), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, env=environment(os.environ))
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository
        return [path for path in _walked(ground) if not LEFT_OUT.intersection(path.parts)]
    names = [Path(os.fsdecode(name)) for name in answer.stdout.split(b"\0") if name]
    return [path for path in names if (ground / path).is_file()]


def _walked(ground: Path) -> list[Path]:
    return [path.relative_to(ground) for path in ground.rglob("*") if path.is_file()]


def _outside(experiment: Experiment, path: Path, ground: Path) -> Problem:
    return Problem(
        code="PR139",
        message=f'experiment "{experiment.id}" needs {quoted(str(path))}, which lies outside of {ground}',
        advice="Modal gets what is in the study's folder, or in its repository. Move the file there, or\n"
        'install it into an image of your own: [executors.modal] image = "module:name".',
    )
