"""A session names what was there before it: what vanishes or changes later is noticed."""

from __future__ import annotations

import hashlib

import pytest
from evidence_samples import attempt, experiment, study, write_session_file

from pytest_prereg.evidence.lines import encode
from pytest_prereg.evidence.sessions import check_links, known_digests, read_session, read_study_evidence


@pytest.fixture
def folder(tmp_path):
    """Two sessions; the second knows the first."""
    first = write_session_file(tmp_path, "a", *attempt(1), footed=False)
    write_session_file(tmp_path, "b", *attempt(2), known=known_digests([read_session(first)]))
    return tmp_path


def sessions_of(folder):
    return [read_session(path) for path in sorted(folder.glob("*/*.jsonl"))]


def problems_of(folder):
    return check_links(sessions_of(folder))


def add(folder, name, *lines, **changes):
    """A session that knows what is there."""
    return write_session_file(folder, name, *lines, known=known_digests(sessions_of(folder)), **changes)


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


def test_a_file_of_another_experiment_that_has_grown_since_is_no_problem(tmp_path):
    """Its session was still running when this one began."""
    path = write_session_file(tmp_path, "a", *attempt(1), footed=False, experiment="barrier")
    add(tmp_path, "b")
    with path.open("ab") as stream:
        stream.writelines(map(encode, attempt(2)))

    assert path.read_bytes().count(b"\n") == 5
    assert problems_of(tmp_path) == []


def test_a_file_that_has_grown_since_a_later_session_of_its_experiment_began_is_named(folder):
    """No two run at once: somebody gave a repeat that was lost the value that pleased."""
    with (folder / "gate-a" / "a.jsonl").open("ab") as stream:
        stream.writelines(map(encode, attempt(2)))

    (problem,) = problems_of(folder)

    assert problem.message == (
        'evidence "gate-a/a.jsonl" has grown since its session had ended; "gate-a/b.jsonl" was written when '
        "it was there"
    )


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
    known = {file.name: file.digest for file in sessions_of(folder)}
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


class TestChain:
    """A session names the last file of each experiment, which names the one before it."""

    def test_what_the_last_file_of_an_experiment_names_is_not_named_again(self, folder):
        assert list(known_digests(sessions_of(folder))) == ["gate-a/b.jsonl"]

    def test_what_has_changed_since_it_was_named_is_named_again(self, folder):
        write_session_file(folder, "a", *attempt(1), *attempt(2))

        assert list(known_digests(sessions_of(folder))) == ["gate-a/a.jsonl", "gate-a/b.jsonl"]

    def test_what_another_experiment_names_is_named_again(self, tmp_path):
        add(tmp_path, "a")
        add(tmp_path, "b", experiment="barrier")

        assert list(known_digests(sessions_of(tmp_path))) == ["barrier/b.jsonl", "gate-a/a.jsonl"]

    def test_no_file_of_another_experiment_can_be_given_up_to_hide_a_loss(self, tmp_path):
        doomed = [add(tmp_path, "a"), add(tmp_path, "b", experiment="barrier")]
        add(tmp_path, "c", experiment="third")
        for path in doomed:
            path.unlink()

        assert {problem.path.split("/")[-2] for problem in problems_of(tmp_path)} == {"gate-a", "barrier"}

    @pytest.mark.parametrize("gone", [[0], [1], [0, 1], [1, 2], [0, 2], [0, 1, 2]])
    def test_any_that_are_removed_before_the_last_are_noticed(self, tmp_path, gone):
        paths = [add(tmp_path, name, *attempt(1)) for name in "abcd"]
        for index in gone:
            paths[index].unlink()

        problems = problems_of(tmp_path)

        assert problems
        assert {problem.path.split("/")[-1] for problem in problems} <= {paths[index].name for index in gone}

    def test_headers_grow_with_the_number_of_experiments_only(self, tmp_path):
        for index in range(30):
            add(tmp_path, f"{index:02}", experiment=f"e{index % 3}")

        known = [len(file.header.known) for file in sessions_of(tmp_path)]

        assert max(known) == 3
