"""A pull request that brings evidence and keeps quiet of what that gives."""

from __future__ import annotations

import pytest
from audited_study import CLAIM, STUDY, new_study

REFUTED = STUDY.replace('"<= 2 s"', '"<= 0.1 s"').replace('">= 3 s"', '"> 0.5 s"')


@pytest.mark.parametrize(("text", "verdict"), [(STUDY, "supported"), (REFUTED, "refuted")])
def test_what_evidence_gives_is_shown_though_no_lock_records_it(tmp_path, text, verdict):
    study = new_study(tmp_path / "p", text=text)
    study.register()
    study.git("checkout", "--quiet", "-b", "pull")
    study.take_in()
    told = study.prereg("gate", "--base", "main", "--format", "markdown")
    assert told.exit_code == 0
    assert "1 measured, and not recorded" in told.output
    (row,) = (
        line for line in told.output.splitlines() if f"`{CLAIM}`" in line and "registered at the base" in line
    )
    assert verdict in row
    assert "the lock does not record it" in row
    study.record()
    assert "not recorded" not in study.prereg("gate", "--base", "main", "--format", "markdown").output
