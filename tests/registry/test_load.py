from __future__ import annotations

from pathlib import Path

import pytest
from study_texts import HEAD, LINES, load, predicted, refusals

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.load import find_studies, load_study
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.regions import describe


def only_refusal(text: str) -> str:
    told = refusals(text)
    assert len(told) == 1, told
    return told[0].split(": ", 1)[1]


def test_a_prediction_is_resolved_with_every_default() -> None:
    study = load(predicted())
    prediction = study.predictions["p"]
    assert prediction.arms == (ONLY_ARM,)
    assert prediction.statistic == "mean"
    assert prediction.confidence == 0.95
    assert prediction.quantity.node == ["/", "t_train", "t_gen"]
    assert (describe(prediction.predicts), describe(prediction.falsifier)) == ("≤ 0.25", "≥ 0.5")
    assert prediction.line == LINES + 1
    experiment = study.experiments["one"]
    assert (experiment.kind, experiment.pairing, experiment.planned) == ("import", "none", {ONLY_ARM: 7})
    assert study.lock_path == Path("/nowhere/predictions.lock")
    assert study.evidence_folder == Path("/nowhere/experiments/evidence")


def test_a_contrast_names_two_arms_and_brings_its_statistic() -> None:
    ratio = load(predicted(experiment="two", quantity="t", contrast="new / old")).predictions["p"]
    assert (ratio.arms, ratio.statistic) == (("new", "old"), "geometric-mean")
    difference = load(predicted(experiment="two", quantity="t", contrast="new - old")).predictions["p"]
    assert (difference.contrast.operator, difference.statistic) == ("-", "mean")


def test_otherwise_is_all_that_the_prediction_leaves() -> None:
    assert describe(load(predicted(falsifier="otherwise")).predictions["p"].falsifier) == "> 0.25"


def test_a_confidence_below_95_percent_is_kept() -> None:
    study = load(predicted().replace('id = "s"', 'id = "s"\nconfidence = 0.8'))
    assert study.predictions["p"].confidence == 0.8


def test_arms_merge_over_the_experiment() -> None:
    text = """
    [study]
    id = "s"
    [experiments.e]
    metrics = { t = "s" }
    params = { size = 1, deep = { a = 1 } }
    env = { A = "1", B = "1" }
    timeout = "5 min"
    pairing = "none"
    [experiments.e.arms]
    a = { size = 2, repeats = 3 }
    b = { timeout = "500 ms", env = { B = "2" }, repeats = 5 }
    """
    arms = load(text).experiments["e"].arms
    assert arms["a"].params == {"size": 2, "deep": {"a": 1}}
    assert (arms["a"].timeout, arms["b"].timeout) == (300.0, 0.5)
    assert arms["b"].env == {"A": "1", "B": "2"}
    assert load(text).experiments["e"].planned == {"a": 3, "b": 5}


def test_an_import_may_leave_the_number_of_repeats_open() -> None:
    experiment = load('[study]\nid = "s"\n[experiments.e]\nmetrics = { t = "s" }\n').experiments["e"]
    assert experiment.planned is None


