"""Published numbers: which of them reproduce is pinned, and the page shows what the code gives."""

from __future__ import annotations

import importlib
import random
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS, DOCS = ROOT / "benchmarks", ROOT / "docs"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="runs in a checkout or an unpacked sdist")


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch):
    """The modules of benchmarks by their short names."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"published_{name}")


def names(published, status: str) -> set[str]:
    numbers, model = published("numbers"), published("model")
    return {number.name for number, _ in numbers.found()[model.Status[status]]}


def value(published, name: str) -> float:
    (found,) = (number.recompute().value for number in published("numbers").NUMBERS if number.name == name)
    return found


def test_the_table_is_what_the_code_gives(published):
    written = (DOCS / "tables" / "published-numbers.md").read_text(encoding="utf-8")
    assert written == published("numbers").page(), "run python benchmarks/published_numbers.py --write"


def test_what_does_not_reproduce_is_known(published):
    assert names(published, "DIFFERS") == {
        "idle_at_the_deadline",
        "rollpacker_range",
    }


def test_what_can_not_be_recomputed_is_known(published):
    assert names(published, "UNKNOWN") == {
        "fourfold",
        "halving",
        "logits",
        "dropped_figure",
        "warm_pool_ceiling",
        "cost_of_idling",
        "predictions",
        "bugs",
        "step_times",
        "nvml_means",
        "duty",
        "profiler",
        "unsynchronised",
        "creation_time",
        "costs",
        "bias_on_the_l4",
    }


def test_all_numbers_of_the_article_reproduce(published):
    article = {number.name for number in published("article").ARTICLE_NUMBERS.noted}
    assert len(article) == 9
    assert article <= names(published, "REPRODUCES") | names(published, "HOLDS")


def test_what_holds_by_a_criterion_of_ours_alone_is_known(published):
    assert names(published, "HOLDS") == {
        "saturation",
        "near_certain",
        "in_between",
        "training_equals_generation",
        "swing_on_the_l4",
        "bias_on_the_t4",
        "container_limit",
        "creation_limit",
        "instrument_and_subject",
        "odds_of_smaller_barriers",
        "meanings",
        "first_batch",
        "speed_up",
    }


def test_the_page_counts_what_came_of_all_numbers(published):
    text = re.sub(r"\s+", " ", (DOCS / "published-numbers.md").read_text(encoding="utf-8"))
    counts = {status.name: len(numbers) for status, numbers in published("numbers").found().items()}
    assert (
        f"{sum(counts.values())} numbers and statements: {counts['DIFFERS']} do not reproduce exactly, "
        f"{counts['UNKNOWN']} can't be recomputed from what is published, {counts['REPRODUCES']} numbers "
        f"reproduce exactly, and {counts['HOLDS']} statements in words hold as we read them"
    ) in text


def test_the_page_names_first_what_does_not_reproduce():
    _, first, second, *_ = (DOCS / "published-numbers.md").read_text(encoding="utf-8").split("\n\n")
    for said in ("2 do not", "headline of\n55.0 %", "2, 5 and 10 %", "nothing in between", "5 to 13 %"):
        assert re.sub(r"\s+", " ", said) in re.sub(r"\s+", " ", first)
    assert "benchmarks/published_study.py" in second


def test_every_function_says_what_it_recomputes_and_what_was_published(published):
    for number in published("numbers").NUMBERS:
        assert number.what
        assert number.quote
        assert number.published
    noted = [number.name for number in published("numbers").NUMBERS]
    assert len(noted) == len(set(noted))


def test_each_number_stands_once_in_the_table(published):
    rows = [row for row in published("numbers").page().splitlines() if "”" in row]
    assert len(rows) == len(published("numbers").NUMBERS)
    assert {row.count("|") for row in rows} == {7}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("idle_at_the_median", 100 * 2 / 26.67),
        ("idle_at_the_deadline", 100 * 30 / 54.67),
        ("steps_hit", 100 * (1 - 0.99**128)),
        ("in_between", 0),
        ("near_certain", 100 * (1 - 0.98**128)),
        ("odds_of_smaller_barriers", 100 * (1 - 0.99**32)),
        ("creation_limit", 127 / 5 / 0.363),
        ("swing_on_the_l4", 100),
        ("bias_on_the_t4", 7.65),
        ("logits", 4 * 1280 * 151_936 * 4 / 2**30),
        ("fourfold", (4 * (30 - 28 * 0.9**32)) / (30 - 28 * 0.9**128)),
        ("dropped_figure", 100 * 30 / 42.47),
        ("speed_up", 1200 / 660),
    ],
)
def test_a_number_follows_by_hand(name: str, expected: float, published):
    assert value(published, name) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "d2"), [(2, 1.128), (3, 1.693), (5, 2.326), (7, 2.704), (10, 3.078)])
def test_the_mean_range_is_that_of_the_tables(n: int, d2: float, published):
    """Factors for control charts: Montgomery, Introduction to Statistical Quality Control, appendix VI."""
    assert published("range").expected_range(n) == pytest.approx(d2, abs=5e-4)


@pytest.mark.parametrize(("n", "upper"), [(2, 2.772), (3, 3.314), (7, 4.170), (10, 4.474)])
def test_the_quantiles_of_the_range_are_those_of_the_tables(n: int, upper: float, published):
    """Upper 5 % of the studentized range without error in the deviation: Montgomery, appendix V."""
    assert published("range").range_quantile(0.95, n) == pytest.approx(upper, abs=5e-4)


def test_the_deviations_that_a_range_allows_are_reached_and_not_left(published):
    least, most = published("range").possible_deviations(22, 7)
    assert statistics.stdev([0, 11, 11, 11, 11, 11, 22]) == pytest.approx(least)
    assert statistics.stdev([0, 0, 0, 0, 22, 22, 22]) == pytest.approx(most)
    between = random.Random(1)
    for _ in range(100):
        drawn = statistics.stdev([0, 22, *(22 * between.random() for _ in range(5))])
        assert least <= drawn <= most


def test_what_reads_alike_at_three_rates_is_compared_at_all_three(published, monkeypatch):
    study = published("study")
    real = study.idle_shares
    changed = lambda rate, *args, **law: real(0.0001 if rate == 0.05 else rate, *args, **law)  # noqa: E731
    monkeypatch.setattr(study, "idle_shares", changed)
    assert study.saturation().holds is False


@pytest.mark.parametrize(("n", "critical"), [(5, 0.507), (7, 0.333), (10, 0.230)])
def test_the_range_test_has_lords_critical_values(n: int, critical: float, published):
    """Lord 1947, Biometrika 34: 5 %, two-sided."""
    p = published("range").range_test
    assert p(critical + 0.001, 1, n) < 0.05 < p(critical - 0.001, 1, n)


def number(published, value: float, said: str, **found):
    model = published("model")
    made = model.Found(value=value, **found)
    asked = model.Number(name="n", source="s", quote="q", published=said, unit="", recompute=lambda: made)
    return asked.status(made).name


@pytest.mark.parametrize(
    ("value", "said", "status"),
    [
        (54.96, "55.0", "REPRODUCES"),
        (54.94, "55.0", "DIFFERS"),
        (54.6, "55", "REPRODUCES"),
        (1_048_576.0, "1,048,576", "REPRODUCES"),
        (1_048_577.0, "1,048,576", "DIFFERS"),
    ],
)
def test_a_number_reproduces_if_it_rounds_to_what_was_published(
    value: float, said: str, status: str, published
):
    assert number(published, value, said) == status


def test_a_conclusion_in_words_holds_if_it_follows(published):
    assert number(published, 2.0, "not established", holds=True) == "HOLDS"
    assert number(published, 2.5, "not established", holds=False) == "DIFFERS"


@pytest.mark.parametrize(
    ("value", "said", "shown"),
    [(54.8747, "55.0", "54.87"), (1_048_576, "1,048,576", "1,048,576"), (72.37, "72", "72.4")],
)
def test_a_value_has_one_digit_more_than_was_published(value: float, said: str, shown: str, published):
    made = published("model").Number(
        name="n", source="s", quote="q", published=said, unit="", recompute=published("model").Found
    )
    assert made.shown(value) == shown


def test_what_lacks_its_inputs_never_reproduces_however_well_a_value_fits(published):
    assert number(published, 2.9, "2.9", missing="the length") == "UNKNOWN"


def test_words_that_nothing_decides_are_an_error(published):
    with pytest.raises(ValueError, match="'nearly fourfold' is no number"):
        number(published, 3.9, "nearly fourfold")
