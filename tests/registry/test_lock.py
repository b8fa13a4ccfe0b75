"""The lock: one form, whole or not at all, and nothing registered is overwritten."""

from __future__ import annotations

import contextlib
import math
import os
import stat
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.errors import StudyError, UsageError
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import (
    Acknowledgement,
    Amendment,
    Exclusion,
    Lock,
    LockEntry,
    Void,
    Withdrawal,
    amend,
    parse_lock,
    plan_registration,
    read_lock,
    register,
    render_lock,
    write_lock,
)
from pytest_prereg.registry.lock_file import REASONS, VERDICTS
from pytest_prereg.registry.registered import registered

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Study

ONE, TWO = (f"sha256:{digit * 64}" for digit in "12")

ENTRY = LockEntry(digest=ONE, claim=TWO, experiment=ONE, registered="2026-01-02T03:04:05Z", unit="s")
JUDGED = msgspec.structs.replace(
    ENTRY,
    scale=0.001,
    verdict="inconclusive",
    reason="straddles",
    estimate=0.97,
    interval=(0.9, math.inf),
    n=7,
    series=1,
    evidence=TWO,
    method="t on logs",
    amendments=(Amendment(old=TWO, new=ONE, reason='the "unit"\nwas wrong', at="2026"),),
    withdrawal=Withdrawal(reason="gone", at="2027"),
)
LOCK = Lock(
    study="s",
    predictions={"b": ENTRY, "a": JUDGED, "sweep[cols=4096]": ENTRY},
    exclusions=(
        Exclusion(repeat="e/1/1", reason="hot", cause="tool", at="2026-08-02T12:00:00Z"),
        Exclusion(repeat="e/1/2", reason="hot", cause="tool", at="2026-08-02T12:00:00Z"),
    ),
    voided=(Void(series="e/1", reason="wrong cable", at="2026-08-02T12:00:00Z"),),
    acknowledged=(
        Acknowledgement(code="PR205", id="a", about="supported -> refuted", reason="seen", at="2026"),
    ),
)
TEXT = render_lock(LOCK)

STUDY = """
[study]
id = "s"

[experiments.e]
repeats = 7
metrics = { t = "ms", u = "s" }

[predictions.p]
claim = "It is quick."
experiment = "e"
quantity = "t"
predicts = "<= 1 s"
falsifier = "> 2 s"

[predictions.q]
claim = "It is steady."
experiment = "e"
quantity = "t / u"
predicts = "<= 1"
falsifier = "> 2"
"""


def study(text: str = STUDY, folder: Path = Path()) -> Study:
    return load_study(folder / "predictions.toml", text=text)


def locked(text: str = STUDY) -> Lock:
    loaded = study(text)
    return register(loaded, None, plan_registration(loaded, None, at="2026"))


