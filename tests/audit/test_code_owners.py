"""Who has to approve a change, by CODEOWNERS: what hosts document, and what they leave open.

GitHub's page is "About code owners" (docs.github.com), GitLab's are "Syntax of CODEOWNERS file" and "Advanced
CODEOWNERS configuration" (docs.gitlab.com/user/project/codeowners). Answers are as the pages say in words.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.audit.gating.code_owners import CodeOwners, code_owners
from pytest_prereg.audit.gating.owner_patterns import follows, pattern
from pytest_prereg.audit.gating.owners_on_github import asked_on_github
from pytest_prereg.audit.gating.owners_on_gitlab import asked_on_gitlab
from pytest_prereg.audit.history.git import Repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import GitRepository

    Files = dict[str, str | bytes]
    Read = Callable[..., CodeOwners | None]

LOCK = "bench/predictions.lock"
ROUNDS = 4000


def owners(line: str) -> tuple[str, ...]:
    return tuple(line.split())


# "About code owners", "Example of a CODEOWNERS file": the patterns, in its order.
GITHUB_EXAMPLE = """\
# This is a comment.
*       @global-owner1 @global-owner2
*.js    @js-owner #This is an inline comment.
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/* docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github
"""


@pytest.mark.parametrize(
    ("place", "asked"),
    [
        ("README", "@global-owner1 @global-owner2"),
        ("src/deep/x.c", "@global-owner1 @global-owner2"),
        ("src/x.js", "@js-owner"),
        ("x.go", "docs@example.com"),
        ("a/b/x.txt", "@octo-org/octocats"),
        ("build/x.txt", "@octo-org/octocats"),
        ("docs/getting-started.md", "@doctocat"),
        ("docs/build-app/troubleshooting.md", "@doctocat"),
        ("a/docs/b.md", "@global-owner1 @global-owner2"),
        ("scripts/x.js", "@doctocat @octocat"),
        ("build/logs/1.txt", "@octocat"),
        ("scripts/logs/1.txt", "@octocat"),
        ("deeply/nested/logs/1/2.txt", "@octocat"),
        ("a/apps/x.js", "@octocat"),
        ("apps/x", "@octocat"),
        ("apps/github", ""),
        ("apps/github/x.js", ""),
    ],
)
def test_github_asks_whom_its_example_says(place: str, asked: str):
    assert asked_on_github(GITHUB_EXAMPLE, place) == owners(asked)


@pytest.mark.parametrize(
    ("text", "place", "asked"),
    [
        # its example: "will match files like docs/getting-started.md but not further nested files"
        ("docs/* @a", "docs/getting-started.md", "@a"),
        ("docs/* @a", "docs/build-app/troubleshooting.md", ""),
        # its example: "except for the /apps/github subdirectory, as this subdirectory has its own owner"
        ("/apps/ @octocat\n/apps/github @doctocat", "apps/github/x", "@doctocat"),
        # "all the code owners must be on the same line"
        ("*.lock @a\n*.lock @b", LOCK, "@b"),
        # "CODEOWNERS paths are case sensitive"
        ("/Bench/ @a", LOCK, ""),
        # "CODEOWNERS and branch protection": whoever owns the file itself
        ("/.github/ @owner_username", ".github/CODEOWNERS", "@owner_username"),
        # gitignore's rules, "most" of which hold
        ("bench @a", LOCK, "@a"),
        ("/bench @a", LOCK, "@a"),
        ("bench/ @a", LOCK, "@a"),
        ("bench/ @a", "bench", ""),
        ("bench/predictions.lock @a", LOCK, "@a"),
        ("bench/predictions.lock @a", f"other/{LOCK}", ""),
        ("predictions.lock @a", f"other/{LOCK}", "@a"),
        ("/predictions.lock @a", LOCK, ""),
        ("**/predictions.lock @a", LOCK, "@a"),
        ("/**/predictions.lock @a", "predictions.lock", "@a"),
        ("bench/** @a", f"{LOCK}/below", "@a"),
        ("a/**/b @a", "a/b", "@a"),
        ("a/**/b @a", "a/x/y/b/c", "@a"),
        ("*.loc? @a", LOCK, "@a"),
        ("b*h/p*s.l*k @a", LOCK, "@a"),
        ("pre*ctions*.lock @a", "predictions.lockx", ""),
        ("/* @a", LOCK, ""),
        ("/* @a", "predictions.lock", "@a"),
        ("/ @a", LOCK, ""),
        (r"my\ bench/ @a", "my bench/predictions.lock", "@a"),
        (r"\*.lock @a", LOCK, ""),
        (r"\*.lock @a", "*.lock", "@a"),
        ("  *.lock\t@a  @b  \r", LOCK, "@a @b"),
    ],
)
def test_github_reads_patterns_as_gitignore_has_them(text: str, place: str, asked: str):
    assert asked_on_github(text, place) == owners(asked)


