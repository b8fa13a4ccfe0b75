"""What a citation has to say, what can't be quoted, and how a wrong number could pass."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from written_studies import WrittenStudy, ok

from pytest_prereg.audit.citing.citations import Page, page_of, read_page, rewritten, write_page
from pytest_prereg.audit.citing.figures import Figures
from pytest_prereg.audit.citing.neighbours import Neighbours
from pytest_prereg.audit.citing.pages import listing, uncheckable
from pytest_prereg.audit.citing.references import parse_reference
from pytest_prereg.audit.setting_aside import exclude, void
from pytest_prereg.errors import StudyError
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import Withdrawal, read_lock, write_lock
from pytest_prereg.registry.refusals import RefusedError

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState

STUDY = """\
[study]
id = "step"

[experiments.e]
repeats = 5
metrics = { t = "s", u = "1" }

[experiments.swept]
repeats = 5
metrics = { t = "s" }
sweep = { cols = [1, 2] }

[experiments.later]
repeats = 5
metrics = { t = "s" }

[predictions.fast]
claim = "x"
experiment = "e"
quantity = "t"
predicts = "<= 0.982 s"
falsifier = ">= 2 s"

[predictions.near]
claim = "x"
experiment = "e"
quantity = "t"
predicts = "<= 0.958 s"
falsifier = ">= 2 s"

[predictions.share]
claim = "x"
experiment = "e"
quantity = "u / 4"
predicts = ">= 0.2"
falsifier = "<= 0.1"

[predictions.refuted]
claim = "x"
experiment = "e"
quantity = "t"
predicts = ">= 2 s"
falsifier = "< 1 s"

[predictions.tail]
claim = "x"
experiment = "e"
quantity = "t"
statistic = "quantile(0.9)"
one-sided = true
predicts = "<= 2 s"
falsifier = "> 2 s"

[predictions.each]
claim = "x"
for-each = "cols"
experiment = "swept"
quantity = "t"
predicts = "<= 2 s"
falsifier = "> 3 s"

[predictions.both]
claim = "x"
all = ["fast", "share"]

[predictions.open]
claim = "x"
experiment = "later"
quantity = "t"
predicts = "<= 2 s"
falsifier = "> 3 s"
"""
TIMES = (0.951, 0.973, 0.962, 0.944, 0.957)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "x")


@pytest.fixture(scope="module")
def recorded():
    """A study with confirmatory, recorded verdicts in a repository; tests that change it take a copy."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        folder.mkdir()
        git(folder, "init", "-q", "--template=")
        made = WrittenStudy(folder, STUDY)
        commit(folder)
        made.session("e", {("", at): ok(t=t, u=t) for at, t in enumerate(TIMES, 1)})
        made.session(
            "swept",
            {(f"[cols={cols}]", at): ok(t=t * cols) for at, t in enumerate(TIMES, 1) for cols in (1, 2)},
        )
        commit(folder)
        made.record()
        commit(folder)
        yield made


@pytest.fixture(scope="module")
def state(recorded) -> StudyState:
    return recorded.state()


@pytest.fixture
def copy(recorded, tmp_path):
    folder = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(recorded.folder), str(folder))
    made = object.__new__(WrittenStudy)
    made.folder, made.study = folder, load_study(folder / "predictions.toml")
    return made


def page(state: StudyState, text: str) -> Page:
    return page_of(Path("page.md"), text, Figures(state), Neighbours(state))


def text_of(state: StudyState, reference: str) -> str:
    return Figures(state).figure(parse_reference(reference)).text


def refusal(state: StudyState, reference: str) -> str:
    with pytest.raises(RefusedError) as caught:
        text_of(state, reference)
    assert caught.value.code == "PR210"
    return str(caught.value)


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("fast.estimate", "0.957"),
        ("fast.interval", "[0.944, 0.971]"),
        ("fast.low", "0.944"),
        ("fast.high", "0.971"),
        ("fast.interval with-unit", "[0.944, 0.971] s"),
        ("fast.estimate digits=2", "0.96"),
        ("fast.estimate digits=5", "0.95740"),
        ("fast.interval digits=4", "[0.9437, 0.9711]"),
        ("fast.estimate unit=ms", "957"),
        ("fast.interval unit=ms with-unit", "[944, 971] ms"),
        ("fast.estimate unit=min", "0.01596"),
        ("share.estimate percent", "23.94 %"),
        ("share.interval percent", "[23.59, 24.28] %"),
        ("share.unit", "1"),
        ("fast.n", "5"),
        ("fast.planned", "5"),
        ("fast.excluded", "0"),
        ("fast.series", "1"),
        ("fast.verdict", "supported"),
        ("refuted.verdict", "refuted"),
        ("tail.reason", "n-too-small"),
        ("fast.standing", "confirmatory"),
        ("fast.unit", "s"),
        ("fast.method", "Student t"),
        ("fast.confidence", "0.95"),
        ("fast.confidence percent", "95 %"),
        ("each[cols=2].estimate", "1.915"),
        ("both.verdict", "supported"),
        ("study.registered", "9"),
        ("study.supported", "5"),
        ("study.refuted", "1"),
        ("study.inconclusive", "2"),
        ("study.pending", "1"),
        ("study.repeats", "15"),
        ("study.excluded", "0"),
        ("step:fast.n", "5"),
    ],
)
def test_a_citation_says_what_is_recorded(state, reference, text):
    assert text_of(state, reference) == text


