"""A CSV or JSON file that holds no rows says so in one sentence, and what rows look like."""

from __future__ import annotations

import pytest
from evidence_samples import experiment

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.rows import import_rows
from pytest_prereg.evidence.importers.taking import take_file

HISTOGRAMS = """\
#logging stats for session nightly
#[Histogram log format version 1.0]
"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
0.1,1.0,2.3,HISTFAAA
"""


@pytest.mark.parametrize(
    ("name", "text", "refusal"),
    [
        ("h.csv", "time,commit,load,p99\n2024,aaa,1,2\n2025,bbb,1,2\n", 'PR111: this is a history, with readings for each "commit", and holds no repeats'),
        ("h.csv", HISTOGRAMS, "PR110: this is a log of histograms, interval by interval of one run, and holds no rows"),
        ("h.csv", "# made by hand\nrepeat,metric,value\n", 'PR110: the file begins with a comment, "# made by hand", and not with the columns of rows'),
        ("h.csv", "run,t_gen\n1,2\n", 'PR111: the columns are "run" and "t_gen", and none is "repeat", "metric" or "value"'),
        ("h.json", '{"origin": {"repo": "x"}, "arms": {"base": [{"t": 1}]}}', 'PR111: this is one object with "origin" and "arms", nested, and holds no rows'),
        ("h.json", '[{"run": 1, "times": [1, 2]}, {"run": 2}]', 'PR111: this is a list of objects with "run" and "times", nested, and holds no rows'),
        ("h.json", '[{"run": 1}, {"run": 2}]', 'PR111: the columns are "run", and none is "repeat", "metric" or "value"'),
    ],
)  # fmt: skip
def test_it_is_told_what_the_file_is(tmp_path, monkeypatch, name, text, refusal):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)

    with pytest.raises(EvidenceError) as caught:
        import_rows(tmp_path / name, experiment())

    (problem,) = caught.value.problems
    first, *advice = str(problem).splitlines()
    assert first.removeprefix(f"{name}: ") == refusal
    assert "arm,repeat,metric,value,unit" in advice[0]


def test_whose_file_it_is_makes_no_difference(tmp_path):
    path = tmp_path / "nightly.json"
    path.write_text('{"arms": {"base": [1, 2]}}')

    with pytest.raises(EvidenceError, match='one object with "arms", nested, and holds no rows'):
        take_file(path, experiment())