@pytest.mark.parametrize(
    "line",
    [
        # "There are some syntax rules for gitignore files that do not work in CODEOWNERS files"
        "!/bench/ @a",
        "*.loc[k] @a",
        r"\#bench/ @a",
        # lines that its API reports as errors: "Invalid pattern", "Invalid owner"
        "***/*.lock @a",
        "*.lock docs@",
        "*.lock @a, @b",
        "*.lock @a nobody",
        "*.lock @@maintainer",
        "*.lock @org/team/sub",
        "*.lock @a#b",
        "*.lock@a",
        # what it is silent on
        "bench#/ @a",
        "bench//predictions.lock @a",
        "*.lock\\ @a",
        "/bench/**/ @a",
        "*.lock\u00a0@a",
    ],
)
def test_a_line_that_github_may_not_read_gives_no_owners(line: str):
    assert asked_on_github(line, LOCK) == ()


@pytest.mark.parametrize(
    "line",
    [
        "*.lock",
        "*.lock # @a",
        "!*.lock",
        "!*.lock @a",
        "*.lock nobody",
        "*.loc[k]",
        "*.lo[c]k nobody",
        "*.lo[[]c]k",
        r"*.lo\[ck]",
        "***.lock",
        "bench#x @a",
        "/bench//predictions.lock",
        r"bench\/predictions.lock",
        "bench/**/",
        "*.lock#",
    ],
)
def test_a_later_line_that_may_take_owners_away_does(line: str):
    assert asked_on_github(f"* @a\n{line}", LOCK) == ()


@pytest.mark.parametrize(
    "line", ["*.loc[k] @b", "/bench/ @b, @c", "[Locks] @b", "[Locks", "#*.lock", "*.LOCK"]
)
def test_a_later_line_that_is_skipped_or_another_s_takes_nothing_away(line: str):
    assert asked_on_github(f"* @a\n{line}", LOCK) == ("@a",)


# "Syntax of CODEOWNERS file": the examples at its top.
GITLAB_EXAMPLE = """\
# Specify a default Code Owner for all files with a wildcard:
* @default-owner
README.md @doc-team @tech-lead
*.rb @ruby-owner
LICENSE @legal janedoe@gitlab.com
README @group @group/with-nested/subgroup
/docs/ @all-docs
/docs/* @root-docs
/docs/**/*.md @markdown-docs  # Match specific file types in any subdirectory
/db/**/index.md @index-docs   # Match a specific file name in any subdirectory
/config/ @@maintainer
"""

EXCLUDED = "* @username\n!pom.xml\n[Ruby]\n*.rb @ruby-team\n!/config/**/*.rb\n"
READMES = (
    "* @admin\n[README Owners]\nREADME.md @user1 @user2\ninternal/README.md @user4\n"
    "[README other owners]\nREADME.md @user3\n"
)
GENERAL = (
    "* @general-approvers\n[Documentation] @docs-team\ndocs/\nREADME.md\n*.txt\n"
    "[Database] @database-team\nmodel/db/\nconfig/db/database-setup.md @docs-team\n"
)


