"""What is said of the machine: cheap, nothing imported, never its name."""

from __future__ import annotations

import json
import platform
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


@pytest.mark.parametrize("body", ["exit 9", "exec sleep 60", "echo 'No devices were found'"])
def test_an_nvidia_smi_that_fails_hangs_or_talks_is_no_gpu(no_gpu, tmp_path, monkeypatch, body):
    monkeypatch.setattr(environment, "_SMI_SECONDS", 0.2)
    smi(tmp_path, monkeypatch, body)

    assert describe_machine()["gpu"] == []


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
