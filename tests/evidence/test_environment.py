"""What is said of the machine: cheap, nothing imported, never its name."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys

import pytest

from pytest_prereg.evidence import environment
from pytest_prereg.evidence.environment import (
    describe_load,
    describe_machine,
    describe_versions,
    machine_class,
)
from pytest_prereg.registry.environment_conditions import MACHINE

NVIDIA_VERSION = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""
OPEN_VERSION = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (dvs-builder)  Sun Mar 30
"""
NVIDIA_INFORMATION = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 157\nGPU UUID: \t GPU-x\nVideo BIOS: \t 96.00\n"


@pytest.fixture
def no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "_NVIDIA", tmp_path / "nvidia")
    monkeypatch.setattr(environment.shutil, "which", lambda _: None)


def test_this_machine_is_described_in_json_without_its_name():
    text = json.dumps(describe_machine())

    assert set(json.loads(text)) >= {"cpu", "cores", "gpu", "driver", "os", "python", "torch", "container"}
    assert platform.node() not in text or len(platform.node()) < 4
    assert describe_machine()["cores"] >= 1


def test_describing_imports_nothing_heavy():
    program = (
        "import sys; from pytest_prereg.evidence.environment import *; describe_machine(); describe_versions();"
        "print(*sorted({'torch', 'numpy', 'scipy', 'pint', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""


def test_versions_name_python_and_this_package():
    versions = describe_versions()

    assert versions["python"] == platform.python_version()
    assert "pytest-prereg" in versions


def test_the_load_is_a_number():
    assert describe_load()["load_average"] >= 0


@pytest.mark.parametrize(("version", "driver"), [(NVIDIA_VERSION, "550.54.15"), (OPEN_VERSION, "570.133.20")])
def test_the_kernels_files_name_gpu_and_driver(no_gpu, tmp_path, version, driver):
    for number in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "nvidia" / "gpus" / number).mkdir(parents=True)
        (tmp_path / "nvidia" / "gpus" / number / "information").write_text(NVIDIA_INFORMATION)
    (tmp_path / "nvidia" / "version").write_text(version)

    described = describe_machine()

    assert (described["gpu"], described["driver"]) == (["NVIDIA H200", "NVIDIA H200"], driver)


def smi(tmp_path, monkeypatch, body):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(environment.shutil, "which", lambda _: str(program))


def test_where_the_kernel_says_nothing_nvidia_smi_is_asked(no_gpu, tmp_path, monkeypatch):
    smi(tmp_path, monkeypatch, "echo 'NVIDIA GeForce RTX 4090, 535.183.01'")

    described = describe_machine()

    assert (described["gpu"], described["driver"]) == (["NVIDIA GeForce RTX 4090"], "535.183.01")


def test_an_nvidia_smi_that_finds_no_device_says_that_there_is_no_gpu(no_gpu, tmp_path, monkeypatch):
    smi(tmp_path, monkeypatch, "echo 'No devices were found'; exit 6")

    assert describe_machine()["gpu"] == []


@pytest.mark.parametrize("body", ["exit 9", "exec sleep 60", "echo 'NVIDIA-SMI has failed'", ":"])
def test_gpus_that_the_driver_can_not_tell_are_unknown(no_gpu, tmp_path, monkeypatch, body):
    monkeypatch.setattr(environment, "_SMI_SECONDS", 0.2)
    smi(tmp_path, monkeypatch, body)

    described = describe_machine()

    assert described["gpu"] is None
    assert machine_class(described).split(" | ")[1:] == ["none", "none"]


def test_governor_and_clock_are_those_of_the_cores_that_may_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "_CPUS", tmp_path)
    monkeypatch.setattr(environment.os, "sched_getaffinity", lambda _: {0, 2})
    assert (describe_machine()["cpu_governor"], describe_machine()["cpu_max_mhz"]) == (None, None)

    for number, governor, khz in (
        (0, "performance", 3500000),
        (1, "schedutil", 1),
        (2, "powersave", 3400500),
    ):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
        (folder / "cpuinfo_max_freq").write_text(f"{khz}\n")

    described = describe_machine()
    assert (described["cpu_governor"], described["cpu_max_mhz"]) == ("performance + powersave", 3400.5)


@pytest.mark.parametrize(
    ("line", "cuda"),
    [
        ("cuda: Optional[str] = '12.4'", "12.4"),
        ('cuda = "11.8"', "11.8"),
        ("cuda: Optional[str] = None", None),
        ("cudart = '12.4'", None),
    ],
)
def test_the_cuda_version_that_torch_was_built_for_is_read_from_its_file(tmp_path, monkeypatch, line, cuda):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.7.0'\n{line}\nraise RuntimeError\n")
    (tmp_path / "torch-2.7.0.dist-info").mkdir()
    (tmp_path / "torch-2.7.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.7.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    assert describe_machine()["cuda"] == cuda


def test_every_condition_on_a_machine_names_what_is_recorded():
    assert set(MACHINE) == {*describe_machine(), "region"}  # of a service's machine, which tells it itself


def test_no_part_of_the_description_is_the_name_of_the_host():
    words = json.dumps([describe_machine(), describe_versions()])
    names = {platform.node(), socket.gethostname(), socket.getfqdn(), os.environ.get("HOSTNAME", "")}

    assert not [name for name in names if len(name) > 3 and name in words]


@pytest.mark.parametrize(
    ("described", "name"),
    [
        ({"cpu": "EPYC", "gpu": ["H200", "H200"], "driver": "550.54.15"}, "EPYC | H200 | 550"),
        ({"cpu": "EPYC", "gpu": ["T4", "A10"], "driver": "535.1"}, "EPYC | A10 + T4 | 535"),
        ({"cpu": "EPYC", "gpu": [], "driver": None}, "EPYC | none | none"),
        ({}, "none | none | none"),
    ],
)
def test_a_class_of_machines_is_cpu_gpu_and_driver_major(described, name):
    assert machine_class(described) == name
