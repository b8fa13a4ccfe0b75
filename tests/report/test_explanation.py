"""What ``explain`` says of a verdict, whatever it is: every reason and every word has its sentence."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.standing import Version
from pytest_prereg.judge.model import Alternative, Reason, Verdict
from pytest_prereg.registry.load import load_study
from pytest_prereg.report.columns import width_of
from pytest_prereg.report.explanation import FLAGS, REASONS, explanation_lines

DOCS = Path(__file__).parents[2] / "docs"

STUDY = """
[study]
id = "told"

[experiments.runs]
metrics = { wall = "s" }
repeats = 5

[predictions.quick]
claim = "It takes less than a second."
experiment = "runs"
quantity = "wall"
predicts = "<= 1 s"
falsifier = "> 1.2 s"
"""


@pytest.fixture
def state(tmp_path):
    (tmp_path / "predictions.toml").write_text(STUDY)
    return StudyState(load_study(tmp_path / "predictions.toml"))


def judged(state, values):
    from pytest_prereg.evidence.importing import import_files

    rows = ["arm,repeat,metric,value,unit", *(f",{at},wall,{value},s" for at, value in enumerate(values, 1))]
    file = state.study.folder / "rows.csv"
    file.write_text("\n".join(rows))
    study = state.study
    experiment = study.experiments["runs"]
    import_files(study, experiment, [file], predictions={}, arm=None, form="csv", head=None, dirty=None)
    state.reread()
    return state.assess(study.predictions["quick"])


def told(state, values, **changes):
    assessment = msgspec.structs.replace(judged(state, values), **changes)
    lines = explanation_lines(assessment, state.study)
    assert max(map(width_of, lines)) <= 80
    return " ".join(" ".join(lines).split())


def test_a_guard_tells_what_it_said_of_earlier_versions(state):
    subjects = ("sha256:aaaaaaaa1", "sha256:aaaaaaaa1", "sha256:bbbbbbbb2")
    verdicts = (Verdict.REFUTED, Verdict.REFUTED, Verdict.SUPPORTED)
    history = tuple(
        Version(subject=subject, series=number, verdict=verdict)
        for number, (subject, verdict) in enumerate(zip(subjects, verdicts, strict=True), 1)
    )
    said = told(state, (0.5, 0.51, 0.52, 0.49, 0.48), history=history, subject=subjects[-1])
    assert "versions 2 of its subject, by 3 series: 1 supported, 2 refuted" in said
    assert "series 1: refuted, version aaaaaaaa series 2" in said
    assert "series 3: supported, version bbbbbbbb, the one of now" in said


def test_a_pending_prediction_tells_what_it_could_not_decide_any_more(state):
    prediction = state.study.predictions["quick"]
    assessment = msgspec.structs.replace(state.assess(prediction), flags=("follows a decided one",))
    assert "follows a decided one: its predecessor is decided" in " ".join(
        " ".join(explanation_lines(assessment, state.study)).split()
    )


def test_what_was_set_aside_is_told_with_the_verdict_that_it_would_give(state):
    other = Alternative(
        counted=("runs/1/5",), verdict=Verdict.INCONCLUSIVE, estimate=0.98, interval=(0.9, 1.06), n=5
    )
    assessment = judged(state, [0.90, 0.92, 0.93, 0.94, 0.95])
    judgement = msgspec.structs.replace(
        assessment.judgement, set_aside=("runs/1/5",), alternatives=(other,), n=4
    )
    lines = explanation_lines(msgspec.structs.replace(assessment, judgement=judgement), state.study)
    text = " ".join(" ".join(lines).split())
    assert 'set aside "runs/1/5"' in text
    assert 'with "runs/1/5": inconclusive, 0.980 [0.900, 1.060] s, n 5' in text


def test_every_reason_has_a_sentence():
    assert set(REASONS) == set(Reason)


def test_every_word_beside_a_verdict_has_the_sentence_of_the_documentation():
    table = (DOCS / "concepts.md").read_text().split("| word | what it tells |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == set(FLAGS)


def test_what_is_to_be_read_elsewhere_is_named_with_its_page():
    named = {name: re.findall(r"docs/[a-z]+\.md", sentence) for name, sentence in FLAGS.items()}
    assert named["approximate"] == ["docs/estimands.md"]
    assert all((DOCS.parent / page).is_file() for pages in named.values() for page in pages)
    assert not any("documentation" in sentence for sentence in FLAGS.values())


def test_a_pending_prediction_shows_no_number(state):
    text = " ".join(explanation_lines(state.assess(state.study.predictions["quick"]), state.study))
    assert "quick: pending" in text
    assert "no number is shown" in text
    assert "found" not in text


def test_a_straddle_says_what_would_have_decided(state):
    text = told(state, [0.90, 1.00, 0.93, 1.02, 0.95])
    assert "quick: inconclusive (straddles)" in text
    assert "0.96" in text
    about = int(re.search(r"about (\d+) repeats would have made it supported with probability 0.8", text)[1])
    assert about == 15  # from the noncentral t: 0.81 standard deviations from the edge
    assert 'follows = "quick"' in text
    assert "p-hacking adding repeats to this series" in text


def test_an_estimate_between_the_regions_is_undecided_at_any_n(state):
    assert "undecided by design, at any number of repeats" in told(state, [1.0, 1.1, 1.2, 1.15, 1.05])


def test_a_verdict_says_where_its_interval_lies(state):
    text = told(state, [0.5, 0.52, 0.51, 0.49, 0.5])
    assert "the whole interval lies in the predicted region" in text
    assert "imported: measured elsewhere" in text


@pytest.mark.parametrize(
    ("fed", "way"),
    [
        ("", "pytest-prereg import FILE --experiment runs"),
        ('command = ["true"]', "pytest --prereg --prereg-fresh"),
    ],
)
def test_a_replication_is_had_as_the_evidence_was(state, fed, way):
    text = STUDY.replace("[experiments.runs]\n", f"[experiments.runs]\n{fed}\n")
    study = load_study(state.study.path, text=text)
    assessment = judged(state, [0.5, 0.52, 0.51, 0.49, 0.5])
    said = " ".join(" ".join(explanation_lines(assessment, study)).split())
    assert f"as a replication, listed beside it: {way} p-hacking" in said


def test_a_family_and_a_formula_get_advice_that_can_be_followed(state):
    straddling = [0.90, 1.00, 0.93, 1.02, 0.95]
    assert "pytest-prereg power says" in told(state, straddling)
    study = state.study
    family = msgspec.structs.replace(study, table=msgspec.structs.replace(study.table, family="holm"))
    assessment = state.assess(study.predictions["quick"])
    text = " ".join(" ".join(explanation_lines(assessment, family)).split())
    assert "register one in a study of its own" in text
    assert "follows =" not in text