@pytest.mark.parametrize(
    ("text", "place", "asked"),
    [
        (GITLAB_EXAMPLE, "x", "@default-owner"),
        (GITLAB_EXAMPLE, "a/b/README.md", "@doc-team @tech-lead"),
        (GITLAB_EXAMPLE, "a/b.rb", "@ruby-owner"),
        (GITLAB_EXAMPLE, "LICENSE", "@legal janedoe@gitlab.com"),
        (GITLAB_EXAMPLE, "README", "@group @group/with-nested/subgroup"),
        (GITLAB_EXAMPLE, "docs/x/y.txt", "@all-docs"),
        (GITLAB_EXAMPLE, "docs/x.txt", "@root-docs"),
        (GITLAB_EXAMPLE, "docs/x/y.md", "@markdown-docs"),
        (GITLAB_EXAMPLE, "db/a/b/index.md", "@index-docs"),
        (GITLAB_EXAMPLE, "config/x/y", "@@maintainer"),
        # "Sections"
        (READMES, "README.md", "@admin @user1 @user2 @user3"),
        (READMES, "internal/README.md", "@admin @user4 @user3"),
        # "Optional sections", and of two of one name
        ("[Documentation]\n*.md @root\n^[Go]\n*.go @root", "x.md", "@root"),
        ("[Documentation]\n*.md @root\n^[Go]\n*.go @root", "x.go", ""),
        ("[Go]\n*.mod @a\n^[GO]\n*.go @root", "x.go", "@root"),
        # "Path matching": absolute, relative, directory, wildcard and globstar paths
        ("/README.md @a", "README.md", "@a"),
        ("/README.md @a", "docs/README.md", ""),
        ("/docs/README.md @a", "docs/README.md", "@a"),
        ("README.md @username", "app/lib/README.md", "@username"),
        ("internal/README.md @a", "docs/api/internal/README.md", "@a"),
        ("/docs/ @a", "docs/a/b", "@a"),
        ("/docs @a", "docs/a", ""),
        ("/docs/*.md @username", "docs/x.md", "@username"),
        ("/docs/*.md @username", "docs/api/x.md", ""),
        ("/docs/index.* @username", "docs/index.html", "@username"),
        ("/docs/*spec* @username", "docs/runtime.spec", "@username"),
        ("/docs/*/README.md @username", "docs/api/README.md", "@username"),
        ("/docs/*/README.md @username", "docs/README.md", ""),
        ("/docs/**/index.md @a", "docs/index.md", "@a"),
        ("/docs/**/index.md @a", "docs/api/graphql/index.md", "@a"),
        ("**/*.rb @a", "app/controllers/users/stars_controller.rb", "@a"),
        ("* @a", ".gitignore", "@a"),
        ("/docs/** @a", "docs/x", "@a"),
        ("/docs/** @a", "docs/x/y", ""),
        # "Exclusion patterns"
        (EXCLUDED, "pom.xml", ""),
        (EXCLUDED, "x/pom.xml", ""),
        (EXCLUDED, "a.rb", "@username @ruby-team"),
        (EXCLUDED, "config/a/b.rb", "@username"),
        ("* @default-owner\n!*.rb\n/special/*.rb @ruby-owner", "special/x.rb", ""),
        (
            "[Ruby]\n*.rb @ruby-team\n!/config/**/*.rb\n[Config]\n/config/ @ops-team",
            "config/a.rb",
            "@ops-team",
        ),
        ("* @default-owner\n!**/generated/", "a/generated/b/c", ""),
        ("* @default-owner\n!**/generated/", "a/b/c", "@default-owner"),
        # "Regular entries and sections", "Set default Code Owner for a section"
        (GENERAL, "model/db/CHANGELOG.txt", "@general-approvers @docs-team @database-team"),
        (GENERAL, "config/db/database-setup.md", "@general-approvers @docs-team"),
        ("[Documentation][2] @docs-team\ndocs/\n", "docs/x", "@docs-team"),
        # "Sections with duplicate names", "Define Code Owners for specific files or directories"
        ("[Doc]\ndocs/ @docs\n[Db]\nx @d\n[DOC]\nREADME.md @docs2", "docs/README.md", "@docs2"),
        ("*.md @doc-team\nterms.md @legal-team", "terms.md", "@legal-team"),
        # "Entries with spaces", "Unparsable sections", "Malformed owners", "Zero owners"
        (r"path\ with\ spaces/*.md @owner", "path with spaces/x.md", "@owner"),
        ("folder with spaces/*.md @group", "folder", "@group"),
        ("* @group\n[Section name\ndocs/ @docs_group", "x", "@group"),
        ("* @group\n[Section name\ndocs/ @docs_group", "docs/x", "@docs_group"),
        ("/path/* @group user_without_at @user_with_at", "path/x", "@group @user_with_at"),
        ("* @group\n/path/", "path/x", ""),
        ("* @group\n/path/ nobody", "path/x", ""),
        (r"\#file_with_pound.rb @a", "examples/#file_with_pound.rb", "@a"),
    ],
)
def test_gitlab_asks_whom_its_pages_say(text: str, place: str, asked: str):
    assert asked_on_gitlab(text, place) == owners(asked)


