"""How an author would bend a study whose repeats are measured here, and what refuses it or tells of it.

Each beside what an honest author does. What the world gives is ``TAKES``, seconds; it refutes the claim until a
test says otherwise.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from audited_study import Audited, Small
from small_study import copied, new_repository

from pytest_prereg.evidence.lines import digest
from pytest_prereg.measure.schedule import repeat_seed, seed_base

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from small_study import Project, Verdicts

    Judge = Callable[..., pytest.RunResult]
    Records = Callable[..., Verdicts]
    Begin = Callable[..., Small]

TEXT = """\
[study]
id = "measured"

[experiments.work]
fixture = "work"
repeats = 4
timeout = "20 s"
conditions = { cores = ">= 1" }
subject = ["subject.txt"]
[experiments.work.arms]
a = { times = 1.0 }
b = { times = 4.0 }

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "work"
arm = "a"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"

[predictions.apart]
claim = "One takes at most half of the other."
experiment = "work"
contrast = "a / b"
quantity = "t"
predicts = "<= 0.5"
falsifier = ">= 0.8"
"""
QUICK, APART = (TEXT.splitlines().index(f"[predictions.{name}]") + 1 for name in ("quick", "apart"))
WORK = """\
import os

import aid
from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s", "cpu": "s"})
def work(repeat: Repeat, *, times: float) -> None:
    takes = float(os.environ["TAKES"]) * times + repeat.index / 100
    aid.look(repeat, takes)
    repeat.record("t", takes)
    repeat.record("cpu", takes / 9)
"""
AID = "def look(repeat, takes):\n    return None\n"
ONE = TEXT.partition("[experiments.work.arms]")[0] + (
    '\n[predictions.quick]\nclaim = "It takes less than two seconds."\nexperiment = "work"\nquantity = "t"\n'
    'predicts = "<= 2 s"\nfalsifier = ">= 3 s"\n'
)
LINE = ONE.splitlines().index("[predictions.quick]") + 1
ONE_ARM = WORK.replace(", *, times: float", "").replace(" * times", "")
SLOW, FAST = "3.9", "1"
WHY = ("--reason", "for a good reason")


@pytest.fixture(autouse=True)
def takes(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What the world gives from now on."""

    def give(seconds: str) -> None:
        monkeypatch.setenv("TAKES", seconds)

    give(SLOW)
    return give


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """``begun(text, work, aid)``: a study that is registered and committed."""

    def make(text: str = ONE, work: str = ONE_ARM, aid: str = AID) -> Small:
        project = registered(tmp_path / "study", text, work, aid)
        monkeypatch.chdir(project.path)
        return project

    return make


def registered(path: Path, text: str, work: str, aid: str = AID) -> Small:
    project = Small(new_repository(path).path, path)
    project.write("predictions.toml", text)
    project.write("experiments/work.py", work)
    project.write("aid.py", aid)
    project.write("subject.txt", "one\n")
    project.write(".gitignore", "__pycache__/\nmark\n")
    project.done("lock")
    project.commit("Register")
    return project


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Small]:
    """Studies that were measured, recorded and committed once, by their text: of one arm, and of two."""
    folder = tmp_path_factory.mktemp("once")
    made = {
        "one": registered(folder / "one", ONE, ONE_ARM),
        "two": registered(folder / "two", TEXT, WORK),
    }
    for project in made.values():
        done = project.process("--prereg", "--prereg-record", "-p", "no:cacheprovider", TAKES=SLOW)
        assert "recorded" in done.stdout, done.stdout
        project.commit("Evidence")
    return made


