"""Anchors, from a real authority: ``lock --anchor`` keeps what holds, and ``audit`` says what each proves."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from audited_study import STUDY
from small_study import Project, new_repository

from pytest_prereg.audit.stamping import anchoring, certificate_order

pytest.importorskip("rfc3161_client")
if shutil.which("openssl") is None:
    pytest.skip("there is no openssl to be an authority", allow_module_level=True)

from cryptography.x509.oid import ExtendedKeyUsageOID
from time_stamp_authority import TODAY, WEEK, Authority, openssl, serving, statement_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stamps") / "authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("strange") / "authority", "Stamps of Nobody")


@pytest.fixture(scope="module")
def address(authority: Authority) -> Iterator[str]:
    with serving(authority.answer) as url:
        yield url


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A registered claim of which nothing is measured."""
    made = new_repository(tmp_path / "project")
    made.write("predictions.toml", STUDY)
    made.done("lock")
    made.commit("Register")
    return made


def anchors(project: Project) -> list[Path]:
    return sorted(project.path.glob("predictions.anchors/*"))


def put(project: Project, answer: bytes, name: str = "any.tsr") -> None:
    """Lays an answer beside the lock, as if it had been kept."""
    (project.path / "predictions.anchors").mkdir(exist_ok=True)
    (project.path / "predictions.anchors" / name).write_bytes(answer)


def lock_of(project: Project) -> bytes:
    return (project.path / "predictions.lock").read_bytes()


class Audited(NamedTuple):
    """What an audit says of anchors alone, and in whole."""

    found: list[dict[str, Any]]
    whole: dict[str, Any]

    @property
    def levels(self) -> list[str]:
        return [one["level"] for one in self.found]

    @property
    def message(self) -> str:
        (one,) = self.found
        return str(one["message"])


def audit(project: Project, authority: Authority | None = None) -> Audited:
    options = [f"--anchor-roots={authority.roots}"] if authority else []
    result = project.prereg("audit", "--format", "json", *options)
    whole = json.loads(result.stdout)
    assert result.exit_code == whole["exit"]
    return Audited([one for one in whole["findings"] if one["code"] == "PR153"], whole)


