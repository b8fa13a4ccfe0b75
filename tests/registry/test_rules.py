"""Rules that exclude a repeat, and conditions on its machine: what they may say, and what breaks them."""

from __future__ import annotations

import pytest
from study_texts import load, predicted, refusals

from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.environment_conditions import (
    KEYS,
    canonical_conditions,
    machine_outside,
    parse_conditions,
    repeat_outside,
)
from pytest_prereg.registry.rules import (
    FLAGS,
    NUMBERS,
    READINGS,
    canonical_rules,
    follows_from_rules,
    parse_rule,
    rule_broken,
)
from pytest_prereg.registry.supported import not_yet

FOUR = ["load_average > 4"]
PLACE = 'metrics = { t = "s" }\n'


def with_keys(*lines: str) -> str:
    """The study of the other tests, whose experiment ``two`` has these keys as well."""
    return predicted(experiment="two", arm="new", quantity="t").replace(
        PLACE, PLACE + "\n".join(lines) + "\n"
    )


def digest(*lines: str) -> str:
    study = load(with_keys(*lines))
    return registration_digest(study, study.predictions["p"])


@pytest.mark.parametrize(
    ("text", "reading", "broken"),
    [
        ("load_average > 4", 5.2, True),
        ("load_average > 4", 4, False),
        ("load_average >= 4", 4, True),
        ("load_average<4", 3.9, True),
        ("load_average <= 4", 4.01, False),
        ("gpu_foreign_processes != 0", 1, True),
        ("gpu_foreign_processes == 2", 1, False),
        ("gpu_clock_mhz < 1.5e3", 1410, True),
        ("gpu_throttled", True, True),
        ("gpu_throttled", False, False),
        ("not swapped", False, True),
        ("not swapped", True, False),
    ],
)
def test_a_rule_is_broken_by_the_reading_that_it_describes(text: str, reading: object, *, broken: bool):
    assert (rule_broken([text], {parse_rule(text).name: reading}) is not None) is broken


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("reading", [None, "9", True, float("nan"), float("inf")])
def test_what_could_not_be_read_as_a_number_excludes_nothing(name: str, reading: object):
    assert rule_broken([f"{name} > 1", f"{name} <= 1"], {name: reading}) is None
    assert rule_broken([f"{name} > 1"], {}) is None


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("reading", [None, 1, 0, "true"])
def test_what_could_not_be_read_as_a_flag_excludes_nothing(name: str, reading: object):
    assert rule_broken([name, f"not {name}"], {name: reading}) is None


def test_the_cause_is_the_first_rule_that_is_broken_as_it_was_written_and_the_reading():
    rules = ["swapped", "load_average>4", "gpu_throttled"]
    environment = {"swapped": False, "load_average": 5.2, "gpu_throttled": True}
    assert rule_broken(rules, environment) == "load_average>4 (was 5.2)"
    assert rule_broken(["gpu_throttled"], environment) == "gpu_throttled (was true)"
    assert rule_broken(None, environment) is None


@pytest.mark.parametrize(
    "cause",
    [
        "load_average > 4 (was 5.2)",
        "load_average>4.0 (was 5)",  # the study was written anew since
        "load_average > 4 (7.2)",
        "load_average > 4",
        "gpu_throttled (was true)",
    ],
)
def test_a_cause_that_is_a_registered_rule_is_the_rules(cause: str):
    assert follows_from_rules([*FOUR, "gpu_throttled"], cause)


@pytest.mark.parametrize(
    "cause",
    [
        None,
        "",
        "too slow",
        "load_average > 40 (was 52)",
        "load_average > 4 (was 3.9)",
        "load_average > 4 (was unusual)",
        "load_average",
        "because load_average > 4 (was 5)",
        "not gpu_throttled (was false)",
        "gpu_throttled (was false)",
        "swapped (was true)",
        "(was 5)",
    ],
)
def test_a_cause_that_is_no_registered_rule_is_the_authors(cause: str | None):
    assert not follows_from_rules([*FOUR, "gpu_throttled"], cause)
    assert not follows_from_rules(None, cause)