def told(text: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        parse_lock(text, "predictions.lock")
    return [str(problem) for problem in caught.value.problems]


class TestFile:
    def test_what_is_written_is_read(self):
        assert parse_lock(TEXT, "predictions.lock") == LOCK

    def test_the_form_is_documented_toml(self):
        table = tomllib.loads(TEXT)
        assert list(table) == ["version", "study", "exclusion", "voided", "acknowledged", "predictions"]
        assert list(table["predictions"]) == ["a", "b", "sweep[cols=4096]"]
        assert table["predictions"]["b"] == {
            "digest": ONE,
            "claim": TWO,
            "experiment": ONE,
            "registered": "2026-01-02T03:04:05Z",
            "unit": "s",
        }
        assert table["predictions"]["a"]["amendment"][0]["reason"] == 'the "unit"\nwas wrong'
        assert TEXT.startswith("# Written by pytest-prereg; do not edit by hand.\n")

    def test_the_order_in_which_things_were_added_does_not_show(self):
        again = Lock(
            study="s",
            predictions=dict(reversed(LOCK.predictions.items())),
            exclusions=LOCK.exclusions[::-1],
            voided=LOCK.voided,
            acknowledged=LOCK.acknowledged,
        )
        assert render_lock(again) == TEXT == render_lock(parse_lock(TEXT, ""))

    def test_registering_one_more_only_adds_lines(self):
        one = render_lock(Lock(study="s", predictions={"a": ENTRY, "c": ENTRY}))
        two = render_lock(Lock(study="s", predictions={"a": ENTRY, "b": JUDGED, "c": ENTRY}))
        lines = iter(two.splitlines())
        assert all(line in lines for line in one.splitlines())

    @given(
        st.dictionaries(
            st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}(\[[a-z]=[A-Za-z0-9._+-]{1,5}\])?", fullmatch=True),
            st.builds(
                LockEntry,
                digest=st.sampled_from([ONE, TWO]),
                claim=st.just(ONE),
                experiment=st.none() | st.just(ONE),
                registered=st.text(),
                unit=st.text(),
                scale=st.floats(allow_nan=False),
                reason=st.none() | st.sampled_from(REASONS),
                interval=st.none() | st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)),
                n=st.none() | st.integers(0, 10**6),
                amendments=st.lists(
                    st.builds(Amendment, old=st.text(), new=st.text(), reason=st.text(), at=st.text())
                ).map(tuple),
                withdrawal=st.none() | st.builds(Withdrawal, reason=st.text(), at=st.text()),
            ),
            max_size=3,
        )
    )
    def test_every_lock_survives_the_way_through_the_file(self, entries: dict[str, LockEntry]):
        lock = Lock(study="s", predictions=entries)
        text = render_lock(lock)
        assert parse_lock(text, "") == lock
        scanned = registered(text.encode())
        assert scanned is not None
        assert scanned.digests == {name: entry.digest for name, entry in entries.items()}

    def test_writing_and_reading_a_file(self, tmp_path: Path):
        path = tmp_path / "predictions.lock"
        assert read_lock(path) is None
        write_lock(path, LOCK)
        assert read_lock(path) == LOCK
        assert [each.name for each in tmp_path.iterdir()] == ["predictions.lock"]

    def test_a_lock_can_be_read_by_everyone_that_the_umask_allows(self, tmp_path: Path):
        before = os.umask(0o022)
        try:
            write_lock(tmp_path / "predictions.lock", LOCK)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "predictions.lock").stat().st_mode) == 0o644

    def test_a_failed_write_leaves_the_old_lock(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        path = tmp_path / "predictions.lock"
        write_lock(path, LOCK)

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("pytest_prereg.registry.lock_file.os.fsync", full)
        with pytest.raises(StudyError, match="PR011: the lock can't be written: No space left on device"):
            write_lock(path, Lock(study="s"))
        assert read_lock(path) == LOCK
        assert [each.name for each in tmp_path.iterdir()] == ["predictions.lock"]

    def test_a_linked_lock_stays_a_link(self, tmp_path: Path):
        (tmp_path / "link.lock").symlink_to(tmp_path / "real.lock")
        write_lock(tmp_path / "link.lock", LOCK)
        assert (tmp_path / "link.lock").is_symlink()
        assert read_lock(tmp_path / "real.lock") == LOCK


class TestUnreadable:
    def test_conflict_markers_name_the_merge_driver(self):
        text = TEXT.replace(f'digest = "{ONE}"\n', f'<<<<<<< HEAD\ndigest = "{ONE}"\n=======\n>>>>>>> x\n', 1)
        (message,) = told(text)
        line = text[: text.index("<<<")].count("\n") + 1
        assert message.startswith(f"predictions.lock:{line}: PR010: merge-conflict marker ")
        assert "pytest-prereg init --merge-driver && git checkout -m -- predictions.lock" in message

    def test_an_id_that_is_there_twice(self):
        text = TEXT.replace("[predictions.b]", "[predictions.a]")
        line = text[: text.rindex("[predictions.a]")].count("\n") + 1
        (message,) = told(text)
        assert message.startswith(f"predictions.lock:{line}: PR002: ")
        assert '"a"' in message

    def test_an_unknown_version(self):
        (message,) = told(TEXT.replace("version = 1", "version = 2"))
        assert message.startswith(
            'predictions.lock:2: PR011: unreadable lock: it is in version "2" of the format'
        )

    def test_unknown_keys_are_all_told_with_the_nearest_valid_one(self):
        text = render_lock(Lock(study="s", predictions={"a": ENTRY, "b": ENTRY})).replace("unit =", "unti =")
        text = text.replace("version =", "versoin =")
        messages = told(text)
        assert [message.partition(": PR011: ")[0] for message in messages] == [
            "predictions.lock:2",
            "predictions.lock:10",
            "predictions.lock:17",
        ]
        assert 'prediction "a": unknown key "unti"; did you mean "unit"?' in messages[1]

    @pytest.mark.parametrize(
        ("old", "new", "line", "message"),
        [
            ("= ", "", 2, "not valid TOML"),
            ('study = "s"', "study = 1", 3, '"study": expected `str`'),
            ('study = "s"\n', "", 1, "missing required field `study`"),
            (ONE, "sha256:1", 6, 'prediction "a": "digest": expected `str` matching'),
            ('unit = "s"\n', "", 5, 'prediction "a": object missing required field `unit`'),
            ("[predictions.a]", "[predictions]\na = 1\n[x]", 3, "unknown key"),
        ],
    )
    def test_whatever_is_wrong_has_a_line(self, old: str, new: str, line: int, message: str):
        text = render_lock(Lock(study="s", predictions={"a": ENTRY})).replace(old, new, 1)
        first = told(text)[0]
        assert first.startswith("predictions.lock:")
        assert message in first
        if message != "unknown key":
            assert first.startswith(f"predictions.lock:{line}: PR011: unreadable lock: ")
            assert "git checkout HEAD -- predictions.lock" in first

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                'verdict = "inconclusive"',
                r'verdict = "\u001b]0;x\u0007"',
                r'"\x1b]0;x\x07" is none of "supported", ',
            ),
            ('reason = "straddles"', 'reason = "so"', '"so" is none of "integrity", '),
            ("[predictions.a]", '[predictions."a; touch x"]', '"a; touch x" is no id of a prediction'),
            ("[predictions.a]", r'[predictions."a\n"]', r'"a\n" is no id of a prediction'),
            ("estimate = ", "estimate = nan # ", '"estimate": nan is no number'),
            ("interval = [\n    0.9", "interval = [\n    nan", '"interval": nan is no number'),
            ("[predictions.a]", '[predictions."a[b=c d]"]', '"a[b=c d]" is no id of a prediction'),
        ],
    )
    def test_what_is_read_aloud_is_one_of_a_few_words(self, old: str, new: str, message: str):
        """Also where no verdict looks at it: it is shown in terminals and on pages, and typed again."""
        plain = msgspec.structs.replace(JUDGED, amendments=(), withdrawal=None)
        text = render_lock(Lock(study="s", predictions={"a": plain}))
        line = text[: text.index(old)].count("\n") + 1
        (told_of,) = told(text.replace(old, new, 1))
        assert told_of.startswith(f"predictions.lock:{line}: PR011: unreadable lock: ")
        assert message in told_of

    def test_codes_are_codes(self):
        one = Acknowledgement(code="PR2\x1b01", id="a", reason="seen")
        (told_of,) = told(render_lock(Lock(study="s", acknowledged=(one,))))
        assert '"acknowledged[0].code": expected `str` matching regex' in told_of

    def test_the_words_are_those_of_the_judge(self):
        assert (*Verdict,) == VERDICTS
        assert (*Reason,) == REASONS

    @given(st.binary(max_size=40), st.integers(0, len(TEXT)))
    def test_no_damage_ends_in_a_traceback(self, noise: bytes, place: int):
        damaged = TEXT.encode()[:place] + noise + TEXT.encode()[place + len(noise) :]
        with contextlib.suppress(StudyError):
            parse_lock(damaged.decode("utf-8", "replace"), "predictions.lock")

    def test_a_path_is_shown_from_where_one_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "study").mkdir()
        (tmp_path / "study/predictions.lock").write_text("x")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(StudyError, match=r"^study/predictions.lock:1: PR011: "):
            read_lock(tmp_path / "study/predictions.lock")

    def test_bytes_that_are_no_text(self, tmp_path: Path):
        (tmp_path / "predictions.lock").write_bytes(b"\xff")
        with pytest.raises(StudyError, match="PR011: unreadable lock: can't be read: it is not UTF-8 text"):
            read_lock(tmp_path / "predictions.lock")

    def test_a_folder_in_its_place(self, tmp_path: Path):
        (tmp_path / "predictions.lock").mkdir()
        with pytest.raises(StudyError, match="PR011: unreadable lock: can't be read: it is a folder"):
            read_lock(tmp_path / "predictions.lock")


