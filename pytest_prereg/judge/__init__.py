"""What it means: intervals, verdicts, power, design check. Pure: no I/O, no random numbers.

The names below are documented for use on their own; they are imported when first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_prereg.judge.clusters import korn_graubard as korn_graubard
    from pytest_prereg.judge.contrasts import confidence_of_pairs as confidence_of_pairs
    from pytest_prereg.judge.contrasts import confidence_of_steps as confidence_of_steps
    from pytest_prereg.judge.contrasts import largest_difference as largest_difference
    from pytest_prereg.judge.contrasts import smallest_step as smallest_step
    from pytest_prereg.judge.design import DesignReport as DesignReport
    from pytest_prereg.judge.design import check_design as check_design
    from pytest_prereg.judge.drift import Trend as Trend
    from pytest_prereg.judge.drift import mann_kendall as mann_kendall
    from pytest_prereg.judge.gradients import gradient as gradient
    from pytest_prereg.judge.intervals import Interval as Interval
    from pytest_prereg.judge.intervals import clopper_pearson as clopper_pearson
    from pytest_prereg.judge.intervals import log_t as log_t
    from pytest_prereg.judge.intervals import log_welch as log_welch
    from pytest_prereg.judge.intervals import modified_cox as modified_cox
    from pytest_prereg.judge.intervals import order_statistic_median as order_statistic_median
    from pytest_prereg.judge.intervals import order_statistic_quantile as order_statistic_quantile
    from pytest_prereg.judge.intervals import paired_log_t as paired_log_t
    from pytest_prereg.judge.intervals import paired_t as paired_t
    from pytest_prereg.judge.intervals import student_t as student_t
    from pytest_prereg.judge.intervals import welch as welch
    from pytest_prereg.judge.intervals import welch_t as welch_t
    from pytest_prereg.judge.model import Judgement as Judgement
    from pytest_prereg.judge.model import Reason as Reason
    from pytest_prereg.judge.model import Verdict as Verdict
    from pytest_prereg.judge.order_statistics import coverage as coverage
    from pytest_prereg.judge.order_statistics import ranks as ranks
    from pytest_prereg.judge.order_statistics import smallest_n_for_quantile as smallest_n_for_quantile
    from pytest_prereg.judge.order_statistics import wilks_n as wilks_n
    from pytest_prereg.judge.order_statistics import wilks_n_two_sided as wilks_n_two_sided
    from pytest_prereg.judge.power import inner_count as inner_count
    from pytest_prereg.judge.power import n_for_power_t as n_for_power_t
    from pytest_prereg.judge.power import power_t as power_t
    from pytest_prereg.judge.propagation import Propagated as Propagated
    from pytest_prereg.judge.propagation import propagate as propagate
    from pytest_prereg.judge.ratios import fieller as fieller
    from pytest_prereg.judge.ratios import paired_fieller as paired_fieller
    from pytest_prereg.judge.ratios import unpaired_fieller as unpaired_fieller
    from pytest_prereg.judge.sequential import t_mixture_e_value as t_mixture_e_value
    from pytest_prereg.judge.sequential import t_mixture_interval as t_mixture_interval
    from pytest_prereg.judge.slopes import log_log_slope as log_log_slope
    from pytest_prereg.judge.spreads import chi_square_sd as chi_square_sd
    from pytest_prereg.judge.verdicts import judge as judge

_HOME = {
    "clusters": ("korn_graubard",),
    "contrasts": ("confidence_of_pairs", "confidence_of_steps", "largest_difference", "smallest_step"),
    "design": ("DesignReport", "check_design"),
    "drift": ("Trend", "mann_kendall"),
    "gradients": ("gradient",),
    "intervals": (
        "Interval",
        "clopper_pearson",
        "log_t",
        "log_welch",
        "modified_cox",
        "order_statistic_median",
        "order_statistic_quantile",
        "paired_log_t",
        "paired_t",
        "student_t",
        "welch",
        "welch_t",
    ),
    "model": ("Judgement", "Reason", "Verdict"),
    "order_statistics": ("coverage", "ranks", "smallest_n_for_quantile", "wilks_n", "wilks_n_two_sided"),
    "power": ("inner_count", "n_for_power_t", "power_t"),
    "propagation": ("Propagated", "propagate"),
    "ratios": ("fieller", "paired_fieller", "unpaired_fieller"),
    "sequential": ("t_mixture_e_value", "t_mixture_interval"),
    "slopes": ("log_log_slope",),
    "spreads": ("chi_square_sd",),
    "verdicts": ("judge",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - checked against the imports above by a test


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