def test_what_is_told_of_a_broken_rule_is_known_again():
    rules = ["load_average>4", "not swapped", "gpu_clock_mhz != 1e3"]
    for environment in ({"load_average": 4.125}, {"swapped": False}, {"gpu_clock_mhz": 1e22}):
        assert follows_from_rules(rules, rule_broken(rules, environment))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("t > 3", 'names "t", which the tool does not record'),
        ("swaped", 'did you mean "swapped"?'),
        ("load-average > 4", 'did you mean "load_average"?'),
        ("load_average", 'takes "load_average", which is a number, for a flag'),
        ("not load_average > 4", "which is a number, for a flag"),
        ("gpu_throttled == 1", "which is true or false"),
        ("load_average =< 4", '"=<", which is no comparison'),
        ("load_average > 4 %", '"4 %", which is no finite number'),
        ("load_average > 1e999", "no finite number"),
        ("load_average > nan", "no finite number"),
        ("load_average > ", "no finite number"),
        ("4 < load_average", "is no rule"),
        ("load_average > 4 and swapped", "no finite number"),
        ("not not swapped", "is no rule"),
        ("", "is no rule"),
        ("load_average >= 0", "would exclude every repeat"),
        ("load_average > -1", "would exclude every repeat"),
        ("gpu_temp_c < 0", "would never exclude a repeat"),
    ],
)
def test_a_rule_that_cannot_be_one_is_refused_when_the_study_is_loaded(rule: str, told: str):
    text = with_keys(f"exclude = ['swapped', '{rule}']")
    (refusal,) = refusals(text)
    line = text.splitlines().index(f"exclude = ['swapped', '{rule}']") + 1
    assert refusal.startswith(f'{line}: PR044: experiment "two": ')
    assert told in refusal


@pytest.mark.parametrize("name", READINGS)
def test_no_rule_may_name_a_metric_and_every_reading_has_a_rule(name: str):
    rule = name if name in FLAGS else f"{name} > 1"
    assert refusals(with_keys(f"exclude = ['{rule}']")) == []


@pytest.mark.parametrize(
    "key", ["exclude = ['swapped']", "max-excluded = 1", "warmup = 2", "conditions.cores = 2"]
)
def test_each_of_the_keys_binds(key: str):
    assert digest(key) != digest()


@pytest.mark.parametrize("key", ["exclude = []", "max-excluded = 0", "warmup = 0", "conditions = {}"])
def test_a_key_at_its_default_changes_no_registration(key: str):
    assert digest(key) == digest()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exclude = ['load_average > 4', 'swapped']", "exclude = ['swapped', 'load_average>4.0']"),
        ("exclude = ['swapped']", "exclude = [' swapped ', 'swapped']"),
        ("conditions = { gpu = '*H100*', cores = 2 }", "conditions = { cores = '[2, 2]', gpu = '*h100*' }"),
        ("conditions.load_average = '<= 4'", "conditions.load_average = '<=4.0'"),
    ],
)
def test_how_rules_and_conditions_are_written_changes_no_registration(one: str, other: str):
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exclude = ['load_average > 4']", "exclude = ['load_average >= 4']"),
        ("exclude = ['load_average > 4']", "exclude = ['load_average > 4', 'swapped']"),
        ("exclude = ['swapped']", "exclude = ['not swapped']"),
        ("exclude = ['swapped']\nmax-excluded = 1", "exclude = ['swapped']\nmax-excluded = 2"),
        ("conditions.load_average = '<= 4'", "conditions.load_average = '< 4'"),
        ("conditions.gpu = '*H100*'", "conditions.gpu = '*'"),
    ],
)
def test_a_rule_or_condition_that_says_something_else_is_another_registration(one: str, other: str):
    assert digest(one) != digest(other)


def test_rules_are_held_parsed_once_and_in_one_order():
    assert canonical_rules(["swapped", "load_average>4", "load_average > 4.0"]) == [
        ["load_average", ">", 4.0],
        ["swapped", "==", True],
    ]


H100 = {"gpu": ["NVIDIA H100 80GB HBM3"], "cores": 16, "cpu": "Intel(R) Xeon(R)", "torch": "2.7.0"}


@pytest.mark.parametrize(
    "conditions",
    [
        None,
        {},
        {"gpu": "*H100*"},
        {"gpu": "*h100*", "cores": 16, "cpu": "intel*"},
        {"cores": ">= 8", "torch": "2.7.*"},
        {"cores": "[8, 16]"},
        {"load_average": "<= 4", "swapped": False},  # of the repeat
    ],
)
def test_a_machine_that_meets_the_conditions_is_inside(conditions: dict[str, object] | None):
    assert machine_outside(conditions, H100) is None


