"""The stand-in's sandboxes: what is executed in them, how it ends, and how they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import modal
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from standin_handle import Service

Make = "Callable[..., modal.Sandbox]"


@pytest.fixture
def make(service: Service) -> Callable[..., modal.Sandbox]:
    """``make(...)``: a sandbox; the command is the entrypoint's."""
    app = modal.App.lookup("sandboxes", create_if_missing=True)

    def create(*command: str, **options: Any) -> modal.Sandbox:
        return modal.Sandbox.create(*command, app=app, **{"timeout": 30, **options})

    return create


def executed(box: modal.Sandbox, *command: str, **options: Any) -> tuple[int, str, str]:
    process = box.exec(*command, **options)
    output, error = process.stdout.read(), process.stderr.read()
    return process.wait(), output, error


def test_what_is_executed_has_its_output_its_code_and_the_environment(make: Make):
    box = make(env={"COLOUR": "blue"})
    program = "import os, sys; print(os.environ['COLOUR']); print('bad', file=sys.stderr); sys.exit(3)"
    assert executed(box, "python3", "-c", program) == (3, "blue\n", "bad\n")
    secret = modal.Secret.from_dict({"WORD": "hush"})
    assert executed(box, "sh", "-c", "echo $WORD", secrets=[secret]) == (0, "hush\n", "")
    code, _, _ = executed(box, "sh", "-c", "kill -SEGV $$")
    assert code == 128 + 11


def test_standard_input_arrives_and_ends(make: Make):
    process = make().exec("cat")
    process.stdin.write(b"hello ")
    process.stdin.write("there")
    process.stdin.write_eof()
    process.stdin.drain()
    assert (process.stdout.read(), process.wait()) == ("hello there", 0)


def test_a_program_that_is_not_there_is_refused_with_its_name(make: Make):
    with pytest.raises(modal.exception.Error, match="no-such-program"):
        executed(make(), "no-such-program")


def test_what_is_executed_ends_at_its_timeout(make: Make):
    box = make()
    code, _, _ = executed(box, "sleep", "20", timeout=1)
    assert code in (-1, 137)  # either, by whether its output was read first
    assert executed(box, "true")[0] == 0


def test_a_sandbox_that_was_terminated_executes_nothing(service: Service, make: Make):
    box = make()
    pid = service.events("sandbox_started")[0]["pid"]
    assert service.state()["sandboxes"] == {box.object_id: pid}
    box.terminate(wait=True)
    with pytest.raises(modal.exception.NotFoundError):
        executed(box, "true")
    assert service.state()["sandboxes"] == {}
    assert service.events("sandbox_ended")[0]["status"] == "terminated"


def test_a_sandbox_ends_at_its_timeout_and_with_its_entrypoint(make: Make):
    with pytest.raises(modal.exception.SandboxTimeoutError):
        make("sleep", "30", timeout=1).wait()
    box = make("sh", "-c", "echo out; exit 5")
    box.wait()
    assert (box.returncode, box.stdout.read()) == (5, "out\n")


def test_a_sandbox_with_a_gpu_is_asked_for_in_the_older_way(service: Service, make: Make):
    box = make(gpu="L4")
    assert executed(box, "echo", "hi") == (0, "hi\n", "")
    box.terminate()
    assert service.state()["requests"]["SandboxCreate"] == 1