def test_an_infinite_side_is_said(state):
    assert text_of(state, "tail.interval").endswith(", ∞]")
    assert text_of(state, "tail.high") == "∞"


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [
        ("", "cites nothing"),
        ("fast", "cites nothing"),
        ("fast.", "cites nothing"),
        (".n", "cites nothing"),
        ("Fast.n", "cites nothing"),
        ("fast.n;", "cites nothing"),
        ("fast.estimat", 'unknown field "estimat"; did you mean "estimate"?'),
        ("fast.supported", 'unknown field "supported"'),
        ("study.refutes", 'did you mean "refuted"?'),
        ("fast.estimate digit=3", 'unknown option "digit"; did you mean "digits"?'),
        ("fast.estimate percent percent", '"percent" is given twice'),
        ("fast.estimate digits=3 digits=2", '"digits" is given twice'),
        ("fast.estimate digits=0", "from 1 to 15"),
        ("fast.estimate digits=16", "from 1 to 15"),
        ("fast.estimate digits=٣", "from 1 to 15"),
        ("fast.estimate digits", "needs a value"),
        ("fast.estimate percent=2", "takes no value"),
        ("fast.n digits=1", "does not apply"),
        ("fast.verdict with-unit", "does not apply"),
        ("study.supported percent", "does not apply"),
        ("share.estimate percent unit=ms", "is a unit already"),
        ("share.estimate percent with-unit", "is a unit already"),
    ],
)
def test_what_cites_nothing_is_told(reference, wrong):
    with pytest.raises(RefusedError) as caught:
        parse_reference(reference)
    assert wrong in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [
        ("fsat.n", 'there is no prediction "fsat"; did you mean "fast"?'),
        ("each.n", "there is no prediction"),
        ("each[cols=3].n", "there is no prediction"),
        ("open.estimate", "is pending"),
        ("fast.cost_usd", "not wholly known: a session never ended"),
        ("fast.reason", '"fast" has no reason'),
        ("both.estimate", '"both" has no estimate'),
        ("both.interval", '"both" has no interval'),
        ("fast.estimate exploratory", "take the option"),
        ("fast.estimate percent", '"percent" is for pure numbers'),
        ("fast.estimate unit=token", "can't be converted"),
        ("fast.estimate unit=s//", "is no unit"),
        ("share.estimate unit=%", 'write "percent"'),
        ("share.estimate with-unit", "is a pure number"),
    ],
)
def test_what_has_no_value_is_told(state, reference, wrong):
    assert wrong in refusal(state, reference)


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [
        ("fast.estimate digits=1", "out of its interval"),
        ("near.estimate digits=2", "onto or across an edge"),
        ("fast.high digits=2", "fewer than an end of the interval"),
        ("fast.interval digits=1", "fewer than an end of the interval"),
    ],
)
def test_no_option_rounds_to_what_was_not_found(state, reference, wrong):
    """0.957 would be 1, or 0.96 where <= 0.958 is predicted; [0.944, 0.971] would be [0.9, 1]."""
    assert wrong in refusal(state, reference)


def test_a_prediction_that_is_withdrawn_can_not_be_quoted(copy):
    lock = read_lock(copy.folder / "predictions.lock")
    entry = replace(lock.predictions["refuted"], withdrawal=Withdrawal(reason="embarrassing", at="2026"))
    write_lock(
        copy.folder / "predictions.lock", replace(lock, predictions={**lock.predictions, "refuted": entry})
    )
    state = copy.state()
    assert "withdrawn: embarrassing" in refusal(state, "refuted.estimate")
    assert text_of(state, "study.refuted") == "1", "it stays counted as refuted"


