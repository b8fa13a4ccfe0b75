"""The JSON Schema of a prediction file, generated from the tables: editors complete and check with it.

``python -m pytest_prereg.registry.schema`` writes it again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from pytest_prereg.registry.contrasts import FORMS as CONTRASTS
from pytest_prereg.registry.estimands import REDUCTIONS, STATISTICS
from pytest_prereg.registry.regions import FORMS
from pytest_prereg.registry.tables import PredictionsFile

SCHEMA_FILE = Path(__file__).parents[1] / "predictions.schema.json"
"""The schema as shipped."""

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "PredictionsFile": {
        "study": "What this file is.",
        "constants": "Numbers from elsewhere, usable in quantities as constants.NAME.",
        "instruments": "Why what takes a reading may decide: calibrated, or trusted for a stated reason.",
        "executors": "Where repeats can run besides this machine.",
        "experiments": "Code, a command or an import that yields named metrics once per repeat.",
        "predictions": "Claims, each with the region that it predicts and the region that falsifies it.",
    },
    "StudyTable": {
        "experiments": "Folders or modules beside this file that hold @experiment functions.",
        "evidence": "Folder for the session files.",
        "confidence": "Level of every interval; lower than 0.95 only for exploratory work.",
        "prices": "USD an hour, by executor; one that has no price costs nothing, unless it tells its own.",
    },
    "ConstantTable": {"source": "Where the number is from."},
    "MetricTable": {
        "unit": "Unit, such as s, GB/s or token; an unknown name counts its own things; 1 is a pure number.",
        "from": "Where a command's result file has it.",
        "exact": "A count or a deterministic value, which may be the same in every repeat; never a time.",
        "resolution": "Smallest difference that the reading can show.",
        "cap": "Where a timeout cuts it.",
    },
    "ExperimentTable": {
        "fixture": "Name of an @experiment function, or of a built-in one.",
        "command": "Command line, run once per repeat; {param}, {out} and {port} are replaced.",
        "params": "Parameters of every arm.",
        "arms": "Settings that are compared, each with the parameters that differ.",
        "metrics": "What each repeat records: name and unit.",
        "repeats": "Independent repeats per arm, the n of every interval; or looks, or the anytime rule.",
        "pairing": "block: one repeat of every arm, in random order; none: independent arms.",
        "timeout": 'From the start of the body: "5 min", "500 ms", or seconds.',
    },
    "ResourcesTable": {
        "gpu": "One kind of GPU, as the service calls it, and how many: L4, H100:2.",
        "cpu": "Cores.",
        "memory": 'With its unit: "16 GiB".',
    },
    "ModalTable": {
        "image": "A registry's image, or a recipe of the study's own: module:name.",
        "volumes": "Name of the volume, by the folder that it is mounted at.",
        "secrets": "Names of secrets that the service keeps; none is ever written into a file.",
        "region": "Where containers run.",
    },
    "ServiceTable": {
        "command": "Started before each repeat; {port} is a free port, {param} a parameter of the arm.",
        "ready": "An address that answers below 500, tcp for the port, or a text of its output.",
        "scope": "repeat: a server for each repeat.",
        "timeout": "How long it may take until it is ready.",
    },
    "PredictionTable": {
        "claim": "The claim in words.",
        "experiment": "The experiment that it is about.",
        "arm": "The arm that it is about, where there are several.",
        "contrast": f"Arms that are compared: {', '.join(CONTRASTS.values())}.",
        "quantity": "Expression over metrics, evaluated inside each repeat: one number per repeat.",
        "statistic": (
            f"Across repeats: one of {', '.join(STATISTICS)}; mean, or geometric-mean for a / b. "
            f"With over, what reduces a sweep inside a block: one of {', '.join(REDUCTIONS)}."
        ),
        "unit": "Unit that the verdict is shown in.",
        "predicts": f"Values that support the claim: {FORMS}.",
        "falsifier": "Values that refute the claim, in the same forms, or otherwise.",
        "expected": "Value that is expected, for the power check.",
        "detect": "Value at which refutation must be likely.",
        "cv": "Coefficient of variation that is expected between repeats.",
        "sd": "Standard deviation that is expected between repeats, in the metric's unit.",
        "credence": "Probability that the claim is supported, given that it is decided.",
        "one-sided": "Allow a prediction that this n can only decide in one direction.",
        "data-seen": "What of the data was known when this was written.",
        "source": "Where the threshold is from.",
    },
}


def schema() -> dict[str, Any]:
    """The schema, in JSON Schema 2020-12, with a description of the keys that need one."""
    generated = msgspec.json.schema(PredictionsFile)
    for table, descriptions in DESCRIPTIONS.items():
        properties = generated["$defs"][table]["properties"]
        for key, description in descriptions.items():
            properties[key] = properties[key] | {"description": description}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Pre-registered predictions"}
    return head | generated


def rendered() -> str:
    """The text of the shipped file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(rendered(), encoding="utf-8")