LINES = f'claim = "{ONE}"\nregistered = "2026-01-02T03:04:05Z"\nunit = "s"'
REST = LINES.replace("\n", ", ")


class TestRegistered:
    """The quick look at an old lock sees what a full reading sees."""

    @pytest.mark.parametrize(
        "text",
        [
            TEXT,
            TEXT.replace("\n", "\r\n"),
            TEXT.replace("[predictions.a]", "[ predictions.a ]"),
            TEXT.replace("[predictions.a]", "[predictions.a] # why"),
            TEXT.replace("[predictions.a]", "[predictions.'a']"),
            TEXT.replace("[predictions.a]\n", "[predictions.a]\n\n"),
            TEXT.replace('reason = "gone"', f'reason = """\n[predictions.z]\ndigest = "{ONE}"\n"""'),
            TEXT.replace("[predictions.b]", '[predictions."\\u0062"]'),
            TEXT.replace('study = "s"', 'study = "\\u0073"'),
            TEXT.replace('study = "s"', '"\\u0073tudy" = "s"'),
            f'version = 1\nstudy = "s"\n[predictions]\na = {{ digest = "{ONE}", {REST} }}\n',
            f'study = "s"\n[predictions.a]\n  digest = "{ONE}"\n  {LINES}\n[predictions.b]\ndigest = "{TWO}"\n{LINES}\n',
            f"\ufeff{TEXT}",
            '\ufeffstudy = "s"\n',
            'version = 1\nstudy = "s"\n',
        ],
    )
    def test_in_whatever_form_it_is_written(self, text: str):
        table = tomllib.loads(text.removeprefix("\ufeff"))
        entries = {name: entry["digest"] for name, entry in table.get("predictions", {}).items()}
        found = registered(text.encode())
        assert found is not None
        assert (found.study, found.digests) == ("s", entries)

    @pytest.mark.parametrize(
        "data",
        [b"", b"\xff", b"[[package]]\nname = 'x'\n", b"study = 1\n", b"= =", TEXT[:400].encode()[:-20]],
    )
    def test_what_is_no_lock_of_a_study(self, data: bytes):
        assert registered(data) is None

    @pytest.mark.parametrize(
        "text",
        [
            f'study = "s"\n[predictions.a]\ndigest = "{ONE}"\n',
            f'"st\\u0075dy" = "s"\n[predictions.a]\ndigest = "{ONE}"\n',
            TEXT.replace("version = 1", "version = 2"),
            TEXT.replace("[predictions.a]", "[predictions.a]\nfor = 1"),
            TEXT.replace("[predictions.a]", "<<<<<<< ours\n[predictions.a]"),
        ],
    )
    def test_what_reading_it_refuses_registers_nothing(self, text: str):
        with pytest.raises(StudyError):
            parse_lock(text, "")
        assert registered(text.encode()) is None