@pytest.mark.parametrize(
    "text",
    [
        "*.lock # @a",  # "Inline comments are unsupported", and yet one may look like it
        "[Locks] @a\n*.lock # everybody",
        "[Locks] # @a\n*.lock",
        "[Locks][q] @a\n*.lock",
        "^[Locks] @a\n*.lock",
        "*.lock @a,@b",
        "*.lock @@guest",
        "*.loc[k] @a",
        "*.lock @a\n*.loc[k]",
        "!*.lock\n*.lock @a",  # "it cannot be included again in the same section"
        "*.lock @a\n*\n*.lock @a",  # documented: the last; GitLab's code: in the place of the first
        "*.lock\n* @a\n*.lock",
        "[a]\n*.lock @a\n^[A]\n*.lock @a",  # the same entry, then in a section that is optional
        "* @a\n[codeowners]\n!*.lock",
        "* @a\n!",
    ],
)
def test_what_gitlab_may_read_in_two_ways_gives_no_owners(text: str):
    assert asked_on_gitlab(text, LOCK) == ()


def _patterns(rng: random.Random) -> str:
    names = ["a", "b", "ab", "*", "**", "a*", "*b", "?", "a?", "*a*b*", r"\a", ".a", "?*"]
    parts = "/".join(rng.choices(names, k=rng.choice([1, 1, 2, 2, 3, 4])))
    return rng.choice(["", "/"]) + parts + rng.choice(["", "", "/"])


def _paths(rng: random.Random) -> str:
    return "/".join(rng.choices(["a", "b", "ab", "aab", ".a", "ba", "b.a"], k=rng.randint(1, 4)))


def test_patterns_match_as_another_implementation_of_github_s_has_them():
    """Of ``codeowners``, after hmarr/codeowners; ``**/`` at the end is told in two ways, and is not sure here."""
    other = pytest.importorskip("codeowners")
    rng = random.Random(1)
    cases = [(_patterns(rng), _paths(rng)) for _ in range(ROUNDS)]
    answers = {
        case: (
            bool(asked_on_github(f"{case[0]} @a", case[1])),
            bool(other.CodeOwners(f"{case[0]} @a").of(case[1])),
        )
        for case in cases
        if not case[0].endswith("**/")
    }
    assert {case: answer for case, answer in answers.items() if answer[0] != answer[1]} == {}
    assert sum(mine for mine, _ in answers.values()) > 300