class TestLocking:
    def test_an_anchor_is_kept_beside_the_lock_and_openssl_agrees(
        self, project: Project, authority: Authority, address: str
    ):
        output = project.done("lock", "--anchor", address, "--anchor-roots", str(authority.roots))
        (path,) = anchors(project)
        assert 'says "Stamps of Test"' in output
        assert f"kept in predictions.anchors/{path.name}" in output
        assert "next:  git add predictions.anchors && git commit -m 'Anchor predictions.lock'" in output
        lock = str(project.path / "predictions.lock")
        said = openssl("ts", "-verify", "-in", str(path), "-data", lock, "-CAfile", str(authority.roots))
        assert "Verification: OK" in said

    def test_several_are_kept_side_by_side(self, project: Project, authority: Authority, address: str):
        for _ in range(2):
            project.done("lock", "--anchor", address, "--anchor-roots", str(authority.roots))
        assert len(anchors(project)) == 2

    @pytest.mark.parametrize("change", ["another lock", "no lock", "no repository"])
    def test_only_a_committed_lock_is_anchored(
        self, change: str, project: Project, authority: Authority, address: str
    ):
        if change == "another lock":
            project.edit("predictions.lock", "# Written by", "# Rewritten by")
        elif change == "no lock":
            (project.path / "predictions.lock").unlink()
        else:
            shutil.rmtree(project.path / ".git")
        result = project.prereg("lock", "--anchor", address, "--anchor-roots", str(authority.roots))
        assert result.exit_code == 1
        assert "predictions.lock: PR107: the lock is not" in result.stderr
        assert "git add predictions.lock" in result.stderr
        assert not anchors(project)

    @pytest.mark.parametrize(
        "options", [["--check", "--anchor", "http://x.invalid"], ["--anchor-roots", "x"]]
    )
    def test_options_that_make_no_sense_together(self, project: Project, options: list[str]):
        assert project.prereg("lock", *options).exit_code == 2

    def test_roots_that_are_none(self, project: Project, address: str):
        result = project.prereg("lock", "--anchor", address, "--anchor-roots", "predictions.toml")
        assert (result.exit_code, result.stderr.strip()) == (
            1,
            "predictions.toml: PR153: there is no certificate in PEM form here",
        )

    def test_roots_that_are_not_there(self, project: Project, address: str):
        result = project.prereg("lock", "--anchor", address, "--anchor-roots", "none.pem")
        assert "none.pem: PR153: the certificates can't be read: No such file or directory" in result.stderr

    def test_without_the_library_it_says_what_to_install(
        self, project: Project, address: str, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(sys.modules, "rfc3161_client", None)
        result = project.prereg("lock", "--anchor", address)
        assert result.exit_code == 1
        assert result.stderr.splitlines() == [
            "PR153: time-stamps need a library that is not installed",
            "    pip install 'pytest-prereg[anchor]'",
        ]

    def test_a_library_that_takes_a_token_at_its_word_is_not_used(
        self, project: Project, address: str, monkeypatch: pytest.MonkeyPatch
    ):
        """Up to 1.0.8 a root that a token brought along was trusted."""
        monkeypatch.setattr("pytest_prereg.audit.stamping.time_stamps.version", lambda _: "1.0.8")
        result = project.prereg("lock", "--anchor", address)
        assert result.exit_code == 1
        assert result.stderr.startswith("PR153: rfc3161-client 1.0.8 takes a stranger's signature for good")

    def test_certificates_may_come_in_any_order(self, project: Project, authority: Authority):
        for backwards in (False, True):

            def answer(question: bytes, *, backwards: bool = backwards) -> bytes:
                return with_certificates_sorted(authority.answer(question), backwards=backwards)

            with serving(answer) as url:
                project.done("lock", "--anchor", url, "--anchor-roots", str(authority.roots))
        assert audit(project, authority).levels == ["notice", "notice"]


def with_certificates_sorted(answer: bytes, *, backwards: bool) -> bytes:
    begin, end = certificate_order._certificates(answer)
    places = [*certificate_order._parts(answer, begin, end), end]
    several = [answer[start:stop] for start, stop in pairwise(places)]
    assert len(several) == 2
    return answer[:begin] + b"".join(sorted(several, reverse=backwards)) + answer[end:]


def test_what_is_no_answer_is_left_as_it_is(authority: Authority):
    answer = authority.stamp(b"x", "-sha256")
    for place in range(0, len(answer), 5):
        cut = answer[:place]
        assert certificate_order.in_order(cut) == cut
        damaged = answer[:place] + bytes([answer[place] ^ 0x7F]) + answer[place + 1 :]
        assert len(certificate_order.in_order(damaged)) == len(answer)


def refused(project: Project, url: str, authority: Authority) -> str:
    """What is said of an authority of whose answer nothing is kept."""
    result = project.prereg("lock", "--anchor", url, "--anchor-roots", str(authority.roots))
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith(f'PR153: no anchor from "{url.partition("?")[0]}": '), result.stderr
    assert not anchors(project)
    return result.stderr


class TestAnswersThatAreNotKept:
    def test_over_something_else(self, project: Project, authority: Authority):
        with serving(lambda _: authority.stamp(b"something else", "-sha256")) as url:
            assert "its time-stamp is over something else" in refused(project, url, authority)

    def test_over_another_kind_of_digest(self, project: Project, authority: Authority):
        with serving(lambda _: authority.stamp(lock_of(project), "-sha1")) as url:
            assert "not over a SHA-256" in refused(project, url, authority)

    @pytest.mark.parametrize("options", [["-sha256"], ["-sha256", "-no_nonce"]])
    def test_an_older_answer_over_the_same_lock(
        self, project: Project, authority: Authority, options: list[str]
    ):
        with serving(lambda _: authority.stamp(lock_of(project), *options)) as url:
            assert "answers another question: the nonce differs" in refused(project, url, authority)

    def test_signed_by_somebody_else(self, project: Project, authority: Authority, stranger: Authority):
        with serving(stranger.answer) as url:
            said = refused(project, url, authority)
        assert 'says "Stamps of Nobody", and that can\'t be verified: self-signed certificate' in said
        assert "--anchor-roots FILE" in said

    def test_signed_by_what_the_system_does_not_know(self, project: Project, address: str):
        result = project.prereg("lock", "--anchor", address)
        assert "can't be verified: self-signed certificate" in result.stderr
        assert not anchors(project)

    def test_signed_when_the_certificate_had_expired(self, project: Project, tmp_path: Path):
        late = Authority(tmp_path / "late", until=TODAY - WEEK)
        with serving(late.answer) as url:
            assert "certificate has expired" in refused(project, url, late)

    def test_signed_by_a_certificate_for_something_else(
        self, project: Project, authority: Authority, tmp_path: Path
    ):
        server = Authority(tmp_path / "server", purpose=ExtendedKeyUsageOID.SERVER_AUTH)
        with serving(lambda ask: server.signed(statement_of(authority.answer(ask), tmp_path))) as url:
            assert "can't be verified" in refused(project, url, server)

    def test_a_forged_certificate_beside_the_one_that_signed(
        self, project: Project, authority: Authority, tmp_path: Path
    ):
        """Nothing says which of the two it is, and the better name is on the one that nobody signed."""
        twin = authority.forged_twin()

        def answer(question: bytes) -> bytes:
            return authority.signed(statement_of(authority.answer(question), tmp_path), twin)

        with serving(answer) as url:
            assert "2 of its certificates can be the one that signed it" in refused(project, url, authority)

    @pytest.mark.parametrize("place", [-5, 150])
    def test_tampered_with(self, project: Project, authority: Authority, place: int):
        def tampered(question: bytes) -> bytes:
            answer = bytearray(authority.answer(question))
            answer[place] ^= 1
            return bytes(answer)

        with serving(tampered) as url:
            refused(project, url, authority)

    def test_not_granted(self, project: Project, authority: Authority):
        with serving(lambda _: authority.answer(b"what?")) as url:
            assert "the authority granted no time-stamp: " in refused(project, url, authority)

    @pytest.mark.parametrize("body", [b"", b"\x30\x80\x00", b"<html>busy</html>"])
    def test_no_time_stamp_at_all(self, project: Project, authority: Authority, body: bytes):
        with serving(lambda _: body) as url:
            assert "it is no RFC 3161 time-stamp" in refused(project, url, authority)

    def test_a_page_for_people(self, project: Project, authority: Authority):
        with serving(lambda _: b"<html>Welcome</html>", "text/html; charset=utf-8") as url:
            assert "it answered with text/html, which is no time-stamp" in refused(project, url, authority)

    def test_a_huge_one(self, project: Project, authority: Authority):
        with serving(lambda _: bytes(anchoring.LARGEST + 1)) as url:
            assert "its answer is larger than 1 MiB" in refused(project, url, authority)

    @pytest.mark.parametrize(("status", "said"), [(503, "503 Service Unavailable"), (302, "302 Found")])
    def test_a_failure(self, project: Project, authority: Authority, status: int, said: str):
        with serving(authority.answer, status=status) as url:
            assert f"it answered {said}" in refused(project, url, authority)

    def test_nobody_there(self, project: Project, authority: Authority):
        with serving(authority.answer) as url:
            pass
        assert "Connection refused" in refused(project, url, authority)

    def test_one_that_never_comes(
        self, project: Project, authority: Authority, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(anchoring, "PATIENCE", 0.1)

        def late(question: bytes) -> bytes:
            time.sleep(0.5)
            return question

        with serving(late) as url:
            assert "no answer within 0.1 s" in refused(project, url, authority)

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("ftp://example.invalid/tsr", "begins with http:// or https://"),
            ("file:///etc/hostname", "begins with http:// or https://"),
            ("http://[::1/tsr", "Invalid IPv6 URL"),
        ],
    )
    def test_what_is_no_address(self, project: Project, authority: Authority, url: str, said: str):
        assert said in refused(project, url, authority)

    def test_a_password_is_not_repeated(self, project: Project):
        result = project.prereg("lock", "--anchor", "https://me:hidden@example.invalid/tsr?key=hidden")
        assert "an address with a name or a password in it can't be asked" in result.stderr
        assert "hidden" not in result.output