class TestRegistering:
    def test_a_first_registration(self):
        plan = plan_registration(study(), None, at="2026-01-02T03:04:05Z")
        assert list(plan.new) == ["p", "q"]
        entry = plan.new["p"]
        assert (entry.unit, entry.scale, entry.registered) == ("s", 0.001, "2026-01-02T03:04:05Z")
        assert entry.experiment is None
        assert (plan.unchanged, plan.changed, plan.removed) == ((), {}, ())

    def test_the_time_of_registration_is_now_unless_given(self):
        assert plan_registration(study(), None).new["p"].registered.endswith("Z")

    def test_registering_again_changes_nothing(self):
        plan = plan_registration(study(), locked())
        assert (plan.new, plan.unchanged, plan.changed) == ({}, ("p", "q"), {})
        assert register(study(), locked(), plan) == locked()

    def test_what_is_new_is_added_and_the_rest_left_as_it_is(self):
        first = locked(STUDY.partition("[predictions.q]")[0])
        plan = plan_registration(study(), first, at="2027")
        assert (list(plan.new), plan.unchanged) == (["q"], ("p",))
        whole = register(study(), first, plan)
        assert whole.predictions["p"] == first.predictions["p"]
        assert whole.predictions["q"].registered == "2027"

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("<= 1 s", "<= 1.1 s", "is no longer what was registered"),
            ("It is quick.", "It is fast.", "no longer claims it in the words that were registered"),
        ],
    )
    def test_what_changed_is_told_and_not_overwritten(self, old: str, new: str, message: str):
        changed = study(STUDY.replace(old, new))
        plan = plan_registration(changed, locked())
        (problem,) = plan.problems
        assert str(problem).startswith(f'predictions.toml:9: PR104: "p" {message}')
        assert "pytest-prereg amend p --reason" in str(problem)
        assert (list(plan.changed), plan.unchanged) == (["p"], ("q",))
        assert register(changed, locked(), plan) == locked()

    def test_what_is_gone_is_told_unless_it_was_withdrawn(self):
        shorter = study(STUDY.partition("[predictions.q]")[0])
        lock = locked()
        assert plan_registration(shorter, lock).removed == ("q",)
        gone = msgspec.structs.replace(lock.predictions["q"], withdrawal=Withdrawal(reason="x", at="y"))
        lock.predictions["q"] = gone
        assert plan_registration(shorter, lock).removed == ()
        assert plan_registration(study(), lock).withdrawn == ("q",)

    def test_the_lock_of_another_study_is_refused(self):
        with pytest.raises(StudyError, match='PR011: it registers study "s", and this is study "other"'):
            plan_registration(study(STUDY.replace('id = "s"', 'id = "other"')), locked())

    def test_units_that_do_not_agree_are_all_told(self):
        text = STUDY.replace('quantity = "t"', 'quantity = "t + u"').replace('"t / u"', '"t - u"')
        with pytest.raises(StudyError) as caught:
            plan_registration(study(text), None)
        assert [problem.code for problem in caught.value.problems] == ["PR021", "PR021"]
        assert [problem.line for problem in caught.value.problems] == [9, 16]


