"""What an experiment asks of a service: hardware that is fixed, and a service that is set up by names alone."""

from __future__ import annotations

import pytest
from study_texts import load, refusals

from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.model import Resources
from pytest_prereg.registry.supported import not_yet

HEAD = '[study]\nid = "s"\n'
RUN = """\
[experiments.e]
fixture = "reward_barrier"
repeats = 3
"""
CLAIM = """
[predictions.p]
claim = "c"
experiment = "e"
contrast = "a / b"
quantity = "eta"
predicts = "<= 1"
falsifier = "> 2"
"""
ARMS = "[experiments.e.arms]\na = {{ {a} }}\nb = {{ staleness = 1 }}\n"


def told(text: str) -> list[str]:
    return [str(problem) for problem in not_yet(load(text))]


def asked(keys: str, arm: str = "") -> Resources:
    table = f"[experiments.e.arms]\na = {{ resources = {{ {arm} }} }}\nb = {{}}\n" if arm else ""
    experiment = load(f'{HEAD}{RUN}executor = "modal"\nresources = {{ {keys} }}\n{table}').experiments["e"]
    return next(iter(experiment.arms.values())).resources


def test_an_arm_asks_for_what_its_experiment_does_and_for_its_own_over_that():
    assert asked('gpu = "L4", cpu = 4, memory = "16 GiB"') == Resources(gpu="L4", cpu=4.0, memory=16 << 30)
    assert asked('gpu = "L4", cpu = 4', 'gpu = "H100:2"') == Resources(gpu="H100:2", cpu=4.0)
    assert asked('memory = "1.5 GB"').memory == 1_500_000_000


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ('gpu = ["L4", "A10"]', '"gpu" is a list; it must be text; with a choice the hardware is not fixed'),
        ('gpu = "any"', '"gpu" is "any": with a choice the hardware is not fixed'),
        ('gpu = "L4,A10"', "with a choice the hardware is not fixed"),
        ('gpu = "L4:0"', "it must be the name of one kind"),
        ("gpu = 1", '"gpu" is "1"; it must be text'),
        ("cpu = 0", '"cpu" is "0"; it must be a number above 0'),
        ('memory = "16"', "it must be a size with its unit"),
        ('memory = "0 GiB"', "it must be a size with its unit"),
        ("memory = 16", '"memory" is "16"; it must be text'),
        ('gpus = "L4"', 'unknown key "gpus"; did you mean "gpu"?'),
    ],
)
@pytest.mark.parametrize("place", ["experiment", "arm"])
def test_what_does_not_fix_the_hardware_is_refused_where_it_is_written(keys, why, place):
    if place == "experiment":
        written = f"resources = {{ {keys} }}\n"
    else:
        written = f"[experiments.e.arms]\na = {{ resources = {{ {keys} }} }}\nb = {{}}\n"
    (problem,) = refusals(f"{HEAD}{RUN}{written}")
    assert why in problem
    assert problem.startswith(("6: PR", "7: PR")[place == "arm"])


def test_this_machine_is_what_it_is():
    (alone,) = told(f'{HEAD}{RUN}resources = {{ gpu = "L4", memory = "16 GiB" }}\n')
    assert (
        'PR008: experiment "e" asks for gpu = "L4", memory = "16 GiB", and this machine is what it is'
        in alone
    )
    assert 'executor = "modal"' in alone
    (of_an_arm,) = told(
        HEAD + RUN + ARMS.format(a='resources = { gpu = "L4" }').replace("b = {", "b = { resources = {}, ")
    )
    assert 'PR008: experiment "e", "arms.a" asks for gpu = "L4"' in of_an_arm
    assert told(f'{HEAD}{RUN}executor = "modal"\nresources = {{ gpu = "L4" }}\nmax-parallel = 8\n') == []


def test_versions_of_the_code_are_built_here():
    arms = '[experiments.e.arms]\nold = { ref = "v1" }\nnew = { ref = "worktree" }\n'
    run = RUN.replace('fixture = "reward_barrier"', 'command = ["ls"]')
    (message,) = told(f'{HEAD}{run}executor = "modal"\n{arms}')
    assert '"ref" of arms that run elsewhere is not supported yet' in message