@pytest.mark.parametrize(
    ("conditions", "machine", "told"),
    [
        ({"gpu": "*H100*"}, {"gpu": []}, 'gpu is "none", and the conditions want "*H100*"'),
        ({"gpu": "*"}, {"gpu": []}, 'gpu is "none", and the conditions want "*"'),
        ({"gpu": "*H100*"}, {"gpu": None}, 'gpu is unknown, and the conditions want "*H100*"'),
        ({"gpu": "none"}, {"gpu": None}, 'gpu is unknown, and the conditions want "none"'),
        ({"gpu": "none"}, H100, 'gpu is "NVIDIA H100 80GB HBM3", and the conditions want "none"'),
        (
            {"gpu": "*H100*"},
            {"gpu": ["H100", "T4"]},
            'gpu is "H100" and "T4", and the conditions want "*H100*"',
        ),
        ({"cores": 2}, {"cores": 4}, "cores is 4, and the conditions want 2"),
        ({"cores": "<= 2"}, {"cores": 4}, 'cores is 4, and the conditions want "<= 2"'),
        ({"cores": "<= 2"}, {}, 'cores is unknown, and the conditions want "<= 2"'),
        ({"torch": "*"}, {"torch": None}, 'torch is unknown, and the conditions want "*"'),
    ],
)
def test_a_machine_outside_is_told_with_what_it_is_and_what_is_wanted(
    conditions: dict[str, object], machine: dict[str, object], told: str
):
    assert machine_outside(conditions, machine) == told


def test_no_gpu_is_met_by_none_alone():
    assert machine_outside({"gpu": "none"}, {"gpu": []}) is None


def test_every_condition_that_is_not_met_is_told():
    told = machine_outside({"gpu": "*T4*", "cores": 2}, H100)
    assert told is not None
    assert told.count("the conditions want") == 2


def test_conditions_on_a_repeat_are_held_against_its_own_readings():
    conditions = {"load_average": "<= 4", "swapped": False, "cores": 2}
    assert repeat_outside(conditions, {"load_average": 4, "swapped": False}) is None
    told = repeat_outside(conditions, {"load_average": 5.2, "swapped": True})
    assert told == (
        'load_average is 5.2, and the conditions want "<= 4"; swapped is true, and the conditions want false'
    )


def test_a_condition_on_what_could_not_be_read_does_not_hold():
    assert repeat_outside({"gpu_temp_c": "< 80"}, {"gpu_temp_c": None}) == (
        'gpu_temp_c is unknown, and the conditions want "< 80"'
    )


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("gpus = '*'", 'did you mean "gpu"?'),
        ("hostname = 'x'", "is nothing that the tool records of a machine"),
        ("gpu = 3", '"gpu" is "3"; it must be text'),
        ("gpu = ''", '"gpu" is ""; it must be text'),
        ("gpu = ['a']", '"gpu" is a list; it must be text'),
        ("cores = true", '"cores" is "true"; it must be a number'),
        ("cores = '[4, 2]'", "is empty"),
        ("cores = '< 0'", "holds no reading"),
        ("cores = 'two'", "is no region"),
        ("memory_gib = '>= 4 GiB'", 'has a unit, "GiB"'),
        ("load_average = 'otherwise'", "falsifier"),
        ("swapped = 'no'", "it must be true or false"),
        ("swapped = 0", "it must be true or false"),
    ],
)
def test_a_condition_that_cannot_be_one_is_refused_when_the_study_is_loaded(condition: str, told: str):
    text = with_keys(f"conditions = {{ {condition} }}")
    (refusal,) = refusals(text)
    assert refusal.startswith(f"{text.splitlines().index(f'conditions = {{ {condition} }}') + 1}: PR0")
    assert told in refusal


def test_a_condition_may_name_whatever_is_recorded():
    for key in KEYS:
        value = False if key in FLAGS else 3 if key in NUMBERS else "3"
        assert (
            len(parse_conditions({key: value if key not in ("cores", "memory_gib", "cpu_max_mhz") else 3}))
            == 1
        )
    assert set(canonical_conditions({"cores": 3, "gpu": "A"})) == {"cores", "gpu"}


@pytest.mark.parametrize(
    "line", ["exclude = ['swapped']", "max-excluded = 1", "warmup = 1", "conditions = { cores = 2 }"]
)
def test_what_is_fed_by_import_can_have_none_of_it(line: str):
    (problem,) = not_yet(load(f'[study]\nid = "s"\n[experiments.e]\nmetrics = {{ t = "s" }}\n{line}\n'))
    assert problem.code == "PR008"
    assert "knows nothing of their machine" in problem.message


def test_the_keys_can_be_registered():
    keys = ("exclude = ['swapped']", "max-excluded = 1", "warmup = 1", "conditions = { cores = 2 }")
    assert not_yet(load(with_keys('fixture = "reward_barrier"', *keys))) == []