class TestSource:
    """An experiment whose code changed after it was registered."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "experiments").mkdir()
        self.write(tmp_path, "repeat.record('t', 1)")
        return tmp_path

    def write(self, folder: Path, body: str) -> None:
        (folder / "experiments/step.py").write_text(
            "from pytest_prereg import experiment\n\n\n"
            f"@experiment(metrics={{'t': 's'}})\ndef step(repeat):\n    {body}\n"
        )

    def load(self, folder: Path) -> Study:
        text = STUDY.replace('metrics = { t = "ms", u = "s" }', 'fixture = "step"')
        return study(text.partition("[predictions.q]")[0], folder)

    def test_it_is_told(self, folder: Path):
        before = self.load(folder)
        lock = register(before, None, plan_registration(before, None))
        self.write(folder, "repeat.record('t', 2)")
        (problem,) = plan_registration(self.load(folder), lock).problems
        assert problem.code == "PR103"
        assert 'experiment "e" changed' in problem.message

    def test_a_decided_claim_does_not_mind(self, folder: Path):
        before = self.load(folder)
        lock = register(before, None, plan_registration(before, None))
        lock.predictions["p"] = msgspec.structs.replace(lock.predictions["p"], verdict="refuted")
        self.write(folder, "repeat.record('t', 2)")
        assert plan_registration(self.load(folder), lock).unchanged == ("p",)

    def test_an_amendment_takes_the_new_code(self, folder: Path):
        before = self.load(folder)
        lock = register(before, None, plan_registration(before, None))
        self.write(folder, "repeat.record('t', 2)")
        after = self.load(folder)
        amended = amend(lock, after, ["p"], "a bug", at="2027")
        (amendment,) = amended.predictions["p"].amendments
        assert (amendment.key, amendment.old) == ("experiment", lock.predictions["p"].experiment)
        assert amended.predictions["p"].experiment == amendment.new
        assert plan_registration(after, amended).unchanged == ("p",)


class TestAmending:
    def test_the_change_is_entered_with_its_reason(self):
        changed = study(STUDY.replace("<= 1 s", "<= 1.1 s"))
        lock = locked()
        amended = amend(lock, changed, ["p"], "a typing error", at="2027")
        entry = amended.predictions["p"]
        assert entry.amendments == (
            Amendment(old=lock.predictions["p"].digest, new=entry.digest, reason="a typing error", at="2027"),
        )
        assert entry.registered == "2026"
        assert plan_registration(changed, amended).unchanged == ("p", "q")
        assert amended.predictions["q"] == lock.predictions["q"]

    def test_a_verdict_on_what_was_claimed_before_stays_in_the_amendment_alone(self):
        lock = locked()
        lock.predictions["p"] = msgspec.structs.replace(lock.predictions["p"], verdict="refuted", n=7)
        entry = amend(lock, study(STUDY.replace("<= 1 s", "<= 1.1 s")), ["p"], "x").predictions["p"]
        assert (entry.verdict, entry.n, entry.amendments[0].verdict) == (None, None, "refuted")

    def test_new_words_keep_the_verdict_and_the_digest(self):
        lock = locked()
        lock.predictions["p"] = msgspec.structs.replace(lock.predictions["p"], verdict="refuted")
        entry = amend(lock, study(STUDY.replace("It is quick.", "It is fast.")), ["p"], "x").predictions["p"]
        assert (entry.verdict, entry.digest) == ("refuted", lock.predictions["p"].digest)
        assert [amendment.key for amendment in entry.amendments] == ["claim"]

    def test_a_new_unit_comes_with_the_amendment(self):
        text = STUDY.replace("<= 1 s", "<= 1000 ms").replace("> 2 s", "> 2000 ms")
        entry = amend(locked(), study(text), ["p"], "x").predictions["p"]
        assert (entry.unit, entry.scale) == ("ms", 1.0)

    def test_amendments_add_up_and_survive_the_file(self):
        lock = locked()
        for bound in ("1.1", "1.2"):
            lock = amend(lock, study(STUDY.replace("<= 1 s", f"<= {bound} s")), ["p"], bound)
        first, second = parse_lock(render_lock(lock), "").predictions["p"].amendments
        assert first.new == second.old
        assert (first.reason, second.reason) == ("1.1", "1.2")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("p", 'PR105: "p" is what was registered'),
            ("q", 'PR007: "q" is withdrawn'),
        ],
    )
    def test_what_can_not_be_amended(self, name: str, message: str):
        lock = locked()
        withdrawal = Withdrawal(reason="x", at="y")
        lock.predictions["q"] = msgspec.structs.replace(lock.predictions["q"], withdrawal=withdrawal)
        with pytest.raises(StudyError, match=message):
            amend(lock, study(), [name], "x")

    def test_an_id_that_nothing_has_is_a_slip_of_who_typed_it(self):
        with pytest.raises(UsageError, match='PR007: there is no prediction "r"; there are: "p" and "q"'):
            amend(locked(), study(), ["p", "r"], "x")

    def test_what_is_not_registered_yet(self):
        with pytest.raises(StudyError, match='PR007: "q" is not registered yet'):
            amend(locked(STUDY.partition("[predictions.q]")[0]), study(), ["q"], "x")