def test_whole_files_decide_as_another_implementation_of_github_s_has_them():
    other = pytest.importorskip("codeowners")
    rng = random.Random(2)
    for _ in range(ROUNDS // 4):
        lines = [f"{_patterns(rng)}{rng.choice(['', ' @a', ' @b @c', ' d@e.org'])}" for _ in range(6)]
        text, place = "\n".join(line for line in lines if "**/ " not in f"{line} "), _paths(rng)
        assert asked_on_github(text, place) == tuple(name for _, name in other.CodeOwners(text).of(place))


def test_patterns_match_as_git_s_own_rules_have_them(git_repository: Callable[..., GitRepository]):
    """But for ``docs/*``, which takes in no folder: the exception that GitHub documents."""
    repository, rng = git_repository(), random.Random(3)
    for _ in range(60):
        line = _patterns(rng)
        places = sorted({_paths(rng) for _ in range(60)})
        repository.write(".gitignore", f"{line}\n")
        done = subprocess.run(
            ["git", "check-ignore", "--no-index", "--stdin"],
            cwd=repository.path,
            input="\n".join(places),
            capture_output=True,
            text=True,
            check=False,
        )
        ignored = set(done.stdout.splitlines())
        covered = {place for place in places if asked_on_github(f"{line} @a", place)}
        is_narrower = line.endswith(("/*", "**/"))
        assert covered <= ignored if is_narrower else covered == ignored, line


@pytest.mark.skipif(shutil.which("ruby") is None, reason="needs ruby")
def test_patterns_match_as_ruby_has_them_which_gitlab_asks():
    rng = random.Random(4)
    cases = [(f"/{_patterns(rng).strip('/')}", _paths(rng)) for _ in range(ROUNDS)]
    script = (
        "require 'json'; flags = File::FNM_DOTMATCH | File::FNM_PATHNAME;"
        "puts JSON.parse(STDIN.read).map { |text, path| File.fnmatch?(text, '/' + path, flags) }.to_json"
    )
    asked = json.dumps(cases)
    done = subprocess.run(["ruby", "-e", script], input=asked, capture_output=True, text=True, check=True)
    mine = [bool(asked_on_gitlab(f"{text} @a", path)) for text, path in cases]
    assert mine == json.loads(done.stdout)


@pytest.mark.parametrize(
    "line",
    [
        "*a" * 30_000,
        "a*/**/" * 15_000,
        "**/*?" * 15_000,
        "?" * 90_000,
        "[" * 90_000,
        "[a][" * 30_000,
        "\\" * 90_001,
        "* @" + "a-/" * 30_000 + "!",
        "* " + "a.a@" * 30_000,
        "[a] " + "@" * 90_000 + " x",
        "/" * 90_000,
        "a#" * 30_000,
    ],
    ids=lambda line: line[:6],
)
def test_no_pattern_takes_long(line: str):
    place = "/".join(["a" * 60] * 20)
    for text in (line, f"{line} @a", f"{line}b @a"):
        read = CodeOwners(path="CODEOWNERS", readings=(("github", text), ("gitlab", text)))
        assert read.owners(place) == ()


@pytest.mark.parametrize("count", [1, 5, 40])
def test_many_asterisks_find_what_there_is(count: int):
    assert follows(["ab" * count], pattern(["*a*b" * count]).names)
    assert not follows(["ab" * count], pattern(["*a*b" * (count + 1)]).names)
    assert follows(["a", "b"] * count, pattern(["**", "a", "**", "b"] * count).names)
    assert not follows(["a", "b"] * count, pattern(["**", "a", "**", "b"] * (count + 1)).names)


@pytest.fixture
def committed(git_repository: Callable[..., GitRepository]) -> Read:
    """What is read of a commit that has these files."""

    def read(files: Files, host: str | None = None) -> CodeOwners | None:
        repository = git_repository()
        for name, text in files.items():
            repository.write(name, "").write_bytes(text if isinstance(text, bytes) else text.encode())
        return found(repository, host)

    return read


def found(repository: GitRepository, host: str | None = None) -> CodeOwners | None:
    commit, known = repository.commit("all"), Repository.find(repository.path)
    assert known is not None
    return code_owners(known, commit, host)


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({".github/CODEOWNERS": "* @a"}, ".github/CODEOWNERS"),
        ({"CODEOWNERS": "* @a"}, "CODEOWNERS"),
        ({"docs/CODEOWNERS": "* @a"}, "docs/CODEOWNERS"),
        ({".gitlab/CODEOWNERS": "* @a"}, ".gitlab/CODEOWNERS"),
        ({".github/CODEOWNERS": "* @a", "docs/CODEOWNERS": "* @a"}, ".github/CODEOWNERS"),
        ({"CODEOWNERS": "* @a", "docs/CODEOWNERS": "*", ".gitlab/CODEOWNERS": "*"}, "CODEOWNERS"),
        ({"docs/CODEOWNERS": "* @a", ".gitlab/CODEOWNERS": "*"}, "docs/CODEOWNERS"),
    ],
)
def test_the_first_file_is_read_where_a_host_looks(committed: Read, files: Files, path: str):
    owners = committed(files)
    assert owners is not None
    assert (owners.path, owners.owners(LOCK)) == (path, ("@a",))


@pytest.mark.parametrize(
    "name",
    [
        "bench/CODEOWNERS",
        "codeowners",
        ".github/codeowners",
        ".github/x/CODEOWNERS",
        "CODEOWNERS.md",
        ".gitea/CODEOWNERS",
    ],
)
def test_a_file_where_no_host_looks_is_none(committed: Read, name: str):
    assert committed({name: "* @a", "x": ""}) is None