def test_all_that_is_wrong_with_a_file_is_told_at_once_in_the_order_of_its_lines() -> None:
    text = """\
[study]
id = "s"
titel = "x"
[experiments.e]
metrics = { t_train = "s", t_gen = "s" }
repeats = "seven"
[predictions.training-is-free]
claim = "c"
experiment = "e"
quantity = "t_trian / t_gen"
predicts = "=< 0.25"
falsifer = ">= 0.5"
[predictions.other]
experiment = "ee"
quantity = "t_gen"
predicts = "<= 1"
falsifier = "> 0.5"
[prediction.third]
"""
    assert refusals(text) == [
        '3: PR003: [study] has unknown key "titel"; did you mean "title"?',
        '6: PR005: experiment "e": "repeats" is "seven"; it must be a whole number of at least 1 or a table',
        (
            '10: PR007: prediction "training-is-free": quantity "t_trian / t_gen" uses unknown metric "t_trian"; '
            'did you mean "t_train"?'
        ),
        (
            '11: PR032: prediction "training-is-free", "predicts": "=< 0.25" is no region; write "<= x", "< x", ">= x", '
            '"> x", "[a, b]", "outside [a, b]", "within x of y" or "within 5% of y", each with a unit if need be'
        ),
        '12: PR003: prediction "training-is-free" has unknown key "falsifer"; did you mean "falsifier"?',
        '13: PR004: prediction "other" lacks "claim"',
        '14: PR007: prediction "other" names unknown experiment "ee"; did you mean "e"?',
        (
            '17: PR030: prediction "other": "predicts" is "<= 1" and "falsifier" is "> 0.5"; they overlap, '
            "so that one result could be both"
        ),
        '18: PR003: the file has unknown table "prediction"; did you mean "predictions"?',
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"claim": None}, 'PR004: prediction "p" lacks "claim"'),
        ({"claim": 1}, 'PR005: prediction "p": "claim" is "1"; it must be text'),
        ({"experiment": None}, 'PR004: prediction "p" lacks "experiment"'),
        ({"quantity": None}, 'PR004: prediction "p" lacks "quantity"'),
        ({"predicts": None}, 'PR031: prediction "p" has no "predicts"'),
        ({"falsifier": None}, 'PR031: prediction "p" has no "falsifier": state the value that would prove it wrong'),
        ({"kind": "gard"}, 'it must be "claim" or "guard"; did you mean "guard"?'),
        ({"cv": 0}, '"cv" is "0"; it must be a number above 0'),
        ({"credence": 1.5}, '"credence" is "1.5"; it must be a number above 0 and below 1'),
        ({"tags": "x"}, '"tags" is "x"; it must be a list of text'),
        ({"one_sided": "yes"}, '"one-sided" is "yes"; it must be true or false'),
        ({"arm": "new"}, 'names unknown arm "new" of experiment "one"'),
        ({"experiment": "two", "quantity": "t"}, 'lacks "arm" or "contrast": "two" has arms "new" or "old"'),
        ({"experiment": "two", "quantity": "t", "arm": "nwe"}, 'unknown arm "nwe" of experiment "two"; did you mean "new"?'),
        ({"experiment": "two", "quantity": "t", "contrast": "new / odl"}, 'unknown arm "odl"'),
        ({"experiment": "two", "quantity": "t", "contrast": "new/old"}, 'write "a - b" or "a / b", with the spaces'),
        ({"experiment": "two", "quantity": "t", "contrast": "new - new"}, "an arm against itself"),
        ({"experiment": "two", "quantity": "t", "contrast": "new - old", "arm": "new"}, 'has both "arm" and "contrast"'),
        ({"statistic": "avarage"}, 'PR005: prediction "p": "statistic" is "avarage"'),
        ({"statistic": "meen"}, 'did you mean "mean"?'),
        ({"experiment": "two", "quantity": "t", "contrast": "new / old", "statistic": "median"}, 'PR023: prediction "p": statistic "median" has no interval for "a / b"; use "geometric-mean"'),
        ({"experiment": "two", "quantity": "t", "contrast": "new - old", "statistic": "geometric-mean"}, "PR023"),
        ({"experiment": "two", "quantity": "t", "contrast": "new - old", "statistic": "proportion"}, "PR023"),
        ({"quantity": "t_gen < 3"}, 'PR033: prediction "p": quantity "t_gen < 3" is 0 or 1, and its mean has no honest interval; write statistic = "proportion"'),
        ({"quantity": "completed"}, 'write statistic = "proportion"'),
        ({"quantity": "1 - completed", "statistic": "median"}, "PR033"),
        ({"experiment": "two", "quantity": "completed", "contrast": "new - old"}, "one arm at a time"),
        ({"quantity": "t_gen * constants.deadlin"}, 'PR007: prediction "p": quantity "t_gen * constants.deadlin" uses unknown constant "deadlin"; did you mean "deadline"?'),
        ({"quantity": "t_gen +"}, "PR020"),
        ({"falsifier": ">= 0.25"}, 'PR030: prediction "p": "predicts" is "<= 0.25" and "falsifier" is ">= 0.25"; they overlap'),
        ({"falsifier": "outside [0, 1]"}, "PR030"),
        ({"predicts": "otherwise"}, '"otherwise" is for "falsifier" only'),
        ({"predicts": "<= nan"}, "PR032"),
        ({"predicts": "outside [3, 3]", "falsifier": "[3, 3]"}, "which all values but one meet"),
        ({"quantity": "passed", "statistic": "proportion", "predicts": ">= 0", "falsifier": "< 0"}, 'PR030: prediction "p": "predicts" is ">= 0", which every proportion meets'),
        ({"quantity": "passed", "statistic": "proportion", "predicts": "<= 0.5", "falsifier": "> 1"}, 'PR031: prediction "p": "falsifier" is "> 1", which no proportion can ever meet'),
        ({"quantity": "passed", "statistic": "proportion", "predicts": "<= 100 %", "falsifier": "otherwise"}, "which every proportion meets"),
        ({"experiment": "two", "quantity": "t", "contrast": "new / old", "predicts": ">= 2", "falsifier": "< -1"}, "no geometric-mean can ever meet"),
        ({"unit": "s//t"}, 'PR021: prediction "p": "s//t" is no unit'),
        ({"requires": ["q"]}, 'PR007: prediction "p": "requires" names unknown prediction "q"'),
        ({"follows": "p"}, '"follows" names itself'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_prediction_is_told_once(keys: dict[str, object], message: str) -> None:
    assert message in only_refusal(predicted(**keys))


@pytest.mark.parametrize(
    "keys",
    [
        {"quantity": "passed", "statistic": "proportion", "predicts": "> 0", "falsifier": "<= 0"},
        {"quantity": "passed", "statistic": "proportion", "predicts": ">= 1", "falsifier": "otherwise"},
        {"quantity": "passed", "statistic": "proportion", "predicts": "<= 50 %", "falsifier": ">= 60 %"},
        {"predicts": "<= 0.5", "falsifier": "> 0.5"},
        {"predicts": "[-5, 5]", "falsifier": "outside [-10, 10]"},
        {"predicts": "[3, 3]", "falsifier": "otherwise"},
        {"predicts": "<= 500 ms", "falsifier": ">= 1 s"},
        {
            "quantity": "t_gen < constants.deadline",
            "statistic": "proportion",
            "predicts": ">= 0.9",
            "falsifier": "< 0.5",
        },
    ],
)
def test_a_sound_pair_of_regions_is_accepted(keys: dict[str, object]) -> None:
    assert refusals(predicted(**keys)) == []


EXPERIMENT = '[study]\nid = "s"\n[experiments.e]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[study]\n", '1: PR004: [study] lacks "id"'),
        ("", '1: PR004: the file lacks "[study]"'),
        ('[study]\nid = "My Study"\n', '2: PR006: [study]: "id" is "My Study"'),
        ('[study]\nid = "s\\n"\n', '2: PR006: [study]: "id" is "s\\n"'),
        ('[study]\nid = "s"\nconfidence = 95\n', '3: PR005: [study]: "confidence" is "95"'),
        ('[study]\nid = "s"\nevidence = "/tmp"\n', "must be a path beside the file"),
        ('[study]\nid = "s"\nexperiments = ["a\\u0000"]\n', "must be a path beside the file"),
        ('[study]\nid = "s"\n[[experiments]]\n', 'write "[experiments.NAME]", with single brackets'),
        ('[study]\nid = "s"\n[predictions."Is Fast"]\n', '3: PR006: prediction id "Is Fast" must be lower-case letters, digits, "-" and "_", such as "is-fast"'),
        ('[study]\nid = "s"\n[constants.gpu-price]\nvalue = 1\nsource = "x"', 'constant name "gpu-price" is no Python identifier'),
        ('[study]\nid = "s"\n[constants.a]\nvalue = 5\ninterval = [1, 2]\nsource = "x"', '"interval" does not hold "value"'),
        ('[study]\nid = "s"\n[instruments.i]\n', '3: PR005: instrument "i" must have either'),
        ('[study]\nid = "s"\n[instruments.i]\ncalibrated-by = ["x"]\n', "names unknown prediction"),
        (EXPERIMENT, 'experiment "e" has no "fixture" or "command"; if it is fed by import, declare its "metrics"'),
        (EXPERIMENT + 'command = ["ls"]\nmetrics = { t = "s" }\n', '3: PR004: experiment "e" lacks "repeats"'),
        (EXPERIMENT + 'metrics = { t = "s" }\nrepeats = 0\n', '"repeats" is "0"'),
        (EXPERIMENT + 'metrics = { t = "s" }\nrepeats = { looks = [5, 3] }\n', "in rising order"),
        (EXPERIMENT + 'metrics = { t = "s" }\nrepeats = { max = 5 }\n', 'stopping = "anytime"'),
        (EXPERIMENT + 'metrics = { "t-x" = "s" }\n', 'metric "t-x" must be named by a Python identifier'),
        (EXPERIMENT + 'metrics = { completed = "s" }\n', 'metric "completed" has a name that quantities reserve'),
        (EXPERIMENT + 'metrics = { t = { unit = "s", exakt = true } }\n', 'experiment "e", "metrics.t" has unknown key "exakt"; did you mean "exact"?'),
        (EXPERIMENT + "metrics = { t = { exact = true } }\n", 'experiment "e", "metrics.t" lacks "unit"'),
        (EXPERIMENT + 'metrics = { t = "s s" }\n', '"s s" is no unit'),
        (EXPERIMENT + 'metrics = { t = { unit = "s", instrument = "clock" } }\n', 'metric "t" names unknown instrument "clock"'),
        (EXPERIMENT + 'metrics = { t = "s" }\ntimeout = "5 minutes"\n', '5: PR005: experiment "e", "timeout": "5 minutes" is no duration'),
        (EXPERIMENT + 'metrics = { t = "s" }\ntimeout = 0\n', "is no duration"),
        (EXPERIMENT + 'metrics = { t = "s" }\narms = {}\n', '"arms" names no arm'),
        (EXPERIMENT + 'metrics = { t = "s" }\narms.A = {}\n', 'arm id "A" must be'),
        (EXPERIMENT + 'metrics = { t = "s" }\narms.a = { timeout = true }\n', '"true" is no duration'),
        (EXPERIMENT + 'metrics = { t = "s" }\narms.a = { repeats = 1.5 }\n', '"repeats" is "1.5"'),
        (EXPERIMENT + 'metrics = { t = "s" }\npairing = "block"\narms.a = { repeats = 3 }\n', '"repeats" of one arm needs pairing = "none"'),
        (EXPERIMENT + 'metrics = { t = "s" }\narms.a = { env = { A = 1 } }\n', '"env" must be a table of text'),
        (EXPERIMENT + 'metrics = { t = "s" }\nenv = { "A=B" = "" }\n', '"env" has "A=B" = ""'),
        (EXPERIMENT + 'metrics = { t = "s" }\narms.a = { env = { A = "\\u0000" } }\n', "no process can be given"),
        (EXPERIMENT + 'metrics = { t = "s" }\narms.a = { ref = 1 }\n', '"ref" must be text'),
        (EXPERIMENT + 'metrics = { t = "s" }\nparams = { "a b" = 1 }\n', 'parameter "a b" is no Python identifier'),
        (EXPERIMENT + 'metrics = { t = "s" }\nbounds = { u = [0, 1] }\n', '"bounds" has unknown metric "u"'),
        (EXPERIMENT + 'metrics = { t = "s" }\nbounds = { t = [1, 0] }\n', 'bounds of "t" are empty'),
        (EXPERIMENT + 'metrics = { t = "s" }\nbounds = { t = [1] }\n', "two numbers, [low, high]"),
        (EXPERIMENT + 'metrics = { t = "s" }\nread = { file = "r.json", format = "x" }\n', 'has "read", which needs a "command"'),
        (EXPERIMENT + 'fixture = "f"\ncommand = ["ls"]\nmetrics = { t = "s" }\nrepeats = 1\n', 'has both "fixture" and "command"'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_another_table_is_told(text: str, message: str) -> None:
    assert any(message in told for told in refusals(text)), refusals(text)


STEP = """\
from pytest_prereg import experiment

@experiment(metrics={"t": "s", "n": {"unit": "token", "exact": True}})
def step(repeat, *, size, depth=2):
    raise SystemExit("this module must never be imported")

raise SystemExit("this module must never be imported")
"""


def study_with(folder: Path, experiment: str, module: str = STEP) -> Path:
    (folder / "experiments").mkdir()
    (folder / "experiments" / "steps.py").write_text(module)
    path = folder / "predictions.toml"
    path.write_text(f'[study]\nid = "s"\n[experiments.e]\n{experiment}\n')
    return path


def test_a_fixture_brings_its_metrics_and_the_table_adds_to_them(tmp_path: Path) -> None:
    path = study_with(
        tmp_path,
        'fixture = "step"\nrepeats = 3\nparams.size = 1\n[experiments.e.metrics]\n'
        't = { unit = "s", resolution = 0.1 }\nm = "GB"\n',
    )
    experiment = load_study(path).experiments["e"]
    assert (experiment.kind, experiment.pairing) == ("fixture", "block")
    assert experiment.source.function == "step"
    assert {name: metric.unit for name, metric in experiment.metrics.items()} == {
        "t": "s",
        "n": "token",
        "m": "GB",
    }
    assert experiment.metrics["t"].resolution == 0.1
    assert experiment.metrics["n"].exact


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('fixture = "stpe"\nrepeats = 3', 'PR040: experiment "e": no @experiment function is called "stpe"; did you mean "step"?'),
        ('fixture = "step"\nrepeats = 3', 'PR004: experiment "e": "step" needs a value for "size"'),
        ('fixture = "step"\nparams.size = 1', 'PR004: experiment "e" lacks "repeats"'),
        ('fixture = "step"\nrepeats = 3\nparams = { size = 1, dept = 2 }', 'PR007: experiment "e", "params": "step" takes no "dept"; did you mean "depth"?'),
        ('fixture = "step"\nrepeats = 3\narms = { a = { size = 1 }, b = { sise = 1, size = 1 } }', 'experiment "e", "arms.b": "step" takes no "sise"'),
        ('fixture = "step"\nrepeats = 3\nparams.size = 1\nmetrics.t = "ms"', 'PR005: experiment "e": its module declares metric "t" in "s", not "ms"'),
    ],
)  # fmt: skip
def test_a_fixture_is_checked_against_its_declaration(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(StudyError) as refused:
        load_study(study_with(tmp_path, table))
    assert message in str(refused.value)


def test_a_broken_experiment_module_is_told_with_what_is_wrong_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study_with(tmp_path, 'fixture = "step"\nrepeats = 0', STEP.replace('{"t": "s", ', "{t: 's', "))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError) as refused:
        load_study(path)
    told = [str(problem) for problem in refused.value.problems]
    assert told[0].startswith('predictions.toml:5: PR005: experiment "e": "repeats" is "0"')
    assert told[1].startswith("experiments/steps.py:3: PR041: ")
    assert len(told) == 2


