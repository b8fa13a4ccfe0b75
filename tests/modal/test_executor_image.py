"""What a container gets of the study, and what its image is made of."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import venv
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import modal
import msgspec
import pytest

import pytest_prereg
from pytest_prereg.errors import MeasureError
from pytest_prereg.measure.executors import wire
from pytest_prereg.measure.executors.base import Job
from pytest_prereg.measure.executors.modal import image, inside
from pytest_prereg.measure.executors.modal.app import DAY, longest, longest_body
from pytest_prereg.measure.executors.modal.bucket import Bucket
from pytest_prereg.measure.executors.modal.executor import ModalExecutor
from pytest_prereg.measure.executors.modal.messages import STUDY, Answer, Errand, Look
from pytest_prereg.measure.executors.modal.rates import usd_per_hour
from pytest_prereg.registry.model import Resources
from pytest_prereg.registry.tables import ModalTable

if TYPE_CHECKING:
    from modal_studies import Workshop
    from standin_handle import Service

    from pytest_prereg.registry.model import Arm, Experiment


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")


def chosen(workshop: Workshop, **keys: object) -> set[str]:
    files = image.files_for(*workshop.study(**keys))
    return {path.as_posix() for path in files.chosen}


def test_a_container_gets_the_study_without_evidence_and_without_what_git_ignores(workshop: Workshop):
    workshop.study()
    write(
        workshop.folder, "experiments/evidence/lab/1.jsonl", "notes.md", ".env", ".venv/big.py", "data/x.bin"
    )
    (workshop.folder / ".gitignore").write_text(".env\n.venv\ndata\n")
    expected = {"experiments/lab.py", "notes.md", ".gitignore"}
    subprocess.run(["git", "init", "-q", str(workshop.folder)], check=True)
    assert chosen(workshop) == expected
    assert chosen(workshop, data=["data/*.bin"]) == {*expected, "data/x.bin"}


def test_without_git_folders_that_no_container_needs_are_left_out(workshop: Workshop):
    workshop.study()
    write(workshop.folder, "experiments/evidence/lab/1.jsonl", ".venv/big.py", "notes.md")
    assert chosen(workshop) == {"experiments/lab.py", "notes.md"}


def test_modules_of_the_repository_that_are_installed_here_come_along(workshop: Workshop, tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    write(tmp_path, "src/kernels/__init__.py", "src/kernels/fused.py", "unrelated.py")
    files = image.files_for(*workshop.study(top="import kernels.fused"))
    assert files.ground == tmp_path
    assert files.folder == Path("study")
    assert files.setup.file == "study/experiments/lab.py"
    assert files.setup.paths == ["study", "src"]
    assert Path("src/kernels/fused.py") in files.chosen


def test_what_lies_outside_of_study_and_repository_is_refused(workshop: Workshop, tmp_path: Path):
    write(tmp_path, "elsewhere/x.bin")
    with pytest.raises(MeasureError, match=r"PR139: experiment \"lab\" needs .*x\.bin"):
        image.files_for(*workshop.study(data=["../elsewhere/x.bin"]))


def test_the_default_image_pins_what_is_installed_here(workshop: Workshop):
    top = "import click, json, hypothesis\nfrom . import beside"
    assert image.imports_of(*workshop.study(top=top, preload=["numpy"])) == ["click", "hypothesis", "numpy"]
    pins = image.pins(["hypothesis", "nothing_of_that_name"])
    for name in ("msgspec", "numpy", "scipy", "pint", "hypothesis"):
        assert f"{name}=={importlib.metadata.version(name)}" in pins
    assert not any(pin.startswith(("pytest-prereg", "torch", "modal")) for pin in pins)


def test_a_recipe_of_the_study_is_taken_before_a_registrys_image(workshop: Workshop, tmp_path: Path):
    study, experiment = workshop.study(modal=ModalTable(image="recipes:gpu"))
    files = image.files_for(study, experiment)
    assert image._recipe(study, "recipes:gpu") is None, "no such module: the name is a registry's"
    assert image._recipe(study, "nvidia/cuda:12.8.1-devel-ubuntu24.04") is None
    path = study.folder / "recipes.py"
    path.write_text("import modal\ngpu = modal.Image.debian_slim()\ncpu = 1\n")
    assert isinstance(image.image_for(study, experiment, files, tmp_path), modal.Image)
    with pytest.raises(MeasureError, match=r"PR139: \[executors.modal\] image is \"recipes:cpu\""):
        image._recipe(study, "recipes:cpu")
    for text in ("import nothing_of_that_name", "raise SystemExit(3)"):
        path.write_text(text)
        with pytest.raises(MeasureError, match=r"PR139: the recipe of the image could not be imported"):
            image._recipe(study, "recipes:gpu")


def sent(workshop: Workshop, root: Path) -> tuple[Errand, Path]:
    """What a container is asked, and the folder in which it finds what it needs."""
    files = image.files_for(*workshop.study())
    root.mkdir()
    (root / "pytest_prereg").symlink_to(Path(pytest_prereg.__file__).parent)
    (root / STUDY).symlink_to(files.ground)
    return Errand(experiment="lab", setup=files.setup, folder=str(files.folder), marks="prereg-study"), root


def test_what_is_begun_again_after_its_body_has_ended_answers_the_same(
    service: Service, workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    errand, root = sent(workshop, tmp_path / "root")
    monkeypatch.setattr(inside, "_root", lambda: root)
    monkeypatch.setattr(modal, "current_function_call_id", lambda: "fc-1")
    job = Job(repeat="lab/1/a/1", arm="a", index=1, seed=7, metrics={"t": "s"})
    payload = msgspec.json.encode(msgspec.structs.replace(errand, job=job))
    answers = []
    for container in ("ta-1", "ta-2"):
        monkeypatch.setenv("MODAL_TASK_ID", container)
        answers.append(inside.run(payload))
    assert answers[0] == answers[1]
    assert len(workshop.bodies()) == 1
    assert wire.decode(answers[0], Answer).result.values == {"t": 0.5}
    assert service.state()["requests"]["DictUpdate"] == 4, "three marks of the first start, one of the second"


def test_a_container_needs_no_more_than_msgspec_and_is_sent_the_package(workshop: Workshop, tmp_path: Path):
    """As on Modal, where nothing of this environment is installed, and this package as source alone."""
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    site = next((bare / "lib").glob("python*/site-packages"))
    for name in ("msgspec", "typing_extensions.py"):
        found = Path(msgspec.__file__).parents[1] / name
        if found.exists():
            (site / name).symlink_to(found)
    errand, root = sent(workshop, tmp_path / "root")
    program = "import sys; from pytest_prereg.measure.executors.modal.inside import look; "
    answer = subprocess.run(
        [bare / "bin" / "python", "-c", program + "sys.stdout.buffer.write(look(sys.stdin.buffer.read()))"],
        input=msgspec.json.encode(errand),
        capture_output=True,
        check=False,
        cwd=root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root)},
    )
    assert answer.returncode == 0, answer.stderr.decode()
    found: Look = wire.decode(answer.stdout, Look)
    assert found.problem is None
    assert found.versions["python"] == sys.version.split()[0]
    assert "numpy" not in found.versions


def test_there_is_room_for_every_body_that_is_let_in(workshop: Workshop):
    experiment = workshop.study(timeout=60.0)[1]
    most = longest_body(experiment)
    assert 60 < longest(experiment, first(experiment)) < DAY
    unlimited = workshop.study(timeout=None)[1]
    assert longest(unlimited, first(unlimited)) == DAY
    with pytest.raises(MeasureError, match="PR139"):
        ModalExecutor(*workshop.study(timeout=most + 1))
    ModalExecutor(*workshop.study(timeout=most))


def first(experiment: Experiment) -> Arm:
    return next(iter(experiment.arms.values()))


def test_arms_that_are_versions_of_the_code_are_refused(workshop: Workshop):
    with pytest.raises(MeasureError, match='PR139: arms of experiment "lab" are versions of the code'):
        ModalExecutor(*workshop.study(), checkout=object())


RATES = {
    name: Decimal(rate)
    for name, rate in {
        "cpu_hour_cost": "0.0473",
        "mem_gib_hour_cost": "0.008",
        "gpu_hour_cost_a100_80gb": "2.5",
        "gpu_hour_cost_a10g": "1.1",
        "gpu_hour_cost_h100": "3.95",
    }.items()
}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (Resources(), 0.125 * 0.0473 + 0.125 * 0.008),
        (Resources(cpu=4.0, memory=16 << 30), 4 * 0.0473 + 16 * 0.008),
        (Resources(gpu="H100:2", cpu=1.0, memory=1 << 30), 7.9 + 0.0473 + 0.008),
        (Resources(gpu="H100!", cpu=1.0, memory=1 << 30), 3.95 + 0.0473 + 0.008),
        (Resources(gpu="A100-80GB", cpu=1.0, memory=1 << 30), 2.5 + 0.0473 + 0.008),
        (Resources(gpu="a10", cpu=1.0, memory=1 << 30), 1.1 + 0.0473 + 0.008),
    ],
)
def test_an_hour_costs_what_was_asked_for(asked: Resources, expected: float):
    assert usd_per_hour(asked, RATES) == pytest.approx(expected)


def test_what_a_gpu_costs_that_nobody_knows_is_not_guessed():
    assert usd_per_hour(Resources(gpu="Z9"), RATES) is None
    assert usd_per_hour(Resources(), {}) is None


def test_a_bucket_gives_so_many_at_once_and_then_so_many_a_second():
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    bucket = Bucket(per_second=4.0, burst=3.0, clock=lambda: now[0], sleep=sleep)
    times = []
    for _ in range(5):
        bucket.take()
        times.append(now[0])
    assert times == [0.0, 0.0, 0.0, 0.25, 0.5]
    now[0] += 60.0
    bucket.empty()
    bucket.take()
    assert now[0] == 60.75