@pytest.mark.parametrize(
    "files",
    [
        {".github/CODEOWNERS": "* @a", "CODEOWNERS": "*"},  # GitLab reads the second
        {".github/CODEOWNERS": "", "CODEOWNERS": "* @a"},
        {".github/CODEOWNERS": "* @a", ".gitlab/CODEOWNERS": "x @a"},
        {"CODEOWNERS": "* @a", ".github/CODEOWNERS/x": "* @a"},  # a folder
        {"CODEOWNERS": "bench @a"},  # on GitLab a folder needs its slash
        {"CODEOWNERS": "* @a\n!*.lock"},  # on GitLab an exclusion
        {"CODEOWNERS": "* @@owner"},  # on GitHub nobody
        {"CODEOWNERS": "* @a\n/bench/"},
        {"CODEOWNERS": "*.lock @a\n* @b\n*.lock"},
    ],
)
def test_nobody_is_asked_where_one_host_would_ask_nobody(committed: Read, files: Files):
    owners = committed(files)
    assert owners is not None
    assert owners.owners(LOCK) == ()


def test_a_file_with_sections_is_gitlab_s_alone(committed: Read):
    files: Files = {"CODEOWNERS": "[Locks][2] @a @b\n/bench/"}
    for host, asked in ((None, ("@a", "@b")), ("gitlab", ("@a", "@b")), ("github", ())):
        owners = committed(files, host)
        assert owners is not None
        assert owners.owners(LOCK) == asked


def test_a_known_host_reads_its_own_file_alone(committed: Read):
    files: Files = {".github/CODEOWNERS": "* @a", "CODEOWNERS": "* @b"}
    for host, path, asked in (("github", ".github/CODEOWNERS", ("@a",)), ("gitlab", "CODEOWNERS", ("@b",))):
        owners = committed(files, host)
        assert owners is not None
        assert (owners.path, owners.owners(LOCK)) == (path, asked)
    assert committed({".github/CODEOWNERS": "* @a"}, "gitlab") is None
    assert committed(files, "another") is None


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf* @a\n",
        b"* @a\n# \xff\n",
        "* @a\n".encode("utf-16"),
        b"* @a\0\n",
        b"* @a\r*.lock\n",
        "* @a\u2028*.lock\n".encode(),
        b"* @a\n\x0c\n",
        b"* @a\n" + b"#" * 3_000_000,
    ],
    ids=["mark", "latin", "utf-16", "nul", "return", "separator", "feed", "huge"],
)
def test_what_hosts_may_read_in_two_ways_asks_nobody(committed: Read, data: bytes):
    owners = committed({"CODEOWNERS": data})
    assert owners is not None
    assert owners.owners(LOCK) == ()


def test_line_ends_of_windows_change_nothing(committed: Read):
    owners = committed({"CODEOWNERS": "# all\r\n\r\n* @a\r\n/bench/ @b @c\r\n"})
    assert owners is not None
    assert owners.owners(LOCK) == ("@b", "@c")


@pytest.mark.parametrize("link", ["CODEOWNERS", "docs"])
def test_a_link_asks_nobody_whatever_it_leads_to_or_is_called(
    git_repository: Callable[..., GitRepository], link: str
):
    repository = git_repository()
    repository.write("owned/CODEOWNERS", "* @a\n")
    target = "owned/CODEOWNERS" if link == "CODEOWNERS" else "owned"
    for name in (target, "* @a"):
        (repository.path / link).unlink(missing_ok=True)
        (repository.path / link).symlink_to(name)
        owners = found(repository)
        assert owners is not None
        assert owners.owners(LOCK) == ()


@pytest.mark.parametrize("name", ["CODEOWNERS", ".github"])
def test_a_submodule_asks_nobody(git_repository: Callable[..., GitRepository], name: str):
    inner, repository = git_repository(), git_repository()
    inner.write("CODEOWNERS", "* @a\n")
    commit = inner.commit("theirs")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{name}")
    repository.git("commit", "--quiet", "--message", "a submodule")
    known = Repository.find(repository.path)
    assert known is not None
    owners = code_owners(known, "HEAD")
    assert owners is not None
    assert owners.owners(LOCK) == ()


def test_the_commit_is_read_and_not_the_work_tree(git_repository: Callable[..., GitRepository]):
    repository = git_repository()
    repository.write("CODEOWNERS", "* @a\n")
    first = repository.commit("owned")
    repository.write("CODEOWNERS", "* @mallory\n")
    repository.commit("taken over")
    repository.write(".github/CODEOWNERS", "* @mallory\n")
    known = Repository.find(repository.path)
    assert known is not None
    owners = code_owners(known, first)
    assert owners is not None
    assert owners.owners(LOCK) == ("@a",)