def test_a_verdict_that_is_not_recorded_can_not_be_quoted(copy):
    lock = read_lock(copy.folder / "predictions.lock")
    blank = dict.fromkeys(("verdict", "reason", "estimate", "interval", "n", "series", "evidence"))
    entry = replace(lock.predictions["fast"], **blank)
    write_lock(
        copy.folder / "predictions.lock", replace(lock, predictions={**lock.predictions, "fast": entry})
    )
    state = copy.state()
    assert "is not recorded" in refusal(state, "fast.n")
    assert "does not stand" in refusal(state, "study.supported")
    assert text_of(state, "refuted.n") == "5"


def test_a_number_edited_in_the_lock_can_not_be_quoted(copy):
    lock = (copy.folder / "predictions.lock").read_text()
    assert "0.9574" in lock
    (copy.folder / "predictions.lock").write_text(lock.replace("0.9574", "0.7574"))
    assert "no longer follows: PR211" in refusal(copy.state(), "fast.estimate")


def test_altered_evidence_can_not_be_quoted(copy):
    (session,) = (copy.folder / "experiments" / "evidence" / "e").glob("*.jsonl")
    session.write_text(session.read_text().replace("0.951", "0.151"))
    state = copy.state()
    assert "no longer follows: PR207" in refusal(state, "fast.n")
    assert text_of(state, "each[cols=1].n") == "5"


def test_an_exclusion_breaks_what_used_the_repeat_and_says_which(copy):
    state = copy.state()
    write_lock(copy.folder / "predictions.lock", exclude(state, "e/1/3", "a backup ran", "tool"))
    state = copy.state()
    for reference in ("fast.estimate", "fast.standing", "share.n", "tail.low"):
        assert "e/1/3" in refusal(state, reference)
    assert "does not stand" in refusal(state, "study.repeats")
    assert text_of(state, "each[cols=1].n") == "5"
    recorded = copy.record()
    assert text_of(recorded, "fast.n") == "4"
    assert text_of(recorded, "study.excluded") == "1"


def test_a_voided_series_can_not_be_quoted_even_when_that_is_recorded(copy):
    state = copy.state()
    write_lock(copy.folder / "predictions.lock", void(state, "e/1", "wrong cable"))
    recorded = copy.record()
    assert "is voided" in refusal(recorded, "refuted.estimate")
    assert "is voided" in refusal(recorded, "fast.verdict")
    assert text_of(recorded, "study.refuted") == "1"


def test_what_is_exploratory_is_quoted_only_as_such(tmp_path):
    made = WrittenStudy(tmp_path, STUDY)
    made.session("e", {("", at): ok(t=t, u=t) for at, t in enumerate(TIMES, 1)})
    state = made.state()
    assert "is exploratory" in refusal(state, "fast.estimate")
    assert text_of(state, "fast.estimate exploratory") == "0.957 (exploratory)"
    assert text_of(state, "study.supported") == "0"


def test_a_failed_task_leaves_no_number_to_quote(tmp_path):
    made = WrittenStudy(tmp_path, STUDY)
    rows = {("", at): ok(t=t, u=t) for at, t in enumerate(TIMES, 1)}
    made.session("e", {**rows, ("", 5): [(Outcome.TASK_FAILED, {})]})
    assert "has no interval" in refusal(made.state(), "fast.interval exploratory")


def test_a_page_tells_what_differs_and_what_it_should_be(state):
    text = "a\n\nIt took <!-- prereg: fast.estimate -->0.975<!-- /prereg --> s.\n"
    (problem,) = page(state, text).complaints
    assert (problem.code, problem.path, problem.line) == ("PR210", "page.md", 3)
    assert problem.message == '"fast.estimate" is quoted as "0.975", and is "0.957"'
    assert "pytest-prereg cite" in problem.advice