def test_a_missing_or_binary_file_is_refused_without_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="PR001: can't be read: No such file"):
        load_study(tmp_path / "predictions.toml")
    (tmp_path / "predictions.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match="PR001: is not UTF-8: byte 0 is 0xff"):
        load_study(tmp_path / "predictions.toml")


def test_messages_name_the_file_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "predictions.toml"
    path.write_text("[study]\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match=r"^sub/predictions\.toml:1: PR004"):
        load_study(path)
    monkeypatch.chdir(tmp_path / "sub")
    with pytest.raises(StudyError, match=r"^predictions\.toml:1: PR004"):
        load_study(Path("predictions.toml"))


def test_studies_are_the_file_of_a_folder_and_those_in_its_predictions_folder(tmp_path: Path) -> None:
    assert find_studies(tmp_path) == []
    (tmp_path / "predictions").mkdir()
    for name in ("predictions.toml", "predictions/b.toml", "predictions/a.toml", "predictions/a.lock"):
        (tmp_path / name).write_text("")
    assert find_studies(tmp_path) == [
        tmp_path / "predictions.toml",
        tmp_path / "predictions" / "a.toml",
        tmp_path / "predictions" / "b.toml",
    ]


def big(size: int) -> str:
    table = predicted()[len(HEAD) :]
    return HEAD + "".join(
        table.replace("[predictions.p]", f"[predictions.p{index}]") for index in range(size)
    )


def test_loading_is_work_in_proportion(count_calls) -> None:
    load(big(1))  # what is imported and cached once
    small, large = big(25), big(200)
    assert count_calls(lambda: load(large)) < 9 * count_calls(lambda: load(small))
