"""Findings as an audit would have them, made by hand: each kind once, hundreds of one, and hostile text."""

from __future__ import annotations

from pathlib import Path

from pytest_prereg.audit.audited import Audited, Came, Recorded
from pytest_prereg.audit.finding import Finding, Level, by_weight
from pytest_prereg.report.findings.reported import Reported

COMMIT = "cdff1b98a1b2c3d4e5f60718293a4b5c6d7e8f90"
HOSTILE = (
    "\x1b[31mred\x1b[0m\n::error file=x,line=1::forged\r\n##[error]forged | <script>alert(1)</script> `code` "
    "<!-- prereg: a.n --> @octocat #12 GH-3 [link](http://evil.example) ![image](https://evil.example/x.png) "
    "\u202egpj.exe\u202c \u200b*bold* 100%, 5,0: $x$ &amp; \x00\x07"
)
"""What somebody who opens a pull request would put into a reason."""


def finding(code="PR212", name="fused-is-faster", level=Level.ERROR, **keys) -> Finding:
    given = {
        "message": f'"{name}" is not as it should be',
        "path": "predictions.toml",
        "line": 14,
        "commit": COMMIT,
    }
    return Finding(**{"code": code, "id": name, "level": level} | given | keys)


def registered(count: int) -> list[Finding]:
    return [
        finding(
            "PR201",
            f"prediction-{number}",
            Level.NOTICE,
            message=f'"prediction-{number}" was registered',
            line=number,
            about=f"{number:08x}",
        )
        for number in range(1, count + 1)
    ]


EVERY = (
    finding(
        "PR207",
        "barrier",
        message="evidence 20261129T193216Z-6854614f.jsonl of experiment barrier was altered after it was committed",
        path="experiments/evidence/barrier/20261129T193216Z-6854614f.jsonl",
        line=None,
        advice="Bring it back: git checkout HEAD -- experiments/evidence/barrier",
    ),
    finding(
        "PR212",
        "quick-win",
        message="history is cut at cdff1b98, which already has 20261129T193216Z-6854614f.jsonl",
        advice="Fetch all of it: git fetch --unshallow",
        untold=True,
    ),
    finding(
        "PR208",
        "the-deadline-holds",
        Level.REVIEW,
        message='repeat "deadline/1/one/3" was excluded after its value could be seen: a backup ran (tool)',
        line=160,
        about="deadline/1/one/3",
        advice="Ask whether it would have been excluded had it been slower by as much.",
    ),
    finding(
        "PR205",
        "fused-is-faster",
        Level.REVIEW,
        message="the verdict in the lock went from supported to inconclusive",
        about="supported -> inconclusive",
        acknowledged="the kernel changed, and the guard was measured anew",
    ),
    finding("PR206", "old-guard", Level.NOTICE, message="is about src/ as it was at 1f3c9a2", line=33),
    *registered(13),
)
UNPROVEN = (
    "That the author did not know the answer: nothing shows what was seen elsewhere before the registration.",
    "That the numbers were measured at all: whoever can write a file can write evidence.",
)


def prediction(
    name: str, order: str | None = "registered", verdict: str | None = "supported", **keys
) -> Audited:
    recorded = verdict and Recorded(
        verdict=verdict, estimate=0.5, interval=(0.4, float("inf")), unit="s", n=7, series=1
    )
    standing = order and ("confirmatory" if order in ("registered", "witnessed") else "exploratory")
    given = {"status": "registered" if order else "removed", "base": recorded, "head": recorded}
    return Audited(**{"id": name, "order": order, "standing": standing} | given | keys)


def reported(*findings: Finding, predictions=(), unproven=UNPROVEN, root=None, **keys) -> Reported:
    failing = [one for one in findings if one.fails]
    given = {
        "command": "audit",
        "study": "reward-latency",
        "subject": "reward-latency at cdff1b98",
        "file": Path("predictions.toml"),
        "root": root,
        "compared": "HEAD",
        "predictions": predictions or (prediction("quick-win"), prediction("late", "after-evidence", None)),
        "findings": tuple(sorted(findings, key=by_weight)),
        "unproven": tuple(unproven),
        "exit": (4 if all(one.untold for one in failing) else 1) if failing else 0,
    }
    return Reported(**given | keys)


BASE, HEAD = "4418f27a" * 5, "7ebe48e1" * 5
REGISTERED_IN, MEASURED_IN = "2f1c0de3" * 5, "9ab33e14" * 5


def recorded(verdict="supported", estimate=1.31, interval=(1.27, 1.35), **keys) -> Recorded:
    given = {"unit": "1", "n": 15, "series": 1}
    return Recorded(verdict=verdict, estimate=estimate, interval=interval, **given | keys)


def gated(*findings: Finding, predictions=(), **keys) -> Reported:
    """A gate on a pull request, as it is shown."""
    given = {"command": "gate", "subject": "kernels", "study": "kernels", "compared": BASE[:8]}
    given |= {"base": BASE, "head": HEAD, "covered": ".github/CODEOWNERS"}
    return reported(*findings, predictions=predictions, unproven=(), **given | keys)


def compared(name: str, base: Recorded | None, head: Recorded | None, **keys) -> Audited:
    """A prediction at both ends of a pull request, registered before it."""
    given = {"wants": "≥ 1.25", "registered": REGISTERED_IN, "measured": MEASURED_IN, "is_at_base": True}
    given |= keys
    commits = [(what, given[what]) for what in ("registered", "measured") if given[what]]
    came = tuple(
        Came(what=what, commit=commit, is_at_base=given["is_at_base"], follows=place > 0)
        for place, (what, commit) in enumerate(commits)
    )
    return prediction(name, **{"base": base, "head": head, "came": came} | given)


CHANGED = compared(
    "fused-is-faster",
    recorded(),
    recorded("inconclusive", 1.02, (0.97, 1.07), reason="straddles"),
    flags=("subject-changed",),
)
NEW = compared(
    "quick-win", None, recorded(estimate=1.12, interval=(1.08, 1.16), n=10), wants="≥ 1.05", is_at_base=False
)
GONE = compared(
    "old-claim",
    recorded("refuted", 0.7, (0.6, 0.8), n=10),
    None,
    status="removed",
    order=None,
    wants="",
    measured=None,
)
UNCHANGED = tuple(compared(f"same-{number}", recorded(), recorded()) for number in range(25))
PULL_REQUEST = (CHANGED, NEW, GONE, *UNCHANGED)
FOUND_IN_IT = (
    finding(
        "PR203",
        "old-claim",
        message='"old-claim" is registered, and is no longer in predictions.toml',
        advice="Put it back, or say why it is given up: pytest-prereg withdraw old-claim --reason '…'",
        line=None,
    ),
    finding(
        "PR204",
        "quick-win",
        Level.REVIEW,
        message='"quick-win" was registered in 2f1c0de3 and measured in 9ab33e14, both in this pull request',
        advice="Ask whether the expectation was there before the numbers. Merge it with its commits: a squash "
        "makes one of both. Whoever squashes tags the registration first:\n"
        "git switch --detach 2f1c0de3 && pytest-prereg lock --tag && git switch -\n"
        "git push origin prereg/kernels/0a1b2c3d",
        about="2f1c0de3",
    ),
    finding(
        "PR205",
        "fused-is-faster",
        Level.REVIEW,
        message='the recorded verdict of "fused-is-faster" was changed: from supported to inconclusive',
        about="supported -> inconclusive",
    ),
    finding("PR201", "quick-win", Level.NOTICE, message='"quick-win" was registered in 2f1c0de3'),
)