@pytest.mark.parametrize(
    "inside",
    [
        "0.958",
        "",
        "<!-- 0.957 -->0.958",
        "0.95<!-- -->7",
        "0.9\u200b57",
        "\uff10.957",
        "0.95&#55;",
        "0.957 s",
        "**0.957**",
        "0.957\u0338",
        "0,957",
        "0.957\n\n0.957",
        "0. 957",
        "`0.957`",
        "~~0.957~~ 0.5",
    ],
)
def test_between_the_marks_is_the_number_and_nothing_else(state, inside):
    text = f"a <!-- prereg: fast.estimate -->{inside}<!-- /prereg --> b"
    assert page(state, text).complaints


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1", ""),
        ("1<!-- -->", ""),
        ("1&#8203;", ""),
        ("**1**", ""),
        ("<b>1</b>", ""),
        ("\u0661", ""),
        ("1[", "](page.md)"),
        ("-", ""),
        ("a -", ""),
        ("\N{MINUS SIGN}", ""),
        ("a \N{MINUS SIGN} ", ""),
        ("a \N{EN DASH}", ""),
        ("1.", ""),
        ("1,", ""),
        ("12 ", ""),
        ("12&nbsp;", ""),
        ("10^", ""),
        ("3 × ", ""),
        ("1/", ""),
        ("", "5"),
        ("", "&#53;"),
        ("", "<sup>2</sup>"),
        ("", "²"),
        ("", "e3"),
        ("", "k"),
        ("", ",5"),
        ("", " 000"),
        ("", " × 10"),
        ("", "·10³"),
        ("", "x10"),
        ("", "/7"),
        ("", " million"),
        ("", " ms"),
        ("", "&nbsp;ms"),
        ("", " ms/token"),
        ("", " **ms**"),
        ("", " %"),
        ("", " percent"),
        ("", "\u200b5"),
        ("", "\\5"),
        ("", " milliseconds"),
        ("", " Microseconds"),
        ("", " [ms](units.md)"),
        ("", " GB"),
        ("", " msec"),
        ("", "\u0305"),
        ("", " $\\times 10^{-3}$"),
        ("", " times 10"),
        ("$10^3 \\times$ ", ""),
        ("\u202e", ""),
        ("&#x202e;", ""),
        ("<bdo dir=rtl>", "</bdo>"),
    ],
)
def test_nothing_beside_the_marks_makes_another_number(state, before, after):
    text = f"a {before}<!-- prereg: fast.estimate -->0.957<!-- /prereg -->{after} b"
    (problem,) = page(state, text).complaints
    assert "is not what is read" in problem.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("of ", " s"),
        ("of ", "s"),
        ("of ", " seconds"),
        ("of ", " [s](units.md)"),
        ("of ", " s per token"),
        ("of ", "&nbsp;s."),
        ("**", "** s"),
        ("(", ")"),
        ("[", "](page.md)"),
        ("=", ","),
        ("≤ ", "."),
        ("~", "; 5 more"),
        ("| ", " | 5 |"),
        ("- ", " in a list"),
        ("1. ", ""),
        ("a\n- took 5\n- ", ""),
        ("in 2020\n\n", "\n\n5"),
        ("a—", "—b"),
        ("0.9\N{EN DASH}", " s"),
        ("took 5: ", ""),
    ],
)
def test_prose_around_a_citation_is_the_authors(state, before, after):
    text = f"{before}<!-- prereg: fast.estimate -->0.957<!-- /prereg -->{after}"
    assert page(state, text).complaints == []


def test_a_unit_that_is_printed_or_pure_is_not_followed_by_another(state):
    for reference, text in (
        ("share.estimate", "0.2394"),
        ("share.estimate percent", "23.94 %"),
        ("fast.estimate with-unit", "0.957 s"),
        ("fast.n", "5"),
    ):
        cited = f"a <!-- prereg: {reference} -->{text}<!-- /prereg -->"
        assert page(state, f"{cited} b").complaints == []
        assert len(page(state, f"{cited} ms").complaints) == 1
        assert len(page(state, f"{cited} %").complaints) == 1
    ms = "a <!-- prereg: fast.estimate unit=ms -->957<!-- /prereg -->"
    assert page(state, f"{ms} ms").complaints == []
    assert len(page(state, f"{ms} s").complaints) == 1


def test_a_word_is_not_turned_into_its_opposite(state):
    for before, after in (("un", ""), ("un-", ""), ("", "less")):
        text = f"a {before}<!-- prereg: fast.verdict -->supported<!-- /prereg -->{after}"
        assert page(state, text).complaints


def test_two_citations_side_by_side_are_not_one_number(state):
    one, other = (
        f"<!-- prereg: fast.{field} -->{text}<!-- /prereg -->"
        for field, text in (("n", "5"), ("estimate", "0.957"))
    )
    assert len(page(state, one + other).complaints) == 2
    assert page(state, f"{one} repeats, {other} s").complaints == []


def test_only_the_text_between_the_marks_is_written(state, tmp_path):
    text = "\ufeffÄ\r\n| <!--prereg: fast.n-->  <!-- /prereg --> |\tb \r<!-- prereg: fast.low\n-->\n0.9\n<!-- /prereg --> \n\n`<!-- prereg: fast.n -->9<!-- /prereg -->`"
    path = tmp_path / "page.md"
    path.write_bytes(text.encode())
    path.chmod(0o640)
    found = read_page(path, Figures(state), Neighbours(state))
    assert found.problems == ()
    write_page(found)
    wanted = text.replace("<!--prereg: fast.n-->  <!--", "<!--prereg: fast.n-->  5<!--").replace(
        "\n0.9\n", "\n0.944\n"
    )
    assert path.read_bytes().decode() == wanted
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["page.md"]
    assert read_page(path, Figures(state), Neighbours(state)).complaints == []