class TestAuditing:
    def test_an_anchor_names_the_commit_its_time_and_who_says_so(
        self, project: Project, authority: Authority, address: str
    ):
        registered = project.git("rev-parse", "HEAD")
        before = audit(project).whole["predictions"]
        project.done("lock", "--anchor", address, "--anchor-roots", str(authority.roots))
        project.commit("Anchor")
        found = audit(project, authority)
        assert found.levels == ["notice"]
        when = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT")
        assert found.message.startswith(f"the lock of {registered[:8]} existed at {when}")
        assert found.message.endswith('Z, says "Stamps of Test"')
        assert found.found[0]["path"] == f"predictions.anchors/{anchors(project)[0].name}"
        assert (found.whole["predictions"], found.whole["exit"]) == (before, 0)

    def test_an_earlier_version_is_found_whatever_the_file_is_called(
        self, project: Project, authority: Authority
    ):
        registered = project.git("rev-parse", "HEAD")
        answer = authority.stamp(lock_of(project), "-sha256")
        project.edit("predictions.toml", "It takes less than two seconds.", "It takes two seconds at most.")
        project.done("amend", "below-two", "--reason", "Words.")
        project.commit("Amend")
        put(project, answer, "0000.tsr")
        found = audit(project, authority)
        assert found.levels == ["notice"]
        assert f"the lock of {registered[:8]} existed" in found.message

    def test_a_version_that_is_not_committed(self, project: Project, authority: Authority):
        project.edit("predictions.toml", "It takes less than two seconds.", "It takes two seconds at most.")
        project.done("amend", "below-two", "--reason", "Words.")
        put(project, authority.stamp(lock_of(project), "-sha256"))
        assert "the lock as it is on disk, not committed, existed" in audit(project, authority).message

    def test_a_certificate_that_has_expired_since_still_says_when(
        self, project: Project, authority: Authority, tmp_path: Path
    ):
        old = Authority(tmp_path / "old", until=TODAY - WEEK / 2)
        statement = statement_of(authority.stamp(lock_of(project), "-sha256"), tmp_path)
        today, then = (f"{day:%Y%m%d}".encode() for day in (dt.datetime.now(dt.UTC), TODAY - WEEK))
        assert statement.count(today) == 1
        put(project, old.signed(statement.replace(today, then)))
        assert f"existed at {TODAY - WEEK:%Y-%m-%d}" in audit(project, old).message

    def test_over_no_version_of_the_lock(self, project: Project, authority: Authority):
        put(project, authority.stamp(lock_of(project) + b"\n", "-sha256"))
        found = audit(project, authority)
        assert found.levels == ["error"]
        assert "which no commit up to HEAD has as the lock of this study" in found.message
        assert found.whole["exit"] == 1

    def test_another_study_s_lock_is_not_this_one_s(self, project: Project, authority: Authority):
        other = project.write("other.lock", 'version = 1\nstudy = "other"\n')
        project.commit("Another")
        put(project, authority.stamp(other.read_bytes(), "-sha256"))
        assert audit(project, authority).levels == ["error"]

    def test_a_shallow_clone_can_not_tell(self, project: Project, authority: Authority, tmp_path: Path):
        answer = authority.stamp(lock_of(project), "-sha256")
        project.edit("predictions.toml", "It takes less than two seconds.", "It takes two seconds at most.")
        project.done("amend", "below-two", "--reason", "Words.")
        put(project, answer)
        project.commit("Amend and anchor")
        project.git("clone", "--quiet", "--depth=1", f"file://{project.path}", str(tmp_path / "shallow"))
        found = audit(Project(tmp_path / "shallow"), authority)
        assert "no version of the lock that is known here" in found.message
        assert found.whole["exit"] == 4

    @pytest.mark.parametrize("name", ["stranger", "nobody"])
    def test_nobody_trusted_signed_it(
        self, name: str, project: Project, authority: Authority, stranger: Authority
    ):
        put(project, authority.stamp(lock_of(project), "-sha256"))
        found = audit(project, stranger if name == "stranger" else None)
        assert found.levels == ["error"]
        assert found.message.startswith(
            'this anchor proves nothing: it says "Stamps of Test", and that can\'t be verified: '
        )

    def test_damaged_anchors_are_told_beside_a_sound_one(self, project: Project, authority: Authority):
        answer = authority.stamp(lock_of(project), "-sha256")
        put(project, answer, "a.tsr")
        put(project, answer[:-1] + bytes([answer[-1] ^ 1]), "b.tsr")
        put(project, answer[:-1], "c.tsr")
        put(project, b"", "d.tsr")
        found = {one["path"][-5:]: one["level"] for one in audit(project, authority).found}
        assert found == {"a.tsr": "notice", "b.tsr": "error", "c.tsr": "error", "d.tsr": "error"}

    def test_without_the_library_it_can_not_tell(
        self, project: Project, authority: Authority, monkeypatch: pytest.MonkeyPatch
    ):
        put(project, authority.stamp(lock_of(project), "-sha256"))
        monkeypatch.setitem(sys.modules, "rfc3161_client", None)
        found = audit(project, authority)
        assert found.message == (
            "an anchor could not be verified: time-stamps need a library that is not installed"
        )
        assert found.whole["exit"] == 4

    def test_a_study_without_anchors_needs_no_library(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(sys.modules, "rfc3161_client", None)
        assert not audit(project).found