def test_repeats_side_by_side_are_for_services():
    (message,) = told(f"{HEAD}{RUN}max-parallel = 2\n")
    assert 'experiment "e": "max-parallel" on this machine is not supported yet' in message


def test_what_is_imported_runs_nowhere():
    text = f'{HEAD}[experiments.e]\nmetrics = {{ t = "s" }}\nexecutor = "modal"\n'
    (message,) = told(text)
    assert 'experiment "e" is fed by import and has "executor": the tool runs none of its repeats' in message


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("slurm", 'PR008: experiment "e": executor "slurm" is not supported yet'),
        ("modl", 'PR007: experiment "e": no executor is called "modl"; did you mean "modal"?'),
        ("k8s", 'no executor is called "k8s"; there is "local" and "modal"'),
    ],
)
def test_an_executor_that_nothing_brings_is_told_with_the_nearest(name, why):
    (message,) = told(f'{HEAD}{RUN}executor = "{name}"\n')
    assert why in message


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('memory = "1 GiB"', 'memory = "1024 MiB"', True),
        ("cpu = 4", "cpu = 4.0", True),
        ('gpu = "L4:1"', 'gpu = "L4"', True),
        ('gpu = "L4"', 'gpu = "T4"', False),
        ("", "cpu = 1", False),
    ],
)
@pytest.mark.parametrize("place", ["experiment", "arm"])
def test_the_hardware_that_is_asked_for_is_registered_however_it_is_written(one, other, same, place):
    def digest(keys):
        own = f"resources = {{ {keys} }}"
        arms = ARMS.format(a=own if place == "arm" else "")
        study = load(f"{HEAD}{RUN}{own if place == 'experiment' else ''}\n{arms}{CLAIM}")
        return registration_digest(study, study.predictions["p"])

    assert (digest(one) == digest(other)) is same


def test_what_asks_for_nothing_leaves_a_registration_as_it_was():
    def digest(line):
        study = load(f"{HEAD}{RUN}{line}\n{ARMS.format(a='')}{CLAIM}")
        return registration_digest(study, study.predictions["p"])

    assert digest("") == digest("resources = {}")


SERVICE = HEAD + "[executors.modal]\n{keys}\n"


def test_a_service_is_set_up_by_names():
    table = load(
        SERVICE.format(
            keys='image = "recipes:torch"\nvolumes = { "/weights" = "qwen" }\n'
            'secrets = ["hf"]\nregion = "us-east"'
        )
    ).executors.modal
    assert (table.image, table.volumes) == ("recipes:torch", {"/weights": "qwen"})
    assert load(HEAD).executors.modal is None


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("image = 3", '"image" is "3"; it must be text'),
        ('image = " "', "names nothing"),
        ('region = "us east\\n"', "names nothing"),
        ('secrets = "hf"', '"secrets" is "hf"; it must be a list of text'),
        ('secrets = [""]', "each is named as the service keeps it"),
        ('volumes = ["/weights"]', '"volumes" is a list; it must be a table'),
        ('volumes = { weights = "qwen" }', '"weights" is no folder that a volume can be mounted at'),
        ('volumes = { "/" = "qwen" }', "no folder that a volume can be mounted at"),
        ('volumes = { "/weights" = "" }', "no name of a volume"),
        ('regions = "us"', 'unknown key "regions"; did you mean "region"?'),
    ],
)
def test_what_no_service_could_be_set_up_with_is_refused_with_its_line(keys, why):
    (problem,) = refusals(SERVICE.format(keys=keys))
    assert why in problem
    assert problem.startswith("4: PR")


def test_slurm_is_not_there_yet():
    (message,) = told(f'{HEAD}[executors.slurm]\npartition = "gpu"\n')
    assert 'PR008: [executors]: executor "slurm" is not supported yet' in message