def test_what_is_wrong_is_not_written_and_the_rest_is(state):
    text = (
        "a <!-- prereg: open.n -->5<!-- /prereg --> b 1<!-- prereg: fast.n -->9<!-- /prereg --> "
        "c <!-- prereg: fast.n -->**9**<!-- /prereg --> d <!-- prereg: fast.n -->9<!-- /prereg --> e"
    )
    found = page(state, text)
    assert [problem.line for problem in found.problems] == [1, 1, 1]
    assert rewritten(text, found.changes) == text.replace(
        " d <!-- prereg: fast.n -->9", " d <!-- prereg: fast.n -->5"
    )


def test_a_file_that_changed_meanwhile_is_left_as_it_is(state, tmp_path):
    path = tmp_path / "page.md"
    path.write_text("a <!-- prereg: fast.n -->9<!-- /prereg -->")
    found = read_page(path, Figures(state), Neighbours(state))
    path.write_text("another")
    with pytest.raises(StudyError, match="changed meanwhile"):
        write_page(found)
    assert path.read_text() == "another"


def test_a_symbolic_link_stays_one(state, tmp_path):
    path, link = tmp_path / "page.md", tmp_path / "link.md"
    path.write_text("a <!-- prereg: fast.n -->9<!-- /prereg -->")
    link.symlink_to(path)
    write_page(read_page(link, Figures(state), Neighbours(state)))
    assert link.is_symlink()
    assert ">5<" in path.read_text()


def test_what_is_not_utf_8_is_an_error(state, tmp_path):
    path = tmp_path / "page.md"
    path.write_bytes(b"a \xe4")
    (problem,) = read_page(path, Figures(state), Neighbours(state)).complaints
    assert "is not UTF-8: byte 2 is 0xe4" in problem.message


def test_markdown_that_git_keeps_is_looked_at_wherever_it_is(copy):
    names = ["a.md", "deep/er/B.MARKDOWN", ".github/c.md", "ignored/forced.md", "new.md"]
    for name in (*names, "ignored/d.md", "page.rst", "data.csv"):
        (copy.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (copy.folder / name).write_text("x\n<!-- prereg: fast.n -->9<!-- /prereg -->")
    (copy.folder / ".gitignore").write_text("ignored/\n")
    (copy.folder / "gone.md").write_text("x")
    git(copy.folder, "add", "-f", "ignored/forced.md", "a.md", "gone.md")
    (copy.folder / "gone.md").unlink()
    found = listing(copy.state())
    assert {str(path.relative_to(copy.folder.resolve())) for path in found.pages} == set(names)
    assert found.absent == 1
    (problem,) = uncheckable(found.documents)
    assert (Path(problem.path).name, problem.line) == ("page.rst", 2)


def test_without_git_hidden_folders_and_environments_are_left_out(tmp_path):
    made = WrittenStudy(tmp_path, STUDY)
    for name in ("a.md", "docs/b.md", ".hidden/c.md", "env/lib/d.md", "node_modules/e.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    assert [path.name for path in listing(made.state()).pages] == ["a.md", "b.md"]


OTHER = """\
[study]
id = "other"
[experiments.e]
repeats = 5
metrics = { t = "s" }
[predictions.fast]
claim = "x"
experiment = "e"
quantity = "t"
predicts = "<= 1 s"
falsifier = ">= 2 s"
[predictions.theirs]
claim = "x"
experiment = "e"
quantity = "t"
predicts = "<= 1 s"
falsifier = ">= 2 s"
"""


def test_a_citation_is_of_one_study(copy):
    (copy.folder / "predictions").mkdir()
    (copy.folder / "predictions" / "other.toml").write_text(OTHER)
    cited = {
        name: page(copy.state(), f"a <!-- prereg: {name}.n -->9<!-- /prereg -->")
        for name in ("share", "step:fast", "other:fast", "theirs", "fast", "nowhere:fast")
    }
    assert [len(cited[name].changes) for name in ("share", "step:fast")] == [1, 1]
    assert [cited[name].elsewhere for name in ("other:fast", "theirs")] == [1, 1]
    assert '"fast" may be of "other" or "step"' in cited["fast"].complaints[0].message
    assert 'there is no study "nowhere"' in cited["nowhere:fast"].complaints[0].message
    total = page(copy.state(), "a <!-- prereg: study.refuted -->9<!-- /prereg -->")
    assert "several studies" in total.complaints[0].message
