"""Loading causal language models: which weights they are, and that their parts make up the whole."""

from __future__ import annotations

import json
import shutil

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

from pytest_prereg.measure.workloads.language import causal_lm  # noqa: E402
from pytest_prereg.measure.workloads.language.causal_lm import TOY, ModelError, load  # noqa: E402
from pytest_prereg.measure.workloads.language.settings import model_problem  # noqa: E402

SMALL = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8}
WIDE = {"num_key_value_heads": 1, "intermediate_size": 24}
CONFIGS = {
    "qwen3": lambda: transformers.Qwen3Config(**SMALL, **WIDE, tie_word_embeddings=True, eos_token_id=3),
    "llama": lambda: transformers.LlamaConfig(**SMALL, **WIDE, eos_token_id=[3, 5]),
    "mistral": lambda: transformers.MistralConfig(**SMALL, **WIDE, sliding_window=8),
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=50, bos_token_id=3, eos_token_id=3
    ),
}


FORMAT = {"format": "pt"}


def saved(config, folder):
    torch.manual_seed(1)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return str(folder)


def place(file):
    file.parent.mkdir(exist_ok=True)
    return file


def name_weights(folder, file, by, weights):
    """Let an index or the configuration say that weights are in a file."""
    if by == "index":
        index = {"metadata": {}, "weight_map": dict.fromkeys(weights, file)}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    else:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "transformers_weights": file}))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small are slower on several, and far slower on a machine that is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """No test asks a network, whatever is in somebody's cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    # transformers 4 has a copy of it.
    monkeypatch.setattr(transformers.utils.hub, "TRANSFORMERS_CACHE", str(tmp_path / "hub"), raising=False)


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_model_of_any_kind_is_its_hidden_states_times_its_head(kind, tmp_path):
    model = load(saved(CONFIGS[kind](), tmp_path / kind))
    ids = torch.arange(12)[None] % model.vocabulary
    with torch.no_grad():
        logits = model.network(input_ids=ids).logits
        cache = model.new_cache()
        pieces = torch.cat([model.hidden_states(ids[:, :5], None, cache)], 1)
        mask = torch.ones(1, 12, dtype=torch.bool)
        rest = model.hidden_states(ids[:, 5:], mask, cache)
        found = torch.cat((pieces, rest), 1) @ model.head.T
    torch.testing.assert_close(found, logits)
    assert not model.network.training


@pytest.mark.parametrize("kind", ["qwen3", "gpt2"])
def test_padding_on_the_left_changes_nothing_beyond_rounding(kind, tmp_path):
    model = load(saved(CONFIGS[kind](), tmp_path / kind))
    ids = torch.tensor([[7, 8, 9]])
    padded, mask = torch.tensor([[0, 0, 7, 8, 9]]), torch.tensor([[False, False, True, True, True]])
    with torch.no_grad():
        torch.testing.assert_close(model.hidden_states(padded, mask)[:, 2:], model.hidden_states(ids))


def test_every_token_that_ends_a_completion_is_known(tmp_path):
    assert load(saved(CONFIGS["llama"](), tmp_path / "llama")).ends == (3, 5)
    assert load(saved(CONFIGS["gpt2"](), tmp_path / "gpt2")).ends == (3,)
    assert load(TOY).ends == (63,)


def test_the_tokens_that_a_model_generates_with_go_before_those_of_its_architecture(tmp_path):
    folder = saved(CONFIGS["qwen3"](), tmp_path / "model")
    transformers.GenerationConfig(eos_token_id=[3, 9]).save_pretrained(folder)
    assert load(folder).ends == (3, 9)


def test_equal_seeds_give_equal_weights_which_the_origin_names():
    one, same, other = load(TOY, seed=1), load(TOY, seed=1), load(TOY, seed=2)
    assert torch.equal(one.head, same.head)
    assert not torch.equal(one.head, other.head)
    assert (one.origin, other.origin) == ("toy-qwen3, seed 1", "toy-qwen3, seed 2")


def test_a_seed_is_drawn_in_full_precision_and_then_rounded():
    assert torch.equal(load(TOY, dtype="bfloat16").head, load(TOY).head.bfloat16())


def test_rotary_frequencies_are_not_rounded_with_the_weights(tmp_path):
    """Rounded to bfloat16, positions beyond some hundreds are no longer told apart."""
    folder = saved(CONFIGS["llama"](), tmp_path / "model")
    ours = load(folder, dtype="bfloat16")
    named = "dtype" if transformers.__version__ >= "5" else "torch_dtype"
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, **{named: torch.bfloat16})
    assert ours.head.dtype == torch.bfloat16
    assert all(buffer.dtype == torch.float32 for buffer in ours.network.buffers())
    ids = torch.arange(300)[None] % 40
    with torch.no_grad():
        assert torch.equal(ours.network(input_ids=ids).logits, theirs(input_ids=ids).logits)


def test_the_origin_of_a_folder_is_a_digest_of_its_weights_and_no_path(tmp_path):
    folder = saved(CONFIGS["qwen3"](), tmp_path / "one")
    copy = shutil.copytree(folder, tmp_path / "two")
    (copy / ".cache").mkdir()
    (copy / ".cache" / "downloaded").write_text("Unlike the other")
    origin = load(folder).origin
    assert load(str(copy)).origin == origin
    assert origin.startswith("sha256 ")
    assert str(tmp_path) not in origin


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "model.safetensors"])
def test_a_changed_byte_of_a_model_changes_its_origin(file, tmp_path):
    from pytest_prereg.measure.workloads.language.pretrained import digest

    folder = tmp_path / "model"
    saved(CONFIGS["qwen3"](), folder)
    before = digest(folder)
    content = bytearray((folder / file).read_bytes())
    content[-1] ^= 1
    (folder / file).write_bytes(content)
    assert digest(folder) != before


@pytest.mark.parametrize("named", ["weights.safetensors", "sub/model.safetensors"])
@pytest.mark.parametrize("by", ["index", "config"])
def test_weights_of_any_name_change_the_origin(named, by, tmp_path):
    folder = tmp_path / "model"
    saved(CONFIGS["qwen3"](), folder)
    moved = (folder / "model.safetensors").rename(place(folder / named))
    name_weights(folder, named, by, safetensors.load_file(moved))
    before = load(str(folder))
    safetensors.save_file(
        {name: 2 * each for name, each in safetensors.load_file(moved).items()}, moved, FORMAT
    )
    after = load(str(folder))
    assert not torch.equal(before.head, after.head)
    assert before.origin != after.origin


@pytest.mark.parametrize("named", ["../weights.safetensors", "/weights.safetensors", ".hidden/weights"])
@pytest.mark.parametrize("by", ["index", "config"])
def test_weights_that_no_digest_is_of_are_refused(named, by, tmp_path):
    folder = tmp_path / "model"
    saved(CONFIGS["qwen3"](), folder)
    name_weights(folder, named, by, ["model.norm.weight"])
    assert f'has weights in "{named}": name a file in its folder' in refused(folder)


def test_an_adapter_is_refused_since_its_model_is_elsewhere(tmp_path):
    folder = tmp_path / "model"
    saved(CONFIGS["qwen3"](), folder)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere"}')
    assert "has an adapter, whose model may be anywhere: give the two merged" in refused(folder)


def test_a_folder_that_is_linked_to_is_digested_and_a_circle_of_links_ends(tmp_path):
    from pytest_prereg.measure.workloads.language.pretrained import digest

    for folder in ("model", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "model" / "linked").symlink_to(tmp_path / "other")
    (tmp_path / "other" / "back").symlink_to(tmp_path / "model")
    before = digest(tmp_path / "model")
    (tmp_path / "other" / "weights").write_text("1")
    assert digest(tmp_path / "model") != before


def test_weights_that_change_places_change_the_origin(tmp_path):
    from pytest_prereg.measure.workloads.language.pretrained import digest

    for folder, contents in (("one", "ab"), ("two", "ba")):
        (tmp_path / folder).mkdir()
        for number, content in enumerate(contents):
            (tmp_path / folder / f"model-{number}.safetensors").write_text(content)
    assert digest(tmp_path / "one") != digest(tmp_path / "two")


def test_a_model_of_the_hub_is_named_by_its_commit(tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached = tmp_path / "hub" / "models--owner--small"
    saved(CONFIGS["qwen3"](), cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    assert load("owner/small").origin == f"owner/small@{commit}"
    assert load(f"owner/small@{commit}").origin == f"owner/small@{commit}"


def test_a_model_that_is_not_the_expected_one_is_refused(tmp_path):
    folder = saved(CONFIGS["qwen3"](), tmp_path / "model")
    known = load(folder).origin.removeprefix("sha256 ")
    load(folder, expect=known)
    load(folder, expect=known[:12])
    transformers.GenerationConfig(eos_token_id=[3, 9]).save_pretrained(folder)
    assert f'expect_model = "{known[:12]}", and model = ' in refused(folder, expect=known[:12])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tiny-quen3", 'there is no such model; did you mean "tiny-qwen3"?'),
        ("toy_qwen3", 'did you mean "toy-qwen3"?'),
        ("models/sft/last", "there is no such folder, as seen from the study's"),
        ("./mine", "no such folder"),
        ("/nowhere/mine", "no such folder"),
        ("models/min", 'where "models" is one; if the model of the hub is meant, write "models/min@main"'),
        (" ", "give a name on Hugging Face's hub, or a folder"),
        (7, "model = 7: give a name"),
    ],
)
def test_a_slip_in_a_name_is_told_before_a_network_is_searched(name, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    assert said in model_problem(name)


@pytest.mark.parametrize(
    "name",
    ["Qwen/Qwen3-0.6B", "gpt2", "me/tiny-quen3", "models/min@main", "tiny-quen3", "models", "toy-qwen3"],
)
def test_a_folder_that_is_there_and_what_the_hub_may_have_are_let_through(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "tiny-quen3").mkdir()
    assert model_problem(name) is None


def refused(name, **asked):
    with pytest.raises(ModelError) as found:
        load(str(name), **asked)
    assert "\n" not in str(found.value)
    assert found.value.__cause__ is None
    return str(found.value)


@pytest.mark.parametrize(("bend", "said"), [("soft cap", "final_logit_softcapping = 30.0"), ("bias", "bias")])
def test_a_model_that_bends_its_logits_is_refused(bend, said, tmp_path):
    """Gemma 2 bounds them, GPT-J adds a bias: hidden states times head are then plausible, and wrong."""
    config = (
        transformers.Gemma2Config(**SMALL, **WIDE)
        if bend == "soft cap"
        else transformers.GPTJConfig(vocab_size=40, n_embd=16, n_layer=1, n_head=2, rotary_dim=4)
    )
    network = transformers.AutoModelForCausalLM.from_config(config)
    if bend == "bias":
        torch.nn.init.normal_(network.lm_head.bias)
    network.save_pretrained(tmp_path / "model")
    assert said in refused(tmp_path / "model")


def test_a_model_that_keeps_a_soft_cap_off_is_taken(tmp_path):
    config = transformers.Gemma2Config(**SMALL, **WIDE, final_logit_softcapping=None, sliding_window=8)
    assert load(saved(config, tmp_path / "model")).vocabulary == 40


def test_a_model_with_a_state_in_place_of_keys_and_values_is_refused(tmp_path):
    small = {"vocab_size": 40, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 1}
    folder = saved(transformers.MambaConfig(**small, time_step_rank=2), tmp_path / "model")
    assert "read token by token" in refused(folder)


def test_what_is_not_in_reach_is_said_in_one_sentence(tmp_path):
    assert "can't be reached" in refused("owner/unheard-of")
    assert "neither a folder nor a name" in refused("../nothing/here/either")
    assert "has no config.json" in refused(tmp_path)


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("GatedRepoError", 403, "is gated: accept its terms at https://huggingface.co/owner/model"),
        ("RepositoryNotFoundError", 404, "nor a model on Hugging Face's hub"),
        ("RevisionNotFoundError", 404, "no such revision"),
    ],
)
def test_what_the_hub_refuses_is_said_in_one_sentence(kind, status, said):
    """Its errors as transformers wraps them; the hub itself is not asked."""
    from huggingface_hub import errors

    from pytest_prereg.measure.workloads.language.pretrained import _told

    class Response:
        headers, request, status_code = {}, None, status

    def ask():
        raise OSError("You are trying to access\na lot of text") from getattr(errors, kind)(
            "No", response=Response()
        )

    with pytest.raises(ModelError, match=said):
        _told("owner/model", ask)


def test_what_is_no_causal_language_model_is_refused(tmp_path):
    transformers.T5Config().save_pretrained(tmp_path)
    assert "is no causal language model that transformers knows (a T5Config)" in refused(tmp_path)


def test_damaged_files_are_refused(tmp_path):
    folder = tmp_path / "model"
    saved(CONFIGS["qwen3"](), folder)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    assert "can't be loaded: SafetensorError" in refused(folder)
    (folder / "model.safetensors").unlink()
    assert "can't be loaded: OSError" in refused(folder)
    (folder / "config.json").write_text("{")
    assert "is no JSON" in refused(folder)


def test_weights_that_are_not_finite_are_refused_by_name(tmp_path):
    network = transformers.AutoModelForCausalLM.from_config(CONFIGS["llama"]())
    network.lm_head.weight.data[3, 5] = float("nan")
    network.save_pretrained(tmp_path)
    assert 'some of its weights are not finite, in "lm_head.weight"' in refused(tmp_path)


def test_weights_that_lack_a_part_are_refused_rather_than_drawn(tmp_path):
    folder = saved(CONFIGS["qwen3"](), tmp_path / "model")
    config = CONFIGS["qwen3"]()
    config.num_hidden_layers = 3
    config.layer_types = None
    transformers.Qwen3Config(
        **{**SMALL, "num_hidden_layers": 3}, **WIDE, tie_word_embeddings=True
    ).save_pretrained(folder)
    assert "its files lack 11 of its weights" in refused(folder)


def test_what_is_on_no_machine_or_not_on_this_one_is_refused():
    with pytest.raises(ValueError, match='dtype = "float8": give "float32", "bfloat16" or "float16"'):
        load(TOY, dtype="float8")
    with pytest.raises(ValueError, match='device = "gpu": give "auto"'):
        load(TOY, device="gpu")
    assert "this machine has" in refused(TOY, device="cuda:99")


def test_auto_is_cuda_where_there_is_some():
    assert causal_lm.device_named("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
