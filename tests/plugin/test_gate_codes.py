"""The gate of a pull request, code by code: what each finds, and beside it who comes to the same end rightly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM, LINE
from forged_session import forge_header
from gated_study import EASIER, LOCK, MORE_ROWS, OPPOSITE, SLOW_ROWS, STRICTER, STRONGER, SUCCESSOR, TOML

if TYPE_CHECKING:
    from collections.abc import Callable

    from gated_study import PullRequest

    Against = Callable[[str], PullRequest]

NEXT = "below-one-and-a-half"
SEPARATE = ('id = "small"', 'id = "small"\nregistration = "separate"')


def test_a_pull_request_that_touches_nothing_of_the_study_has_nothing_to_say(against: Against):
    project = against("recorded")
    project.go_on()
    gated = project.gate()
    assert (gated.findings, gated.exit) == ([], 0)
    assert gated.prediction()["is_at_base"] is True
    assert gated.prediction()["base"] == gated.prediction()["head"]


# PR201


def test_201_a_registration_is_a_notice_with_its_commit(against: Against):
    project = against("begun")
    commit = project.register()
    gated = project.gate()
    only = gated.only("PR201")
    assert (gated.findings, gated.exit) == ([only], 0)
    assert (only["id"], only["level"], only["path"], only["line"]) == (CLAIM, "notice", TOML, LINE)
    assert (only["commit"], only["message"]) == (commit, f'"{CLAIM}" was registered in {commit[:8]}')
    assert only["about"] == project.digest().removeprefix("sha256:")[:8]
    assert gated.prediction()["registered"] == commit
    assert gated.prediction()["is_at_base"] is False


# PR202


def test_202_an_amendment_before_any_evidence_is_a_notice(against: Against):
    project = against("registered")
    old = project.digest()[7:15]
    commit = project.amend(*STRICTER)
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR202", CLAIM, "notice", LINE)], 0)
    only = gated.only("PR202")
    assert only["message"] == (
        f'the registration of "{CLAIM}" (digest {old}) was amended in {commit[:8]}: we know better now'
    )
    assert (only["commit"], only["about"]) == (commit, f"registration {old} -> {project.digest()[7:15]}")


def test_202_an_amendment_after_a_verdict_is_a_review(against: Against):
    project = against("recorded")
    commit = project.amend(*STRICTER)
    gated = project.gate()
    assert (gated.open, gated.exit) == ([("PR202", CLAIM, "review", LINE)], 1)
    only = gated.only("PR202")
    assert (
        f"was amended in {commit[:8]}, after the data (its verdict was supported): we know" in only["message"]
    )
    assert only["message"].count("we know better now") == 1


def test_202_another_claim_in_its_place_needs_nobody(against: Against):
    project = against("recorded")
    project.withdraw()
    project.add(SUCCESSOR)
    project.register()
    gated = project.gate()
    assert (gated.grave, gated.exit) == ([], 0)


# PR203


def taken_out(project: PullRequest) -> None:
    """Leaves a study of one other prediction, and a lock that never had the first."""
    text = (project.path / TOML).read_text(encoding="utf-8")
    project.write(TOML, text[: text.index("[predictions.")] + SUCCESSOR)
    (project.path / LOCK).unlink()
    project.register("Another claim")


def test_203_a_prediction_that_was_taken_out_is_an_error(against: Against):
    project = against("recorded")
    taken_out(project)
    gated = project.gate()
    assert (gated.grave, gated.exit) == ([("PR203", CLAIM, "error", None)], 1)
    only = gated.only("PR203")
    commit = project.git("rev-parse", "HEAD")
    assert (only["path"], only["commit"]) == (LOCK, commit)
    assert only["message"] == (
        f'"{CLAIM}" (registered with digest {only["about"]}, supported) was taken out of the lock in {commit[:8]}'
    )
    assert gated.prediction()["status"] == "removed"
    assert gated.prediction()["base"]["verdict"] == "supported"


def test_203_one_that_is_withdrawn_with_a_reason_is_a_notice(against: Against):
    project = against("recorded")
    commit = project.withdraw()
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR203", CLAIM, "notice", LINE)], 0)
    assert f"was withdrawn in {commit[:8]}: nobody asks any more" in gated.only("PR203")["message"]


@pytest.mark.parametrize("names", [(TOML,), (TOML, LOCK), (TOML, LOCK, "experiments")])
def test_203_a_study_that_is_gone_is_an_error(against: Against, names: tuple[str, ...]):
    project = against("recorded")
    project.git("rm", "--quiet", "-r", *names)
    project.keep("Clean up", ".")
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR203", "", "error", None)], 1)
    only = gated.only("PR203")
    assert only["message"] == 'study "small" is gone, and 1 registered prediction with it'
    assert only["path"] == TOML


def test_203_a_draft_of_which_nothing_was_registered_may_go(against: Against):
    project = against("begun")
    project.on_main(TOML, (project.path / TOML).read_text(encoding="utf-8"))
    project.git("rm", "--quiet", TOML)
    project.keep("Another time", ".")
    result = project.prereg("gate", "--base", "main")
    assert result.exit_code == 2
    assert 'PR100: study "small" is gone, and nothing of it was registered' in result.stderr


@pytest.mark.parametrize(
    ("stage", "level", "message"),
    [
        ("registered", "review", 'the study was "small", which is gone; it had nothing measured yet'),
        ("recorded", "error", 'study "small" stood here, with 1 recorded verdict and 1 session, and is gone'),
    ],
)
def test_203_a_study_that_takes_another_id_is_another_one(
    against: Against, stage: str, level: str, message: str
):
    project = against(stage)
    project.edit(TOML, 'id = "small"', 'id = "other"')
    (project.path / LOCK).unlink()
    project.register("Rename")
    gated = project.gate()
    assert (gated.open, gated.exit) == ([("PR203", "small", level, None)], 1)
    assert gated.only("PR203")["message"].startswith(message)


@pytest.mark.parametrize("folder", ["", "studies/first"])
def test_203_a_study_that_is_moved_is_the_same_one(against: Against, folder: str):
    project = against("recorded")
    (project.path / folder).mkdir(parents=True, exist_ok=True)
    names = {TOML: "moved.toml", LOCK: "moved.lock"} if not folder else {TOML: TOML, LOCK: LOCK}
    for old, new in {**names, **({"experiments": "experiments"} if folder else {})}.items():
        project.git("mv", old, f"{folder}/{new}" if folder else new)
    project.keep("Move", ".")
    for gated in (project.gate(), project.gate("--study", f"{folder}/{TOML}" if folder else "moved.toml")):
        assert (gated.findings, gated.exit) == ([], 0)
        assert gated.prediction()["is_at_base"] is True


# PR204


def test_204_a_registration_with_its_evidence_in_one_commit_is_an_error(against: Against):
    project = against("begun")
    project.lock()
    project.measure()
    commit = project.keep("Everything", TOML, LOCK, "experiments")
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR204", CLAIM, "error", LINE)], 1)
    only = gated.only("PR204")
    assert only["message"] == f'"{CLAIM}" is registered and measured in one commit, {commit[:8]}'
    assert (only["commit"], only["about"]) == (commit, project.digest()[7:15])


def test_204_in_ordered_commits_it_is_a_review(against: Against):
    project = against("begun")
    registered, measured = project.register(), project.take_in()
    project.record()
    gated = project.gate()
    assert (gated.open, gated.exit) == ([("PR204", CLAIM, "review", LINE)], 1)
    only = gated.only("PR204")
    assert only["message"] == (
        f'"{CLAIM}" is registered in {registered[:8]} and measured in {measured[:8]}, in the same pull request'
    )
    assert (only["commit"], only["about"]) == (measured, project.digest()[7:15])
    prediction = gated.prediction()
    assert (prediction["registered"], prediction["measured"]) == (registered, measured)
    text = " ".join(project.prereg("gate", "--base", "main").output.split())
    assert (
        "Merge it with its commits: a squash makes one commit of both, and the verdict counts no more."
        in text
    )


def test_204_a_tag_holds_a_registration_that_was_squashed(against: Against):
    project = against("begun")
    project.register()
    project.done("lock", "--tag")
    project.take_in()
    project.git("reset", "--quiet", "--soft", "main")
    project.git("commit", "--quiet", "--message", "Squashed")
    gated = project.gate()
    assert gated.open == [("PR204", CLAIM, "review", LINE)]
    assert gated.prediction()["order"] == "witnessed"


def test_204_in_two_pull_requests_needs_nobody(against: Against):
    project = against("begun")
    project.register()
    assert project.gate().said == []
    project.merged()
    project.take_in()
    project.record()
    gated = project.gate()
    assert (gated.findings, gated.exit) == ([], 0)
    assert gated.prediction()["base"] is None
    assert gated.prediction()["head"]["verdict"] == "supported"


def test_204_where_a_study_wants_two_pull_requests_one_is_an_error(against: Against):
    project = against("begun")
    project.edit(TOML, *SEPARATE)
    registered = project.register()
    measured = project.take_in()
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR204", CLAIM, "error", LINE + 1)], 1)
    assert gated.only("PR204")["message"] == (
        f'"{CLAIM}" is registered in {registered[:8]} and measured in {measured[:8]}, in the same pull request, '
        'and its study says registration = "separate"'
    )


def test_204_two_pull_requests_are_two_where_the_study_wants_them(against: Against):
    project = against("begun")
    project.edit(TOML, *SEPARATE)
    project.register()
    assert project.gate().said == []
    project.merged()
    project.take_in()
    assert project.gate().said == []


def test_204_the_rule_is_not_lifted_beside_what_it_forbids(against: Against):
    project = against("begun")
    project.edit(TOML, *SEPARATE)
    project.on_main(TOML, (project.path / TOML).read_text(encoding="utf-8"))
    project.edit(TOML, *SEPARATE[::-1])
    project.register()
    project.take_in()
    gated = project.gate()
    assert gated.open == [("PR204", CLAIM, "error", LINE), ("PR209", "small", "review", 1)]
    only = gated.only("PR209")
    assert only["message"] == '"small" no longer wants registrations in a pull request of their own'
    assert only["about"] == "registration: separate -> any"
    project.acknowledge("PR209", "small")
    gated = project.gate("--acknowledge", "lock")
    assert (gated.open, gated.exit) == ([("PR204", CLAIM, "error", LINE)], 1)


# PR205


def test_205_a_verdict_that_changed_is_a_review_even_if_the_lock_explains_it(against: Against):
    project = against("recorded")
    project.done("void", "rows/1", "--reason", "another machine than we thought")
    project.keep("Void", LOCK)
    commit = project.record()
    gated = project.gate()
    assert gated.open == [("PR205", CLAIM, "review", LINE), ("PR213", "rows", "review", LINE)]
    only = gated.only("PR205")
    assert only["message"].startswith(
        f'the recorded verdict of "{CLAIM}" was changed: supported -> inconclusive (what was set aside) in '
        f"{commit[:8]}"
    )
    assert (only["commit"], only["about"]) == (commit, "supported -> inconclusive")
    assert gated.prediction()["base"]["verdict"] == "supported"
    assert gated.prediction()["head"]["verdict"] == "inconclusive"


def test_205_a_series_that_decides_otherwise_is_a_review(against: Against):
    project = against("recorded")
    project.take_more(SLOW_ROWS)
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR205", CLAIM, "review", LINE)], 1)
    only = gated.only("PR205")
    assert only["message"] == f'series of "{CLAIM}" disagree: series 1 supported, series 2 refuted'
    assert only["about"] == "series 1 supported, series 2 refuted"


def test_205_a_series_that_decides_the_same_needs_nobody(against: Against):
    project = against("recorded")
    project.take_more(MORE_ROWS)
    assert project.gate().said == []


# PR207


def test_207_evidence_that_is_gone_is_an_error(against: Against):
    project = against("measured")
    name = f"rows/{project.evidence()[0].name}"
    project.git("rm", "--quiet", "-r", "experiments")
    project.keep("Clean up", ".")
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR207", "rows", "error", LINE)], 1)
    only = gated.only("PR207")
    assert (only["message"], only["about"]) == (f'evidence "{name}" was committed, and is gone', name)


def test_207_evidence_that_was_altered_is_an_error(against: Against):
    project = against("measured")
    (file,) = project.evidence()
    forge_header(file, created="2026-01-01T00:00:00Z")
    project.keep("Tidy", "experiments")
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR207", "rows", "error", LINE)], 1)
    assert gated.only("PR207")["message"] == f'evidence "rows/{file.name}" is no longer what was committed'


def test_207_evidence_that_is_called_otherwise_is_there(against: Against):
    project = against("measured")
    (file,) = project.evidence()
    project.git("mv", str(file), str(file.with_name("first.jsonl")))
    project.keep("Rename", "experiments")
    assert project.gate().grave == []


# PR208


def test_208_an_exclusion_is_a_review(against: Against):
    project = against("measured")
    project.done("exclude", "rows/1/2", "--cause", "tool", "--reason", "the disk was full")
    commit = project.keep("Exclude", LOCK)
    gated = project.gate()
    assert gated.open == [("PR208", "rows", "review", LINE)]
    only = gated.only("PR208")
    assert only["message"] == (
        f'repeat "rows/1/2" was excluded (tool) after the data in {commit[:8]}: the disk was full'
    )
    assert (only["commit"], only["about"], gated.exit) == (commit, "rows/1/2", 1)


# PR209


def test_209_what_was_made_easier_before_any_evidence_is_a_review(against: Against):
    project = against("registered")
    commit = project.amend(*EASIER)
    gated = project.gate()
    assert gated.open == [("PR209", CLAIM, "review", LINE)]
    only = gated.only("PR209")
    assert only["message"].startswith(
        f'"{CLAIM}" was changed in {commit[:8]}: predicts from "≤ 2 s" to "≤ 2.5 s": easier to support'
    )
    assert (only["about"], gated.exit) == (f"{project.digest()[7:15]} predicts", 1)


def test_209_once_there_was_evidence_it_is_an_error(against: Against):
    project = against("recorded")
    commit = project.amend(*EASIER)
    gated = project.gate("--acknowledge", "lock")
    assert (gated.open, gated.exit) == ([("PR209", CLAIM, "error", LINE)], 1)
    only = gated.only("PR209")
    assert f'"{CLAIM}" was changed after the data (' in only["message"]
    assert f"in {commit[:8]}: predicts from" in only["message"]


def test_209_an_edit_that_no_amendment_tells_of_is_the_same(against: Against):
    project = against("recorded")
    project.edit(TOML, *EASIER)
    project.keep("Fix a typo", TOML)
    gated = project.gate()
    assert gated.grave == [("PR209", CLAIM, "error", LINE), ("PR212", CLAIM, "error", LINE)]
    assert "committed yet" not in gated.only("PR209")["message"]


# PR210


def test_210_a_number_that_does_not_follow_is_an_error_at_its_page(against: Against):
    project = against("recorded")
    project.write("README.md", "# It\n\nIt took <!-- prereg: below-two.estimate -->1.1<!-- /prereg --> s.\n")
    project.keep("Quote it", "README.md")
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR210", CLAIM, "error", 3)], 1)
    assert gated.only("PR210")["path"] == "README.md"
    assert gated.only("PR210")["message"] == '"below-two.estimate" is quoted as "1.1", and is "1.010"'
    project.done("cite")
    project.keep("As it is", "README.md")
    assert project.gate().said == []


def test_210_the_same_wrong_number_on_another_page_is_another_one(against: Against):
    project = against("recorded")
    text = "It took <!-- prereg: below-two.estimate -->1.1<!-- /prereg --> s.\n"
    project.on_main("README.md", text)
    project.write("more.md", text)
    project.git("rm", "--quiet", "README.md")
    project.keep("Move what is quoted", ".")
    assert [(one["code"], one["path"]) for one in project.gate().findings] == [("PR210", "more.md")]


# PR211


def test_211_a_verdict_that_the_evidence_does_not_give_is_an_error(against: Against):
    project = against("recorded")
    project.edit(LOCK, '"supported"', '"refuted"')
    commit = project.keep("Humble", LOCK)
    gated = project.gate()
    assert gated.grave == [("PR211", CLAIM, "error", LINE), ("PR205", CLAIM, "review", LINE)]
    assert gated.only("PR211")["message"] == (
        f'the recorded verdict of "{CLAIM}", "refuted", does not follow from the evidence, which gives supported'
    )
    assert gated.only("PR205")["commit"] == commit


def test_211_the_verdict_that_it_gives_needs_nobody(against: Against):
    project = against("measured")
    project.record()
    gated = project.gate()
    assert (gated.findings, gated.exit) == ([], 0)


# PR212


def test_212_what_is_registered_once_its_data_are_there_is_an_error(against: Against):
    project = against("measured")
    measured = project.git("rev-parse", "main")
    project.add(STRONGER)
    project.register()
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR212", NEXT, "error", LINE + 7)], 1)
    only = gated.only("PR212")
    assert only["message"].startswith(f'"{NEXT}" is after-evidence: ')
    assert only["commit"] == measured
    assert only["about"].startswith("after-evidence: ")


def test_212_what_is_measured_anew_once_it_is_registered_needs_nobody(against: Against):
    project = against("measured")
    project.add(SUCCESSOR)
    project.register()
    assert project.gate().grave == []
    project.merged()
    project.write("more.csv", MORE_ROWS)
    project.done("import", "more.csv", "--experiment", "again")
    project.keep("Evidence", "experiments")
    gated = project.gate()
    assert (gated.findings, gated.exit) == ([], 0)
    assert gated.prediction(NEXT)["standing"] == "confirmatory"


def test_212_something_else_than_was_registered_is_a_mismatch(against: Against):
    project = against("measured")
    project.edit(TOML, *STRICTER)
    project.keep("Sharper", TOML)
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR212", CLAIM, "error", LINE)], 1)
    only = gated.only("PR212")
    assert only["message"].startswith(f'"{CLAIM}" is mismatch: something else was registered when ')
    assert only["about"].startswith("mismatch: ")


def test_212_evidence_that_another_branch_had_before_the_registration_is_contested(against: Against):
    project = against("registered")
    project.take_in()
    evidence = project.git("rev-parse", "HEAD")
    project.git("switch", "--quiet", "--create", "side", "main~1")
    project.git("checkout", "--quiet", evidence, "--", "experiments")
    project.git("commit", "--quiet", "--message", "The same file, and no registration")
    project.git("switch", "--quiet", "change")
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR212", CLAIM, "review", LINE)], 1)
    assert gated.only("PR212")["message"].startswith(f'"{CLAIM}" is contested: ')
    project.git("branch", "--quiet", "-D", "side")
    assert project.gate().said == []


# PR213


def test_213_a_series_that_is_voided_is_a_review(against: Against):
    project = against("measured")
    project.done("void", "rows/1", "--reason", "another machine than we thought")
    commit = project.keep("Void", LOCK)
    gated = project.gate()
    assert (gated.open, gated.exit) == ([("PR213", "rows", "review", LINE)], 1)
    only = gated.only("PR213")
    assert only["message"] == (
        f'series "rows/1" was voided after the data in {commit[:8]}: another machine than we thought'
    )
    assert only["about"] == "rows/1"


def test_213_what_is_measured_once_more_beside_it_needs_nobody(against: Against):
    project = against("measured")
    project.take_more(MORE_ROWS)
    project.record()
    assert project.gate().said == []


# PR214


def test_214_a_claim_that_can_not_hold_beside_another_one_is_a_review(against: Against):
    project = against("registered")
    first = project.digest()[7:15]
    project.add(OPPOSITE)
    project.register()
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR214", "above-three", "review", LINE + 7)], 1)
    only = gated.only("PR214")
    assert only["message"] == (
        f'"above-three" and "{CLAIM}" ask the same, and nothing that is found can support both'
    )
    assert only["about"] == f"above-three {project.digest('above-three')[7:15]}, {CLAIM} {first}"


def test_214_a_claim_that_can_needs_nobody(against: Against):
    project = against("registered")
    project.add(STRONGER)
    project.register()
    assert project.gate().said == []


# PR215


def test_215_a_verdict_that_is_recorded_once_it_was_withdrawn_is_an_error(against: Against):
    project = against("recorded")
    project.withdraw()
    project.merged()
    project.edit(LOCK, '"supported"', '"refuted"')
    commit = project.keep("Judge it", LOCK)
    gated = project.gate()
    assert ("PR215", CLAIM, "error", LINE) in gated.grave
    only = gated.only("PR215")
    assert only["message"] == (f'"{CLAIM}" had been withdrawn, and was recorded as refuted in {commit[:8]}')
    assert (only["commit"], gated.exit) == (commit, 1)


def test_215_evidence_that_was_taken_once_it_was_withdrawn_is_an_error(against: Against):
    project = against("registered")
    project.measure()
    commit = project.withdraw()
    (file,) = project.evidence()
    forge_header(file, head=commit)
    project.keep("Evidence", "experiments")
    gated = project.gate()
    assert ("PR215", CLAIM, "error", LINE) in gated.grave
    only = gated.only("PR215")
    assert (
        only["message"]
        == f'rows/{file.name} was taken for "{CLAIM}" at {commit[:8]}, where that is withdrawn'
    )
    assert (only["commit"], only["about"]) == (commit, file.name)


def test_215_a_tombstone_that_has_the_verdict_needs_nobody(against: Against):
    project = against("registered")
    project.take_in()
    project.record()
    project.withdraw()
    gated = project.gate()
    assert (gated.grave, gated.exit) == ([], 0)


# PR216


def test_216_data_that_were_there_before_the_registration_are_a_review(against: Against):
    project = against("begun")
    project.on_main("rows.csv", (project.path / "rows.csv").read_text(encoding="utf-8"))
    looked = project.git("rev-parse", "main")
    project.register()
    project.merged()
    project.take_in()
    gated = project.gate()
    assert (gated.said, gated.exit) == ([("PR216", CLAIM, "review", LINE)], 1)
    only = gated.only("PR216")
    assert f'they were committed as "rows.csv" in {looked[:8]}' in only["message"]
    assert only["about"] == f"{project.digest()[7:15]} data of {project.evidence()[0].name}"


def test_216_data_that_came_after_it_need_nobody(against: Against):
    project = against("begun")
    project.register()
    project.merged()
    project.keep("The rows", "rows.csv")
    project.take_in()
    assert project.gate().said == []


@pytest.mark.parametrize(
    ("name", "text", "code"), [(LOCK, "<<<<<<< ours\n", "PR011"), (TOML, "[study\n", "PR001")]
)
def test_what_can_not_be_read_at_the_base_is_mended_and_at_head_an_error(
    against: Against, name: str, text: str, code: str
):
    project = against("recorded")
    good = (project.path / name).read_text(encoding="utf-8")
    project.write(name, text)
    project.keep("Break it", name)
    gated = project.gate()
    assert (gated.said, gated.exit) == ([(code, "", "error", 1)], 1)
    project.merged()
    project.write(name, good)
    project.keep("Mend it", name)
    gated = project.gate()
    assert (gated.grave, gated.exit) == ([], 0)
    assert gated.only(code)["message"].startswith(
        "the study at the base can't be looked at, so all that stands"
    )
    project.amend(*EASIER)
    assert ("PR209", CLAIM, "error", LINE) in project.gate().grave


def test_a_document_of_the_gate_has_what_an_audit_has(against: Against):
    project = against("recorded")
    project.amend(*STRICTER)
    document = json.loads(project.prereg("gate", "--base", "main", "--format", "json").stdout)
    audit = json.loads(project.prereg("audit", "--format", "json").stdout)
    assert {*document} == {*audit}
    assert [{*one} for one in document["predictions"]] == [{*one} for one in audit["predictions"]]
