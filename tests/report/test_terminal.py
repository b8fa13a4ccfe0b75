"""Verdict lines fit their width, say one word more only where something is not plain, and survive ASCII."""

from __future__ import annotations

import math
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.judge.credences import Credence
from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.registry.regions import Region, parse_region
from pytest_prereg.report.columns import ascii_text, can_draw, cut, width_of, wrapped
from pytest_prereg.report.records import judged_record, pending_record, withdrawn
from pytest_prereg.report.scoreboard import scoreboard
from pytest_prereg.report.terminal import Shown, letter, verdict_lines


def judged(name="zstd-is-faster", verdict="supported", **changes):
    reason = Reason.STRADDLES if verdict == "inconclusive" else None
    record = {"standing": "confirmatory", "order": "registered", "recorded": None, "unit": "1"}
    record |= {key: changes.pop(key) for key in list(changes) if key in record}
    values = {"estimate": 0.2131, "interval": (0.208, 0.218), "reason": reason, "n": 10, "planned": 10}
    judgement = Judgement(
        prediction=name,
        verdict=Verdict(verdict),
        detail=None,
        confidence=0.95,
        method="log-t",
        statistic="geometric-mean",
        repeats=(),
        **{"excluded": 0, "flags": (), **values, **changes},
    )
    return judged_record(judgement, kind="claim", series=1, sessions=(), **record)


def shown(record, detail=None, predicts="<= 0.5", falsifier=">= 0.8"):
    return Shown(
        record=record, predicts=parse_region(predicts), falsifier=parse_region(falsifier), detail=detail
    )


def pending(name="create-under-500ms", **changes):
    record = pending_record(
        name,
        kind="claim",
        standing="confirmatory",
        order="registered",
        statistic="mean",
        unit="ms",
        planned=7,
    )
    return msgspec.structs.replace(record, **changes)


def test_a_plain_verdict_takes_one_line_of_eighty_columns():
    assert verdict_lines([shown(judged())], 80) == [
        " + zstd-is-faster  0.2131 [0.2080, 0.2180]  n 10  ▒▒•▒▒▒▒░░░░░░▓▓▓▓  wants ≤ 0.5"
    ]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (judged(), "+"),
        (judged(verdict="refuted"), "-"),
        (judged(verdict="refuted", recorded=Verdict.REFUTED), "r"),
        (judged(verdict="supported", recorded=Verdict.REFUTED), "!"),
        (judged(verdict="inconclusive"), "?"),
        (judged(verdict="inconclusive", recorded=Verdict.INCONCLUSIVE), "?"),
        (pending(), "."),
    ],
)
def test_each_outcome_has_its_letter(record, expected):
    assert letter(record) == expected
    assert verdict_lines([shown(record)])[0].startswith(f" {expected} ")


def said(record, detail=None):
    return " ".join(" ".join(verdict_lines([shown(record, detail)], 80)).split())


def test_a_refutation_that_is_recorded_says_so():
    assert said(judged(verdict="refuted", recorded=Verdict.REFUTED)).endswith("refuted as recorded")


def test_a_changed_verdict_names_both():
    line = said(judged(verdict="inconclusive", recorded=Verdict.SUPPORTED), "the interval holds 0.5")
    assert "CHANGED supported → inconclusive, straddles: the interval holds 0.5" in line


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"standing": "exploratory", "order": "after-evidence"}, "exploratory: after-evidence"),
        ({"standing": "replication"}, "replication"),
        ({"flags": ("imported",)}, "imported"),
        ({"flags": ("approximate",)}, "approximate"),
    ],
)
def test_what_is_not_plain_confirmatory_is_said(changes, word):
    assert word in said(judged(**changes))
    assert word not in said(judged())


def test_the_reason_is_named_once():
    record = judged(verdict="inconclusive")
    assert said(record, "straddles 0.5 to 0.8").count("straddles") == 1
    assert "straddles: the interval holds 0.5" in said(record, "the interval holds 0.5")


def test_a_pending_prediction_says_what_it_waits_for():
    assert said(pending(), "needs executor modal").endswith("pending: needs executor modal")
    assert "counted as refuted" in said(pending(status="withdrawn", verdict=Verdict.REFUTED))


def test_missing_repeats_show_in_the_count():
    assert "n 9/10" in said(judged(n=9))


MANY = [
    shown(judged()),
    shown(judged("training-is-free", "refuted", recorded=Verdict.REFUTED)),
    shown(judged("p99", "inconclusive", estimate=None, interval=(-math.inf, 41.0), unit="s"), "needs 368"),
    shown(judged("a-very-long-id-" * 6, flags=("imported", "approximate")), None),
    shown(judged("changed", "inconclusive", recorded=Verdict.SUPPORTED), "µ is large " * 20),
    shown(pending(), "needs executor modal (pytest --prereg --prereg-executor modal)"),
]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_the_terminal(width, unicode):
    lines = verdict_lines(MANY, width, unicode=unicode)
    above, below = scoreboard([one.record for one in MANY], width, unicode=unicode)
    lines += above + below
    assert max(map(width_of, lines)) <= width


def test_an_id_that_is_too_long_is_cut_and_says_so():
    assert any("a-very-long-id-a" in line and "…" in line for line in verdict_lines(MANY, 80))


def test_the_fallback_is_ascii_and_keeps_the_plot_readable():
    lines = verdict_lines(MANY, 80, unicode=False)
    assert all(line.isascii() for line in lines)
    assert "wants <= 0.5" in " ".join(lines)
    assert any(set("=.#") <= set(line) for line in lines)