@pytest.fixture
def refuted(
    once: dict[str, Small],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Small:
    """The study of one arm, refuted; what is refuted is recorded."""
    project = copied(once["one"], tmp_path / "study")
    monkeypatch.chdir(project.path)
    return Small(project.path, project.path)


@pytest.fixture
def both(once: dict[str, Small], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """The study of two arms: "quick" is refuted, and "apart" supported."""
    project = copied(once["two"], tmp_path / "study")
    monkeypatch.chdir(project.path)
    return Small(project.path, project.path)


def measured(project: Project, judge: Judge, *flags: str) -> None:
    """Measures what is due, records its verdicts, and commits both."""
    judge(project, "--prereg-record", *flags)
    project.commit("Evidence")


def amend(project: Project, *names: str) -> None:
    project.done("amend", *names, *WHY)
    project.commit("Amend")


def lock_of(project: Project, name: str = "quick") -> dict[str, Any]:
    return tomllib.loads((project.path / "predictions.lock").read_text())["predictions"][name]


def codes(audit: Audited, name: str) -> set[tuple[str, str]]:
    """Codes and levels of what is said of a prediction or an experiment."""
    return {(one["code"], one["level"]) for one in audit.findings if one["id"] == name}


def verdict_of(record: dict[str, Any]) -> tuple[str, str | None, int]:
    return record["verdict"], record["reason"], record["series"]


def test_a_refutation_that_was_measured_and_recorded_is_fine(refuted: Small):
    audit = refuted.audit()
    assert audit.order("quick") == ("registered", "confirmatory")
    assert (audit.told, audit.exit) == ([], 0)


class TestRunAgainUntilItFits:
    def test_a_fresh_series_is_a_replication_and_its_contradiction_is_told(
        self, refuted: Small, judge: Judge, records: Records, takes: Callable[[str], None]
    ):
        measured(refuted, judge, "--prereg-fresh")
        assert refuted.audit().told == []  # it agrees
        takes(FAST)
        measured(refuted, judge, "--prereg-fresh")

        audit = refuted.audit()

        assert (audit.told, audit.exit) == ([("PR205", "review", LINE)], 1)
        assert audit.message("PR205") == 'series of "quick" disagree: series 1 refuted, series 3 supported'
        assert verdict_of(records(refuted)["quick"]) == ("refuted", None, 1)
        assert (lock_of(refuted)["verdict"], lock_of(refuted)["series"]) == ("refuted", 1)

    def test_a_new_session_a_comment_and_a_recorded_twice_verdict_buy_nothing(
        self, refuted: Small, judge: Judge, records: Records, takes: Callable[[str], None]
    ):
        takes(FAST)
        before = (refuted.path / "predictions.lock").read_bytes()
        refuted.edit("experiments/work.py", "import os\n", "# as fast as it goes\nimport os\n")
        refuted.commit("A comment")
        measured(refuted, judge)
        assert (len(refuted.evidence("work")), refuted.audit().told) == (1, [])
        refuted.write("subject.txt", "one\n# a comment\n")
        refuted.commit("A comment in the subject")
        measured(refuted, judge)

        audit = refuted.audit()

        assert (len(refuted.evidence("work")), audit.told) == (1, [("PR206", "notice", LINE)])
        assert "is about an earlier version of its subject" in audit.message("PR206")
        assert records(refuted)["quick"]["flags"] == ["instrument-unstated", "earlier subject"]
        assert (refuted.path / "predictions.lock").read_bytes() == before

    def test_other_code_has_to_be_amended_and_the_first_verdict_stays(
        self, refuted: Small, judge: Judge, records: Records, takes: Callable[[str], None]
    ):
        takes(FAST)
        refuted.edit("experiments/work.py", "takes / 9", "takes / 8")
        refuted.commit("Change the code")
        refused = judge(refuted, "--prereg-fresh", "--prereg-record")
        refused.stdout.fnmatch_lines(['*PR103: "quick" was registered with other code of experiment "work"*'])
        amend(refuted, "quick")
        measured(refuted, judge, "--prereg-fresh")

        audit, record = refuted.audit(), records(refuted)["quick"]

        assert codes(audit, "quick") == {("PR202", "review"), ("PR205", "review")}
        assert audit.exit == 1
        assert verdict_of(record) == ("refuted", None, 1)
        assert record["flags"] == ["instrument-unstated", "earlier code"]

    def test_voiding_buys_a_replication(
        self, refuted: Small, judge: Judge, records: Records, takes: Callable[[str], None]
    ):
        refuted.done("void", "work/1", *WHY)
        refuted.commit("Void")
        takes(FAST)
        measured(refuted, judge)
        assert len(refuted.evidence("work")) == 1  # a verdict that was shown is not reopened
        measured(refuted, judge, "--prereg-fresh")

        audit, record = refuted.audit(), records(refuted)["quick"]

        assert (codes(audit, "quick"), codes(audit, "work")) == ({("PR205", "review")}, {("PR213", "review")})
        assert audit.exit == 1
        assert verdict_of(record) == ("refuted", None, 1)
        assert "voided" in record["flags"]

    def test_evidence_that_was_never_committed_can_be_thrown_away_and_that_is_said(
        self, begun: Begin, judge: Judge, takes: Callable[[str], None]
    ):
        project = begun()
        judge(project)
        assert (
            "That 1 session will stay as they are: what is not committed as it lies here can be replaced "
            "without a trace." in project.audit().content["unproven"]
        )
        project.evidence("work")[0].unlink()
        takes(FAST)
        measured(project, judge)

        audit = project.audit()

        assert (audit.told, audit.exit, lock_of(project)["verdict"]) == ([], 0, "supported")
        assert (
            "That no run elsewhere, or never committed, was thrown away: another clone is not seen from here."
            in audit.content["unproven"]
        )

    def test_unless_another_experiment_was_measured_meanwhile(
        self, begun: Begin, judge: Judge, takes: Callable[[str], None]
    ):
        other = ONE.partition("\n\n")[2].replace("ts.work]", "ts.more]").replace("s.quick]", "s.more]")
        project = begun(ONE + "\n" + other.replace('experiment = "work"', 'experiment = "more"'))
        judge(project)
        project.evidence("work")[0].unlink()
        takes(FAST)
        measured(project, judge)

        audit = project.audit()

        assert ("PR207", "error") in codes(audit, "work") | codes(audit, "quick")
        assert audit.exit == 1

    def test_a_guard_whose_subject_gets_a_comment_is_measured_anew_and_what_it_was_before_is_told(
        self, begun: Begin, judge: Judge, takes: Callable[[str], None]
    ):
        guard = 'kind = "guard"\nexpected = 1.0\ndetect = 4.0\ncv = 0.02\nclaim = "It'
        project = begun(ONE.replace('claim = "It', guard))
        measured(project, judge)  # and once more, to confirm it
        assert (lock_of(project)["verdict"], project.audit().told) == ("refuted", [])
        takes(FAST)
        project.write("subject.txt", "one\n# a comment\n")
        project.commit("A comment in the subject")
        measured(project, judge)

        audit = project.audit()

        assert [one["level"] for one in audit.findings] == ["review"]
        assert 'of "quick" was changed: refuted -> supported (series 3)' in audit.message("PR205")

    def test_what_a_second_clone_measured_under_the_same_number_is_told(
        self, refuted: Small, once: dict[str, Small], tmp_path: Path
    ):
        clone = copied(once["one"], tmp_path / "clone")
        clone.git("reset", "--quiet", "--hard", "HEAD~1")
        clone.process("--prereg", "-p", "no:cacheprovider", TAKES=FAST)
        (other,) = clone.evidence("work")
        kept = refuted.path / "experiments" / "evidence" / "work" / other.name
        kept.write_bytes(other.read_bytes())
        refuted.commit("What the other machine found")

        audit = refuted.audit()

        assert ("PR205", "review") in codes(audit, "work")
        assert ("PR211", "error") in codes(audit, "quick")
        assert audit.exit == 1


DROPPED = {
    "raises": ("raise RuntimeError", ("inconclusive", "task-failed", 1), [], []),
    "is invalid": (
        "repeat.invalidate('it was slow')",
        ("inconclusive", "excluded", 1),
        ["invalid repeats"],
        [("PR208", "notice", LINE)],
    ),
    "runs out of time": (
        "time.sleep(9)",
        ("inconclusive", "rare-event", 1),
        [],
        [],
    ),
    "kills itself": (
        "os.kill(os.getpid(), 9)",
        ("supported", None, 1),
        ["repeats run again"],
        [("PR213", "notice", LINE)],
    ),
    "kills what it runs under": (
        "os.kill(os.getppid(), 9)",
        ("supported", None, 1),
        ["repeats run again"],
        [("PR213", "notice", LINE)],
    ),
}


class TestDropTheSlowRepeats:
    """The second repeat is slow when it is tried first."""

    BODY = (
        "import os\nimport time\nfrom pathlib import Path\n\n\ndef look(repeat, takes):\n"
        "    if repeat.index == 2 and not Path('mark').exists():\n"
        "        Path('mark').touch()\n        {}\n"
    )

    @pytest.mark.parametrize("how", DROPPED)
    def test_by_the_experiment_itself(
        self, begun: Begin, judge: Judge, records: Records, takes: Callable[[str], None], how: str
    ):
        does, verdict, flags, told = DROPPED[how]
        takes(FAST)
        work = ONE_ARM
        if how == "is invalid":  # it keeps what was recorded: with a value that would have refuted it
            work = ONE_ARM.replace('"t", takes', '"t", takes * (90 if aid.was_slow else 1)')
            does = "global was_slow\n        was_slow = True\n        " + does
        aid = self.BODY.format(does) + "\n\nwas_slow = False\n"
        project = begun(ONE.replace('"20 s"', '"1 s"'), work, aid)
        measured(project, judge)

        audit, record = project.audit(), records(project)["quick"]

        assert verdict_of(record) == verdict
        assert record["flags"] == ["instrument-unstated", *flags]
        assert audit.told == told
        for one in audit.findings:
            assert (
                "1 attempt lost and run again (" in one["message"] or "1 declared invalid" in one["message"]
            )

    def test_where_nothing_is_dropped_nothing_is_told(
        self, begun: Begin, judge: Judge, records: Records, takes: Callable[[str], None]
    ):
        takes(FAST)
        project = begun(ONE.replace('"20 s"', '"1 s"'), aid=self.BODY.format("pass"))
        measured(project, judge)
        assert verdict_of(records(project)["quick"]) == ("supported", None, 1)
        assert project.audit().told == []

    def test_by_a_command(self, refuted: Small, records: Records):
        for index in (1, 2, 3):
            refuted.done("exclude", f"work/1/{index}", "--cause", "instrument", *WHY)
        refuted.commit("Exclude")

        audit, record = refuted.audit(), records(refuted)["quick"]

        assert verdict_of(record) == ("inconclusive", "excluded", 1)
        assert record["changed"]
        assert ("PR208", "review") in codes(audit, "work")
        assert ("PR211", "error") in codes(audit, "quick")


RULE = ("repeats = 4", 'repeats = 4\nexclude = ["load_average < 1e9"]\nmax-excluded = 1')


def test_a_rule_that_takes_everything_out_decides_nothing(begun: Begin, judge: Judge, records: Records):
    project = begun(ONE.replace(*RULE))
    measured(project, judge)
    assert verdict_of(records(project)["quick"])[:2] == ("inconclusive", "excluded")
    assert project.audit().told == [("PR208", "notice", LINE + 2)]


AFTERWARDS = {
    "the metric": ("quick", 'quantity = "t"\npredicts = "<= 2 s"', 'quantity = "cpu"\npredicts = "<= 2 s"'),
    "the unit": ("quick", '"<= 2 s"\nfalsifier = ">= 3 s"', '"<= 2 min"\nfalsifier = ">= 3 min"'),
    "the arm": ("quick", 'arm = "a"', 'arm = "b"'),
    "the arm's parameters": ("quick", "a = { times = 1.0 }", "a = { times = 0.1 }"),
    "the statistic": ("quick", 'arm = "a"', 'arm = "a"\nstatistic = "geometric-mean"'),
    "the contrast": ("apart", '"a / b"', '"b / a"'),
    "ratio and difference": (
        "apart",
        '"a / b"\nquantity = "t"\npredicts = "<= 0.5"\nfalsifier = ">= 0.8"',
        '"a - b"\nquantity = "t"\npredicts = "<= 0.5 s"\nfalsifier = ">= 0.8 s"',
    ),
    "the pairing": ("apart", "repeats = 4", 'repeats = 4\npairing = "none"'),
    "how many": ("quick", "repeats = 4", "repeats = 3"),
    "the confidence": ("quick", 'id = "measured"', 'id = "measured"\nconfidence = 0.8'),
    "the conditions": ("quick", 'conditions = { cores = ">= 1" }\n', ""),
    "the timeout": ("quick", 'timeout = "20 s"', 'timeout = "1 s"'),
    "max-excluded": ("quick", "repeats = 4", "repeats = 4\nmax-excluded = 1"),
    "a rule": ("quick", *RULE),
}


class TestAskAnotherQuestion:
    @pytest.mark.parametrize("what", AFTERWARDS)
    def test_when_the_answer_is_known(self, both: Small, what: str):
        name, *change = AFTERWARDS[what]
        both.edit("predictions.toml", *change)
        amend(both, "--experiment", "work")

        audit = both.audit()

        found = [one for one in audit.findings if one["id"] == name]
        assert {(one["code"], one["level"]) for one in found} == {("PR202", "review"), ("PR209", "error")}
        assert audit.order(name) == ("mismatch", "exploratory")
        assert audit.exit == 1

    def test_before_there_are_any_data(self, begun: Begin):
        """All of them, one after the other."""
        project = begun(TEXT, WORK)
        for name, *change in AFTERWARDS.values():
            project.edit("predictions.toml", *change)
            amend(project, name)
            project.write("predictions.toml", TEXT)
            amend(project, name)

        audit = project.audit()

        assert audit.exit == 0
        assert {one["level"] for one in audit.findings if one["code"] == "PR202"} == {"notice"}
        assert {one["acknowledged"] for one in audit.findings if one["code"] == "PR209"} <= {
            f"amended: {WHY[1]}"
        }
        assert {audit.order(name) for name in ("quick", "apart")} == {("registered", "confirmatory")}

    def test_another_unit_of_the_metric_is_other_code_as_well(self, both: Small, judge: Judge):
        both.edit("experiments/work.py", '"t": "s"', '"t": "ms"')
        judge(both, "--prereg-verify", "-k", "quick").stdout.fnmatch_lines(["*exploratory: mismatch*"])
        amend(both, "--experiment", "work")
        audit = both.audit()
        assert {("PR202", "review"), ("PR209", "error")} <= codes(audit, "quick")
        assert audit.order("quick") == ("mismatch", "exploratory")


class TestChangeTheExperiment:
    def test_while_it_runs(self, begun: Begin, judge: Judge, records: Records):
        """A body that rewrites what it imports, in the first repeat: nothing of that counts."""
        edits = "open('aid.py', 'w').write(" + repr(AID) + ")"
        project = begun(aid=f"def look(repeat, takes):\n    {edits}\n")

        result = judge(project)

        result.stdout.fnmatch_lines(['*PR103: the code of experiment "work" changed while it was measured;*'])
        project.commit("What came of it")
        judge(project).stdout.fnmatch_lines(['*PR103: "quick" was registered with other code*'])
        amend(project, "quick")
        measured(project, judge)
        audit, record = project.audit(), records(project)["quick"]
        assert ("PR213", "review") in codes(audit, "work")
        assert ("PR202", "review") in codes(audit, "quick")
        assert record["series"] == 2
        assert "abandoned series" in record["flags"]

    def test_between_arms(self, begun: Begin, judge: Judge, records: Records):
        """Stopped after the first repeats, and gone on with when a module that they import is another one."""
        text = TEXT.replace('timeout = "20 s"', 'timeout = "20 s"\norder = "sequential"')
        stop = "import os\n\n\ndef look(repeat, takes):\n    if repeat.arm == 'b':\n        os.kill({}, 9)\n"
        project = begun(text, WORK, stop.format("os.getpid()"))
        judge(project)  # all of the first arm, and no more
        project.commit("A part of it")
        project.write("aid.py", AID)
        project.commit("Mend it")
        judge(project).stdout.fnmatch_lines(['*PR103: "quick" was registered with other code*'])
        amend(project, "quick", "apart")
        measured(project, judge)

        audit, record = project.audit(), records(project)["apart"]

        assert ("PR213", "review") in codes(audit, "work")
        assert audit.exit == 1
        assert (record["series"], "abandoned series" in record["flags"]) == (2, True)

    def test_after_it_has_run(self, refuted: Small, records: Records):
        refuted.edit("aid.py", "None", "takes")
        refuted.commit("Another helper")
        record, audit = records(refuted)["quick"], refuted.audit()
        assert (record["verdict"], record["flags"]) == ("refuted", ["instrument-unstated", "earlier code"])
        assert audit.exit == 0

    def test_through_a_module_that_is_loaded_unseen(self, begun: Begin, judge: Judge):
        """No digest shows it, and an audit says so."""
        loads = ONE_ARM.replace("import aid", "import importlib").replace(
            "aid.look(repeat, takes)", 'takes = importlib.import_module("aid").look(repeat, takes)'
        )
        project = begun(work=loads, aid=AID.replace("None", "takes"))
        project.edit("aid.py", "takes\n", "takes / 4\n")
        project.commit("Another helper")
        measured(project, judge)
        audit = project.audit()
        assert (lock_of(project)["verdict"], audit.told) == ("supported", [])
        assert any("what it finds undeclared is not digested" in one for one in audit.content["unproven"])

    def test_which_a_module_that_is_imported_is_not(self, begun: Begin, judge: Judge):
        project = begun()
        project.edit("aid.py", "None", "takes")
        project.commit("Another helper")
        judge(project).stdout.fnmatch_lines(['*PR103: "quick" was registered with other code of experiment*'])
        assert project.evidence("work") == []


class TestPickTheSeed:
    def test_it_follows_from_what_is_registered_and_nothing_else(
        self, refuted: Small, judge: Judge, monkeypatch: pytest.MonkeyPatch
    ):
        for name in ("PYTHONHASHSEED", "SEED", "PREREG_SEED", "PYTEST_ADDOPTS"):
            monkeypatch.setenv(name, "" if name == "PYTEST_ADDOPTS" else "7")
        judge(refuted, "--prereg-fresh", "-p", "no:randomly")
        for number, path in enumerate(refuted.evidence("work"), 1):
            header, *lines = map(json.loads, path.read_text().splitlines())
            seed = seed_base([lock_of(refuted)["digest"]], number)
            assert header["seed"] == seed
            given = [one["seed"] for one in lines if one["type"] == "started"]
            assert given == [repeat_seed(seed, block) for block in (1, 2, 3, 4)]

    def test_one_that_was_written_into_the_evidence_is_told(self, begun: Begin, judge: Judge):
        """Before its first commit, and with a last line that fits: no digest gives it away."""
        project = begun()
        judge(project)
        (path,) = project.evidence("work")
        header, *lines, last = path.read_bytes().splitlines(keepends=True)
        chosen = {**json.loads(header), "seed": "sha256:" + 64 * "7"}
        body = b"".join([json.dumps(chosen).encode() + b"\n", *lines])
        path.write_bytes(body + json.dumps({**json.loads(last), "digest": digest(body)}).encode() + b"\n")
        project.commit("Evidence")

        audit = project.audit()

        assert (audit.told, audit.exit) == ([("PR207", "error", LINE)], 1)
        assert "has another seed than what it was measured for gives" in audit.message("PR207")


class TestWriteAnotherVerdict:
    def test_before_the_run_that_gives_one(self, begun: Begin, judge: Judge):
        project = begun()
        claimed = 'verdict = "supported"\nestimate = 1.0\ninterval = [0.9, 1.1]\nn = 4\nseries = 1\n'
        nothing = f'evidence = "sha256:{64 * "0"}"'
        project.edit("predictions.lock", 'unit = "s"', f'unit = "s"\n{claimed}{nothing}')
        project.commit("What it will be")
        assert ("PR207", "error") in codes(project.audit(), "quick")

        result = judge(project, "--prereg-record")

        assert result.ret == 1
        result.stdout.fnmatch_lines(["*CHANGED supported → refuted*", "*nothing new to record*"])
        project.commit("Evidence")
        assert ("PR207", "error") in codes(project.audit(), "quick")

    def test_in_the_lock_that_the_run_has_written(self, refuted: Small, judge: Judge):
        refuted.edit("predictions.lock", 'verdict = "refuted"', 'verdict = "supported"')
        refuted.commit("Another verdict")
        judge(refuted).stdout.fnmatch_lines(
            ['*PR211: the recorded verdict of "quick", "supported", does not *']
        )
        assert codes(refuted.audit(), "quick") == {("PR205", "review"), ("PR211", "error")}

        judge(refuted, "--prereg-record").stdout.fnmatch_lines(["*CHANGED supported → refuted*"])

        refuted.commit("Evidence")
        audit = refuted.audit()
        assert audit.told == [("PR205", "review", LINE)] * 2  # there, and back
        assert (lock_of(refuted)["verdict"], audit.exit) == ("refuted", 1)


class TestWithdrawAndClaimItAnew:
    @pytest.fixture
    def anew(self, refuted: Small) -> Small:
        refuted.done("withdraw", "quick", *WHY)
        refuted.edit("predictions.toml", "[predictions.quick]", "[predictions.quicker]")
        refuted.done("lock")
        refuted.commit("Claim it anew")
        return refuted

    def test_the_old_evidence_counts_for_nothing(self, anew: Small, records: Records):
        audit, found = anew.audit(), records(anew, "--prereg-verify")
        assert audit.order("quicker") == ("after-evidence", "exploratory")
        assert codes(audit, "quicker") == {("PR212", "error")}
        assert found["quick"]["verdict"] == "refuted"
        assert (found["quicker"]["verdict"], found["quicker"]["standing"]) == ("refuted", "exploratory")

    def test_new_evidence_comes_after_data_that_were_known(
        self, anew: Small, judge: Judge, records: Records, takes: Callable[[str], None]
    ):
        takes(FAST)
        measured(anew, judge)
        audit, found = anew.audit(), records(anew)
        assert codes(audit, "quicker") == {("PR216", "review")}
        assert audit.exit == 1
        assert "earlier data" in found["quicker"]["flags"]
        assert (found["quick"]["status"], found["quick"]["verdict"]) == ("withdrawn", "refuted")

    def test_who_says_so_is_fine(self, refuted: Small, judge: Judge):
        """A stricter claim, and what was known when it was made."""
        strict = (
            ONE[ONE.index("[predictions.quick]") :].replace("quick", "stricter").replace("<= 2 s", "<= 1 s")
        )
        with (refuted.path / "predictions.toml").open("a") as stream:
            stream.write(f'\n{strict}data-seen = "pilot"\n')
        refuted.done("lock")
        refuted.commit("A stricter one")
        measured(refuted, judge)
        audit = refuted.audit()
        assert (audit.order("stricter"), audit.told) == (("registered", "confirmatory"), [])

    def test_nothing_is_judged_after_it(self, refuted: Small):
        """A tombstone first, and a verdict that somebody writes beside it."""
        entry = (refuted.path / "predictions.lock").read_text()
        refuted.done("withdraw", "quick", *WHY)
        refuted.commit("Withdraw")
        assert refuted.audit().exit == 0
        refuted.edit("predictions.lock", 'verdict = "refuted"', 'verdict = "supported"')
        refuted.commit("Judge it")
        audit = refuted.audit()
        assert 'verdict = "refuted"' in entry
        assert codes(audit, "quick") >= {("PR215", "error")}
        assert audit.exit == 1


CALIBRATED = """\
[study]
id = "measured"

[instruments.probe]
calibrated-by = ["true-probe"]

[experiments.wave]
fixture = "wave"
repeats = 3

[experiments.work]
fixture = "work"
repeats = 3

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "work"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"

[predictions.true-probe]
claim = "The probe reads what it should."
experiment = "wave"
quantity = "x"
predicts = "[0.9, 1.1]"
falsifier = "outside [0.8, 1.2]"
"""
CLAIM = CALIBRATED.splitlines().index("[predictions.quick]") + 1
AGAIN = CALIBRATED[CALIBRATED.index("[predictions.quick]") : CALIBRATED.index("[predictions.true-probe]")]
SUCCESSOR = AGAIN.replace("predictions.quick", "predictions.again").rstrip() + '\nfollows = "quick"\n'
READ = """\
import os

from pytest_prereg import Repeat, experiment


@experiment(metrics={"x": "1"})
def wave(repeat: Repeat) -> None:
    repeat.record("x", float(os.environ["READS"]) + repeat.index / 1000)


@experiment(metrics={"t": {"unit": "s", "instrument": "probe"}})
def work(repeat: Repeat) -> None:
    repeat.record("t", float(os.environ["TAKES"]) + repeat.index / 100)
"""


class TestRecalibrate:
    @pytest.fixture(autouse=True)
    def is_right(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("READS", "1")

    @pytest.fixture
    def read(self, begun: Begin, judge: Judge) -> Small:
        """The probe is right, and the claim is refuted with it; nobody has recorded that yet."""
        project = begun(CALIBRATED, READ)
        judge(project)
        project.commit("Evidence")
        return project

    def follow(self, project: Small, judge: Judge, records: Records) -> dict[str, Any]:
        """Registers a successor, and measures it if it may be."""
        with (project.path / "predictions.toml").open("a") as stream:
            stream.write("\n" + SUCCESSOR)
        project.done("lock")
        project.commit("A successor")
        judge(project)
        return records(project, "--prereg-verify")["again"]

    def test_measured_again_it_changes_nothing(
        self, read: Small, judge: Judge, records: Records, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("READS", "2")
        judge(read, "--prereg-fresh", "-k", "true-probe")
        read.commit("Evidence")
        audit = read.audit()
        assert verdict_of(records(read, "--prereg-verify")["quick"]) == ("refuted", None, 1)
        assert (codes(audit, "true-probe"), codes(audit, "quick")) == ({("PR205", "review")}, set())
        assert self.follow(read, judge, records)["standing"] == "exploratory"

    def test_amended_it_frees_nothing_and_that_is_told_of_the_claim(
        self, read: Small, judge: Judge, records: Records
    ):
        read.edit("predictions.toml", "[0.9, 1.1]", "[0.91, 1.1]")
        amend(read, "true-probe")
        judge(read)
        read.commit("Evidence")

        audit, record = read.audit(), records(read, "--prereg-verify")["quick"]

        assert verdict_of(record) == ("inconclusive", "instrument", 1)
        assert "rests on an amended one" in record["flags"]
        assert [
            (one["code"], one["level"], one["line"]) for one in audit.findings if one["id"] == "quick"
        ] == [("PR205", "review", CLAIM)]
        assert 'series 1 of "quick" refuted it, and it is inconclusive since' in audit.message("PR205")
        assert audit.exit == 1
        again = self.follow(read, judge, records)
        assert (again["standing"], again["status"]) == ("exploratory", "pending")

    def test_voided_neither(self, read: Small, judge: Judge, records: Records):
        read.done("void", "wave/1", *WHY)
        read.commit("Void")
        audit = read.audit()
        assert codes(audit, "quick") == {("PR205", "review")}
        assert self.follow(read, judge, records)["standing"] == "exploratory"

    def test_trusted_the_claim_is_another_one(self, read: Small, judge: Judge, records: Records):
        read.edit("predictions.toml", 'calibrated-by = ["true-probe"]', 'trusted = "It was right so far."')
        amend(read, "quick")
        audit = read.audit()
        assert codes(audit, "quick") == {("PR202", "review"), ("PR209", "error")}
        assert verdict_of(records(read, "--prereg-verify")["quick"])[0] == "refuted"
        assert self.follow(read, judge, records)["standing"] == "exploratory"

    def test_what_it_supported_is_lost_and_may_be_claimed_again(
        self, begun: Begin, judge: Judge, records: Records, takes: Callable[[str], None]
    ):
        """No refutation was lifted."""
        takes(FAST)
        project = begun(CALIBRATED, READ)
        judge(project)
        project.commit("Evidence")
        project.edit("predictions.toml", "[0.9, 1.1]", "[0.91, 1.1]")
        amend(project, "true-probe")
        judge(project)
        project.commit("Evidence")

        audit, record = project.audit(), records(project, "--prereg-verify")["quick"]

        assert verdict_of(record) == ("inconclusive", "instrument", 1)
        assert (codes(audit, "quick"), audit.exit) == (set(), 0)
        again = self.follow(project, judge, records)
        assert (again["standing"], again["verdict"]) == ("confirmatory", "supported")


def test_evidence_of_a_commit_that_was_rebased_behind_the_registration(
    begun: Begin, judge: Judge, records: Records
):
    """Measured when nothing was registered; the history is then written so that it seems to come after it."""
    project = begun()
    start = project.git("rev-list", "--max-parents=0", "HEAD")
    project.git("rm", "--quiet", "--cached", "predictions.lock")
    project.git("commit", "--quiet", "--amend", "--message", "Nothing is registered")
    bare = project.git("rev-parse", "HEAD")
    (project.path / "predictions.lock").unlink()
    judge(project, "--prereg-explore")
    project.done("lock")
    project.keep("Register", "predictions.lock")
    project.commit("Evidence")

    told = project.audit()

    assert told.order("quick") == ("after-evidence", "exploratory")
    assert codes(told, "quick") >= {("PR212", "error")}
    project.git("reset", "--quiet", "--soft", start)
    project.git("commit", "--quiet", "--allow-empty", "--message", "Evidence, on top of the registration")
    project.git("branch", "--quiet", "--force", "kept", bare)
    assert project.audit().order("quick") == ("after-evidence", "exploratory")
    project.git("branch", "--quiet", "-D", "kept")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "--quiet", "--prune=now")
    gone = project.audit()
    assert gone.order("quick") == ("after-evidence", "exploratory")  # its header binds nothing
    assert records(project, "--prereg-verify")["quick"]["standing"] == "exploratory"
