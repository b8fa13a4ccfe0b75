"""Studies whose evidence is written as sessions write it, and that are registered without being measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.evidence.model import Finished, Header, Outcome, Started
from pytest_prereg.evidence.naming import repeat_id
from pytest_prereg.evidence.writing import write_session
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.recording import recorded_entry
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import plan_registration, register, write_lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.audit.standing import Assessment

Ended = tuple[Outcome, "Mapping[str, Any]"]
"""How an attempt ended, and what it recorded."""


class WrittenStudy:
    """A prediction file in a folder, registered as it stands."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        path = folder / "predictions.toml"
        path.write_text(text, encoding="utf-8")
        self.study = load_study(path)
        write_lock(self.study.lock_path, register(self.study, None, plan_registration(self.study, None)))

    def session(
        self,
        experiment: str,
        rows: Mapping[tuple[str, int], Sequence[Ended]],
        *,
        series: int = 1,
        origin: str = "measured",
        causes: Mapping[tuple[str, int], str] | None = None,
        unreadable: Mapping[tuple[str, int], Mapping[str, str]] | None = None,
        **header: Any,
    ) -> Path:
        """Writes one session: the attempts at each slot, (arm, index), in order of the slots' indices.

        ``causes`` are why repeats were excluded or are invalid, by slot; ``unreadable`` is which metrics had
        no reading there, and by which instrument.
        """
        declared = self.study.experiments[experiment]
        bound = {
            name: registration_digest(self.study, one)
            for name, one in self.study.predictions.items()
            if experiment in one.experiments
        }
        first = Header(
            version=1,
            study=self.study.id,
            experiment=experiment,
            series=series,
            origin=origin,
            planned=declared.planned,
            pairing=declared.pairing,
            seed=seed_base(header.get("predictions", bound).values(), series),
            session="00",
            created="2026-08-02T12:00:00Z",
            **{
                "executor": "local",
                "head": None,
                "dirty": None,
                "source": None,
                "environment": {"cpu": "a"},
                "versions": {},
                "predictions": bound if origin != "pilot" else {},
                **header,
            },
        )
        lines = []
        for (arm, index), attempts in sorted(rows.items(), key=lambda item: item[0][1]):
            repeat = repeat_id(experiment, series, arm, index)
            for number, (outcome, values) in enumerate(attempts, 1):
                lines.append(Started(repeat=repeat, arm=arm, index=index, attempt=number, block=index))
                if outcome is not Outcome.LOST:
                    instruments = dict.fromkeys(values, "timer")
                    lines.append(
                        Finished(
                            repeat=repeat,
                            attempt=number,
                            outcome=outcome,
                            values=dict(values),
                            instruments=instruments,
                            cause=(causes or {}).get((arm, index)),
                            unreadable=dict((unreadable or {}).get((arm, index), {})),
                        )
                    )
        return write_session(self.study.evidence_folder, first, lines)

    def state(self) -> StudyState:
        """The study with its lock and its evidence, read anew."""
        return StudyState(load_study(self.folder / "predictions.toml"))

    def record(self) -> StudyState:
        """Writes every verdict to the lock, whatever its standing, and returns the state after it."""
        state = self.state()
        entries = dict(state.lock.predictions)
        for name, prediction in state.study.predictions.items():
            entries[name] = recorded_entry(state.assess(prediction), entries[name])
        write_lock(self.study.lock_path, replace(state.lock, predictions=entries))
        return self.state()


def assessments(state: StudyState) -> dict[str, Assessment]:
    """Every prediction of a study, assessed."""
    return {name: state.assess(one) for name, one in state.study.predictions.items()}


def ok(**values: Any) -> list[Ended]:
    """One attempt that ended well."""
    return [(Outcome.OK, values)]