def test_regions_interval_and_numbers_are_visible_at_eighty_columns():
    (line,) = verdict_lines([shown(judged(interval=(0.11, 0.62)))], 80)
    assert set("▒▓░├•┤") <= set(line)
    assert "0.21 [0.11, 0.62]" in line


@pytest.mark.parametrize(
    ("encoding", "can"),
    [("utf-8", True), ("ascii", False), ("latin-1", False), ("cp1252", False), (None, False), ("?", False)],
)
def test_drawing_depends_on_the_stream(encoding, can):
    assert can_draw(encoding) is can


@given(st.text(), st.integers(1, 30))
def test_cut_and_wrapped_text_fits(text, width):
    assert width_of(cut(text, width)) <= width
    assert all(width_of(line) <= width for line in wrapped(text, width))


@given(st.text())
def test_the_ascii_of_a_text_is_ascii(text):
    assert ascii_text(text).isascii()


def test_exploratory_verdicts_are_not_counted():
    records = [judged(), judged(verdict="refuted", standing="exploratory", order="after-evidence"), pending()]
    (above,), below = scoreboard(records, 100)
    counts = " 3 registered · 1 judged · 1 supported · 0 refuted · 0 inconclusive · 1 pending · 1 not counted"
    assert above.endswith(counts)
    assert below == ["2 of 3 confirmatory · 1 exploratory, not counted · about 0.025 wrong by chance"]


def test_a_look_stands_for_all_looks_that_share_the_error():
    records = [msgspec.structs.replace(judged(), confidence=1 - 0.05 / 3)]
    assert "about 0.0083 wrong" in scoreboard(records, 100)[1][0]
    assert "about 0.025 wrong" in scoreboard(records, 100, overall={records[0].id: 0.95})[1][0]


@pytest.mark.parametrize("unmeasured", [set(), {"order-helps"}, {"a", "b"}])
def test_the_counts_add_up_whatever_became_of_each(unmeasured):
    records = [
        judged(),
        withdrawn(judged("a", "inconclusive")),
        withdrawn(judged("b", "refuted")),
        judged("c", standing="exploratory", order="mismatch"),
        judged("d", standing="exploratory", order="unregistered"),
        withdrawn(judged("e", "refuted", standing="exploratory", order="mismatch")),
        judged("f", standing="exploratory", order="mismatch", flags=("was refuted before it was amended",)),
        msgspec.structs.replace(pending(), id="g"),
        msgspec.structs.replace(pending(), id="h", order="unregistered", standing="exploratory"),
    ]
    above, below = scoreboard(records, 200, unmeasured=unmeasured)
    counts = {name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+[a-z])", above[-1])}
    parts = ("judged", "pending", "not counted")
    assert counts["registered"] == len(records) - 2 == sum(counts.get(one, 0) for one in parts)
    assert counts["not registered"] == 2
    assert counts["judged"] == counts["supported"] + counts["refuted"] + counts["inconclusive"]
    told = sum(int(count) for count in re.findall(r"(\d+) [a-z ]+, not counted", below[0]))
    assert told == counts.get("not counted", 0)


def test_a_withdrawn_refutation_stays_counted():
    record = msgspec.structs.replace(judged(verdict="refuted"), status="withdrawn")
    above, _ = scoreboard([record])
    assert "1 refuted" in above[0]


def test_counts_that_need_two_lines_stay_together_above_the_verdicts():
    above, below = scoreboard([judged()] * 36, 80)
    assert len(above) == 2
    assert above[1].endswith("pending")
    assert below == ["36 of 36 confirmatory · about 0.9 wrong by chance"]


def test_imported_evidence_is_counted_apart():
    _, (notes,) = scoreboard([judged(flags=("imported",))], 100)
    assert "1 imported" in notes


def test_what_was_lost_and_spent_is_told_last():
    _, (notes,) = scoreboard(
        [judged()], 140, toll=["5 repeats lost or excluded (2 tool, 3 service)", "$0.12"]
    )
    assert notes.endswith("5 repeats lost or excluded (2 tool, 3 service) · $0.12")


def test_credences_are_scored_beside_what_they_say_nothing_of():
    credences = [Credence(0.9, Verdict.SUPPORTED), Credence(0.8, Verdict.INCONCLUSIVE)]
    _, (notes,) = scoreboard([judged()], 140, credences=credences)
    assert "Brier score 0.01 of 1 credence, 50 % inconclusive" in notes


def test_a_model_is_no_hit_for_anybody():
    above, below = scoreboard([judged(), judged("derived")], 140, unmeasured={"derived"})
    assert "2 registered · 1 judged · 1 supported" in above[0]
    assert "1 of a model or an identity, not counted" in below[0]
    assert "about 0.025 wrong by chance" in below[0]


def test_a_verdict_at_a_look_says_which_and_misses_no_repeat():
    lines = verdict_lines([shown(judged(n=5, planned=15), "decided at look 1 of 3")], 80)
    assert "n 5 " in lines[0]
    assert "5/15" not in lines[0]
    assert "decided at look 1 of 3" in " ".join(lines)


def test_a_conjunction_wants_its_members_and_has_no_number():
    nothing = Region(spans=())
    record = judged("both", estimate=None, interval=None, n=14, planned=14)
    both = Shown(record=record, predicts=nothing, falsifier=nothing, wants="all of quick, hit")
    text = " ".join(verdict_lines([both, shown(judged())], 80))
    assert "wants all of quick, hit" in text
    assert "no value" not in text
