"""What headers say of the files of an import: one, several, or what earlier releases wrote."""

from __future__ import annotations

import pytest
from evidence_samples import header

from pytest_prereg.evidence.file_origins import blob_of, digests_of, origins_of

ONE = {"name": "a.csv", "digest": "sha256:aa", "blob": "a" * 40}
OTHER = {"name": "b.csv", "digest": "sha256:bb", "blob": "b" * 64}


@pytest.mark.parametrize(
    ("imported", "origins"),
    [(None, []), ({}, []), (ONE, [ONE]), ({"files": [ONE, OTHER], "arm": "new"}, [ONE, OTHER])],
)
def test_each_file_has_its_entry(imported, origins):
    of = header(imported=imported)

    assert origins_of(of) == origins
    assert digests_of(of) == {one["digest"] for one in origins}
    assert [blob_of(one) for one in origins_of(of)] == [one["blob"] for one in origins]


def test_no_header_has_none():
    assert origins_of(None) == []
    assert digests_of(None) == frozenset()


@pytest.mark.parametrize("wrong", [None, 7, "", "xyz", ["a" * 40], "a" * 41])
def test_what_somebody_wrote_into_a_header_is_no_name_of_a_file(wrong):
    of = header(imported={"files": ["x", {"blob": wrong, "digest": 7}]})

    assert [blob_of(one) for one in origins_of(of)] == [None]
    assert digests_of(of) == frozenset()
