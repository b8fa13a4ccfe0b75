"""A session names what was there before it: what vanishes or changes later is noticed."""

from __future__ import annotations

import hashlib

import pytest
from evidence_samples import attempt, experiment, study, write_session_file

from pytest_prereg.evidence.sessions import check_links, known_digests, read_session, read_study_evidence


@pytest.fixture
def folder(tmp_path):
    """Two sessions; the second knows the first."""
    first = write_session_file(tmp_path, "a", *attempt(1), footed=False)
    write_session_file(tmp_path, "b", *attempt(2), known=known_digests([read_session(first)]))
    return tmp_path


def problems_of(folder):
    return check_links([read_session(path) for path in sorted(folder.glob("*/*.jsonl"))])


def test_what_is_unchanged_is_no_problem(folder):
    assert problems_of(folder) == []


def test_the_digest_is_over_the_whole_lines_of_the_file(folder):
    path = folder / "gate-a" / "a.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"fini')

    assert known_digests([read_session(path)]) == {
        "gate-a/a.jsonl": f"sha256:{hashlib.sha256(whole).hexdigest()}"
    }


def test_a_torn_end_that_came_or_went_is_no_problem(folder):
    with (folder / "gate-a" / "a.jsonl").open("ab") as stream:
        stream.write(b'{"type":"fini')

    assert problems_of(folder) == []


def test_a_file_that_has_grown_since_is_no_problem(folder):
    """Another experiment's session was still running when this one began."""
    path = folder / "gate-a" / "a.jsonl"
    write_session_file(folder, "a", *attempt(1), *attempt(2))

    assert path.read_bytes().count(b"\n") == 6
    assert problems_of(folder) == []


def test_a_file_that_is_gone_is_named_with_its_witness(folder):
    (folder / "gate-a" / "a.jsonl").unlink()

    (problem,) = problems_of(folder)

    assert problem.code == "PR207"
    assert problem.message == (
        'evidence "gate-a/a.jsonl" is gone; "gate-a/b.jsonl" was written when it was there'
    )


@pytest.mark.parametrize(
    "change", [lambda data: data.replace(b"1.0", b"2.0"), lambda data: data[:-60], lambda _: b""]
)
def test_a_file_without_a_footer_that_was_changed_is_named(folder, change):
    path = folder / "gate-a" / "a.jsonl"
    path.write_bytes(change(path.read_bytes()))

    (problem,) = problems_of(folder)

    assert 'evidence "gate-a/a.jsonl" is no longer what it was' in problem.message


def test_each_missing_file_is_told_once(folder):
    known = known_digests([read_session(path) for path in sorted(folder.glob("*/*.jsonl"))])
    write_session_file(folder, "c", known=known)
    (folder / "gate-a" / "a.jsonl").unlink()

    assert len(problems_of(folder)) == 1


def test_files_of_other_experiments_are_known_too(tmp_path):
    one = study(tmp_path, experiment(), experiment(name="barrier"))
    path = write_session_file(one.evidence_folder, "a", experiment="barrier")
    files = [file for group in read_study_evidence(one).values() for file in group]
    write_session_file(one.evidence_folder, "b", known=known_digests(files))
    path.unlink()

    files = [file for group in read_study_evidence(one).values() for file in group]

    assert len(check_links(files)) == 1
