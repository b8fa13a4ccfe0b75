"""Command lines as they are typed: split as a shell would, or left to one."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_prereg.registry.command_lines import as_written, split_command
from pytest_prereg.registry.placeholders import fill
from pytest_prereg.registry.refusals import RefusedError

PRINT = [sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))"]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("zstd -q -k -f data.bin", ["zstd", "-q", "-k", "-f", "data.bin"]),
        ("  zstd   data.bin ", ["zstd", "data.bin"]),
        ("grep 'a | b' \"c > d\" e\\&f", ["grep", "a | b", "c > d", "e&f"]),
        ("git diff HEAD~1 a#b", ["git", "diff", "HEAD~1", "a#b"]),
        ("awk '{print $1}' ''", ["awk", "{print $1}", ""]),
        ("a b\rc\r d", ["a", "b\rc\r", "d"]),
        ("./bench --json {out}/r.json", ["./bench", "--json", "{out}/r.json"]),
    ],
)
def test_a_program_is_started_without_a_shell(text, arguments):
    assert split_command(text)[:2] == (tuple(arguments), None)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a | b", "|"),
        ("a > b", ">"),
        ("a <b", "<"),
        ("a && b", "&"),
        ("a; b", ";"),
        ("a $HOME", "$"),
        ('a "$HOME"', "$"),
        ('a "\\$HOME"', "\\$"),
        ("a `b`", "`"),
        ("a *.bin", "*"),
        ("a file[12]", "["),
        ("a ~/b", "~"),
        ("a &", "&"),
        ("a # b", "#"),
        ("a\nb", "\n"),
        ("LC_ALL=C sort a", "LC_ALL="),
        ("! a", "!"),
    ],
)
def test_what_only_a_shell_can_act_on_is_left_to_one(text, sign):
    assert split_command(text)[:2] == (("sh", "-c", text), sign)


@pytest.mark.parametrize(
    ("text", "said"), [("a 'b", "no closing quotation"), ("", "no program"), ("'' a", "no program")]
)
def test_what_can_not_be_started_is_refused(text, said):
    with pytest.raises(RefusedError, match=said) as raised:
        split_command(text)
    assert raised.value.code == "PR136"


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs sh")
@settings(max_examples=30)
@given(st.text(st.sampled_from("ab \\'\"$`#~|={}!\n"), max_size=8))
def test_arguments_are_those_that_a_shell_would_pass(text):
    """Whatever is split without a shell is what ``sh`` hands to the program."""
    try:
        command = split_command(f"program {text}")
    except RefusedError:
        return
    if command.sign is not None:
        return
    printing = '"$0" -c "$1" ' + text
    done = subprocess.run(
        ["sh", "-c", printing, PRINT[0], PRINT[2]], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ascii(list(command.arguments[1:]))


@given(
    st.text(st.sampled_from("ab{}$"), max_size=12)
    | st.sampled_from(["{out}/r", "${out}", "{{out}}", "{port}"])
)
def test_only_out_and_port_are_placeholders_of_a_typed_command(argument):
    values = {"out": "O", "port": 1, "a": "wrong", "b": "wrong", "ab": "wrong"}
    wanted = {"{out}/r": "O/r", "{port}": "1", "{{out}}": "{out}"}.get(argument, argument)
    assert fill(as_written(argument), values) == wanted


@pytest.mark.parametrize(
    ("text", "braces"),
    [
        ("./bench {1..3}", "{1..3}"),
        ("./bench a{b,c}", "{b,c}"),
        ("./bench {1..3} | tail", "{1..3}"),
        ("./bench '{1..3}' \"{a,b}\" \\{a,b}", None),
        ("./bench {} {out} {a}", None),
        ('./bench \'{"a": 1, "b": 2}\'', None),
    ],
)
def test_what_other_shells_write_out_is_noticed(text, braces):
    assert split_command(text).braces == braces
