"""Fetching the weights of a model that somebody trained, and telling which weights they are."""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NoReturn

from huggingface_hub import errors
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import cached_file

from pytest_prereg.measure.executors.exhaustion import is_out_of_memory
from pytest_prereg.measure.workloads.language.settings import is_folder
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from transformers import PretrainedConfig, PreTrainedModel

WORKLOAD_VERSION = "1"

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")


class ModelError(ValueError):
    """A model can't be had, or can't be run here; the message says why in one sentence."""


def pretrained(name: str) -> tuple[PreTrainedModel, str]:
    """Return a causal language model in the dtype of its file, and which weights they are.

    Args:
        name: A folder that ``save_pretrained`` wrote; else a name on Hugging Face's hub, ``owner/model`` or
            ``owner/model@revision``.

    Returns:
        The model, and ``owner/model@commit``, or ``sha256 …`` over names and bytes of the configuration and
        weight files of a folder.

    Raises:
        ModelError: There is none, or what is there can't be loaded whole.
    """
    if is_folder(name):
        folder = Path(name).expanduser()
        _check_folder(name, folder)
        return _load(name, str(folder), None), f"sha256 {digest(folder)}"
    where, _, revision = name.partition("@")
    commit = _commit(name, where, revision or None)
    return _load(name, where, commit), f"{where}@{commit}"


def digest(folder: Path) -> str:
    """Return the SHA-256 over names and bytes of a folder's files, those in its folders included.

    It is of all of them, since an index or a configuration may name any for weights; all but what is hidden,
    such as where a download notes its time, which none may name. It takes a second or two per GiB.
    """
    found = hashlib.sha256()
    for file in sorted(_files(folder)):
        with file.open("rb") as content:
            inside = hashlib.file_digest(content, "sha256").hexdigest()
        found.update(os.fsencode(file.relative_to(folder).as_posix()) + f"\0{inside}\n".encode())
    return found.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files that are not hidden; of a folder that a link leads to again, those once."""
    seen = set()
    for where, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(where)
        folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith("."))
        files = [] if real in seen else names
        seen.add(real)
        yield from (
            file for name in files if not name.startswith(".") and (file := Path(where, name)).is_file()
        )


def _check_folder(name: str, folder: Path) -> None:
    """Refuse what would be loaded from elsewhere than the files that make up the digest."""
    if not (folder / CONFIG).is_file():
        raise ModelError(
            f"model = {quoted(name)}: the folder has no {CONFIG}; give one that save_pretrained wrote"
        )
    if (folder / ADAPTER).is_file():
        raise ModelError(
            f"model = {quoted(name)} has an adapter, whose model may be anywhere: give the two merged"
        )
    for file in _named(name, folder):
        if any(part == ".." or part.startswith((".", "/")) for part in PurePath(file).parts):
            raise ModelError(
                f"model = {quoted(name)} has weights in {quoted(file)}: name a file in its folder, not hidden"
            )


def _named(name: str, folder: Path) -> Iterator[str]:
    """Yield what a folder's configuration and indices say that weights are in."""
    for file in (folder / CONFIG, *folder.rglob("*.index*.json")):
        content = _told(name, partial(_json, file))
        if isinstance(content, dict):
            by_weight = content.get("weight_map")
            yield from map(str, by_weight.values() if isinstance(by_weight, dict) else ())
            yield str(content.get("transformers_weights", ""))


def _json(file: Path) -> Any:
    return json.loads(file.read_bytes())


def _commit(name: str, where: str, revision: str | None) -> str:
    """Return the commit that a revision of a model on the hub is now; without a network, was last."""
    file = _told(name, lambda: cached_file(where, CONFIG, revision=revision))
    commit = Path(file).parent.name
    if not _COMMIT.fullmatch(commit):
        raise ModelError(f"model = {quoted(name)}: can't tell which commit of it is in the cache of the hub")
    return commit


def _load(name: str, where: str, revision: str | None) -> PreTrainedModel:
    # Custom code would ask at the terminal whether it may run.
    known = {"revision": revision, "trust_remote_code": False}
    config = _told(name, lambda: AutoConfig.from_pretrained(where, **known))
    _check_config(name, config)
    network, info = _told(
        name,
        lambda: AutoModelForCausalLM.from_pretrained(where, config=config, output_loading_info=True, **known),
    )
    # transformers draws what is missing at random, and warns.
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"model = {quoted(name)}: its files lack {len(missing)} of its weights, "
            f"such as {quoted(missing[0])}"
        )
    _check_finite(name, network)
    return network


def _check_finite(name: str, network: PreTrainedModel) -> None:
    for weight, values in network.named_parameters():
        if not values.isfinite().all():
            raise ModelError(
                f"model = {quoted(name)}: some of its weights are not finite, in {quoted(weight)}"
            )


def _check_config(name: str, config: PretrainedConfig) -> None:
    if type(config) not in AutoModelForCausalLM._model_mapping:  # noqa: SLF001
        raise ModelError(
            f"model = {quoted(name)} is no causal language model that transformers knows "
            f"(a {type(config).__name__})"
        )
    if getattr(config, "quantization_config", None) is not None:
        raise ModelError(
            f"model = {quoted(name)} is quantised, and a dtype would undo that; give its unquantised weights"
        )


def _told(name: str, loading: Callable[[], Any]) -> Any:
    """Return what ``loading`` does; raise what it raises as one sentence."""
    try:
        return loading()
    except Exception as error:  # noqa: BLE001  # each library and each kind of damage has its own
        _tell(name, error)


def _tell(name: str, error: BaseException) -> NoReturn:
    if is_out_of_memory(error):
        raise error
    chain = list(_chain(error))
    for kind, reason in _REASONS.items():
        if any(isinstance(each, kind) for each in chain):
            raise ModelError(f"model = {quoted(name)}{reason.format(name=name)}") from None
    said = " ".join(str(error).split()).partition(". ")[0]
    raise ModelError(f"model = {quoted(name)} can't be loaded: {type(error).__name__}: {said}") from None


_REASONS: dict[type[BaseException], str] = {
    errors.GatedRepoError: " is gated: accept its terms at https://huggingface.co/{name}, and log in "
    "(hf auth login)",
    errors.RevisionNotFoundError: ": the hub has the model, and no such revision of it",
    errors.RepositoryNotFoundError: " is neither a folder nor a model on Hugging Face's hub; if it is a "
    "private one, log in (hf auth login)",
    errors.HFValidationError: " is neither a folder nor a name on Hugging Face's hub, such as "
    '"Qwen/Qwen3-0.6B"',
    errors.LocalEntryNotFoundError: " is no folder, is not in the hub's cache, and Hugging Face's hub can't "
    "be reached; fetch it where there is a network (hf download {name}), or give a folder",
    errors.EntryNotFoundError: f": the hub has it without a {CONFIG}; give a model of transformers",
    json.JSONDecodeError: f": its {CONFIG} is no JSON",
}
"""By what is somewhere in the chain of causes, the narrower kind first."""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
