"""The one way in: findings in the format that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from pytest_prereg.report.findings.reported import Reported

Format = Literal["terminal", "markdown", "github", "gitlab", "sarif", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
_GATE = "gate"
"""The command whose findings are told prediction by prediction."""


def rendered(
    reported: Reported, form: Format, *, width: int = 80, every: bool = False, unicode: bool = True
) -> bytes:
    """Return findings in a format, as the bytes to write.

    Args:
        reported: What was found.
        form: The format.
        width: Of the terminal, in cells; only for it.
        every: Show each notice, where terminal and Markdown else take those of one code together.
        unicode: Whether the terminal shows more than ASCII; all else is UTF-8.
    """
    match form:
        case "terminal":
            return _text(_lines(reported, width, every=every, unicode=unicode))
        case "markdown":
            return _markdown(reported, every=every).encode()
        case "github":
            from pytest_prereg.report.findings.github import github_lines  # noqa: PLC0415

            return _text(github_lines(reported))
        case "gitlab":
            from pytest_prereg.report.findings.gitlab import gitlab_json  # noqa: PLC0415

            return gitlab_json(reported)
        case "sarif":
            from pytest_prereg.report.findings.sarif import sarif_json  # noqa: PLC0415

            return sarif_json(reported)
        case "json":
            from pytest_prereg.report.findings.document import document_json  # noqa: PLC0415

            return document_json(reported)


def _lines(reported: Reported, width: int, *, every: bool, unicode: bool) -> list[str]:
    if reported.command == _GATE:
        from pytest_prereg.report.findings.pull_request_terminal import pull_request_lines  # noqa: PLC0415

        return pull_request_lines(reported, width, every=every, unicode=unicode)
    from pytest_prereg.report.findings.terminal import terminal_lines  # noqa: PLC0415

    return terminal_lines(reported, width, every=every, unicode=unicode)


def _markdown(reported: Reported, *, every: bool) -> str:
    if reported.command == _GATE:
        from pytest_prereg.report.findings.pull_request_markdown import pull_request_markdown  # noqa: PLC0415

        return pull_request_markdown(reported, every=every)
    from pytest_prereg.report.findings.markdown import markdown_text  # noqa: PLC0415

    return markdown_text(reported, every=every)


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
