"""GRPO steps: what each stage hands on, what is counted, and that nothing hangs on when a reward arrives."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grpo_runs import Data, Parity, digest, loop_of, policy, setting, train, weights  # noqa: E402

from pytest_prereg.measure.workloads.language.completions import Kind  # noqa: E402
from pytest_prereg.measure.workloads.language.scoring import response_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.learning import journal, updates  # noqa: E402
from pytest_prereg.measure.workloads.learning.learning_stage import MismatchError  # noqa: E402
from pytest_prereg.measure.workloads.learning.reward_ledger import (  # noqa: E402
    Grade,
    RewardUnavailableError,
)
from pytest_prereg.measure.workloads.learning.rollouts import batch_of  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _one_thread():
    """A toy is faster so, and doesn't hold up what else is tested."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Alike(Parity):
    """Pays everybody the same."""

    def grade(self, each):
        super().grade(each)
        return Grade(reward=1.0)


def only(measured):
    return {name: samples[0] for name, samples in measured.samples.items() if len(samples) == 1}


def test_an_update_is_the_policy_gradient_of_the_rewards_worked_out_by_hand():
    """Against logits of the whole model, log_softmax, and AdamW of torch's own, on what was really sampled."""
    grader = Parity()
    loop = train(1, grader=grader)
    sampled = sorted(grader.asked, key=lambda each: each.id)
    rewards = torch.tensor([grader.grade(each).reward for each in sampled]).view(2, 4)
    gains = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)

    ours = policy(setting()).model.network
    optimiser = torch.optim.AdamW(ours.parameters(), lr=1e-2, weight_decay=0.0)
    total = 0.0
    for each, gain in zip(sampled, gains.flatten(), strict=True):
        ids = torch.tensor([each.ids])
        log_probs = ours(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None]).squeeze(1)
        total = total - gain * log_probs[3:].sum()
    (total / sum(each.count(Kind.RESPONSE) for each in sampled)).backward()
    norms = [each.grad.norm() for each in ours.parameters()]
    assert loop.progress.measured[0].notes["updates"][0]["gradient_norm"] == pytest.approx(
        float(torch.stack(norms).norm()), rel=1e-4
    )
    optimiser.step()
    # The first step of AdamW is as long wherever there is a gradient: the sign counts, of what isn't rounding.
    for found, expected in zip(weights(loop), ours.parameters(), strict=True):
        certain = expected.grad.abs() > 1e-6
        torch.testing.assert_close(found[certain], expected[certain], rtol=1e-4, atol=1e-4)


def test_what_was_rewarded_gets_likelier_and_the_rest_of_its_group_does_not():
    class First(Parity):
        def grade(self, each):
            super().grade(each)
            return Grade(reward=float(each.id.endswith("/0")))

    grader = First()
    loop = train(1, grader=grader, learning_rate=1e-3)
    sampled = sorted(grader.asked, key=lambda each: each.id)
    batch = batch_of(sampled, pad=0)
    gains = response_log_probs(loop._policy.model, batch.ids, batch.kinds) - batch.behaviour
    by_group = gains.sum(1).view(2, 4)
    assert (by_group[:, 0] > 0).all()
    assert (by_group.argmax(1) == 0).all()


@pytest.mark.parametrize("fields", [{}, {"mini_batches": 2, "epochs": 2}, {"rollout_dtype": "bfloat16"}])
def test_overlapped_rewards_change_no_bit(fields):
    delayed = Parity(delay=lambda each: 0.01 * (each.ids[-1] % 3))
    apart = train(2, generate_at_once=1, **fields)
    together = train(2, generate_at_once=1, overlap=True, grader=delayed, **fields)
    assert digest(together) == digest(apart)


@pytest.mark.parametrize("overlap", [True, False])
def test_with_overlap_the_first_group_is_rewarded_while_the_next_is_generated(overlap):
    begun = threading.Event()

    class Told(Parity):
        def grade(self, each):
            begun.set()
            return super().grade(each)

    class Second(Data):
        def __call__(self, start, count):
            if start == 1:
                assert begun.wait(10 if overlap else 0) is overlap
            return super().__call__(start, count)

    train(1, grader=Told(), data=Second(), generate_at_once=1, overlap=overlap)
    assert begun.is_set()


@pytest.mark.parametrize("overlap", [True, False])
def test_no_reward_waits_for_the_disk_and_the_disk_hides_none(tmp_path, monkeypatch, overlap):
    """Nothing reaches the disk before everything has been graded."""
    graded = threading.Semaphore(0)

    class Told(Parity):
        def grade(self, each):
            graded.release()
            return super().grade(each)

    loop = loop_of(setting(generate_at_once=1, overlap=overlap), grader=Told(), folder=tmp_path)
    really = journal.os.fsync

    def fsync(descriptor):
        assert all(graded.acquire(timeout=2) for _ in range(8))
        graded.release(8)
        really(descriptor)

    monkeypatch.setattr(journal.os, "fsync", fsync)
    loop.step()


def test_micro_batches_change_nothing_but_rounding():
    whole, cut = train(1), train(1, micro_batch=3)
    assert cut.progress.trajectories == whole.progress.trajectories
    one, other = (each.progress.measured[0].notes["updates"][0] for each in (whole, cut))
    assert one["denominator"] == other["denominator"]
    assert one["gradient_norm"] == pytest.approx(other["gradient_norm"], rel=1e-4)


def test_a_single_update_has_its_old_log_probabilities_of_its_own_pass():
    found = only(train(1).progress.measured[0])
    assert found["tokens_scored"] == found["t_score"] == 0
    assert found["ratio_largest"] == 1
    assert found["policy_version"] == 1


def test_several_updates_are_held_against_the_policy_that_sampled():
    loop = train(1, mini_batches=2, epochs=3, learning_rate=0.1)
    found = only(loop.progress.measured[0])
    assert found["tokens_scored"] == found["tokens_generated"] == found["tokens"]
    assert found["t_score"] > 0
    assert found["policy_version"] == 6
    assert found["clipped"] > 0
    assert found["ratio_largest"] > 1.2
    # However far the policy went, what sampled and what scored are the same weights.
    assert found["mismatch_largest"] < 1e-4
    assert [each["version"] for each in loop.progress.measured[0].notes["updates"]] == list(range(6))


@pytest.mark.parametrize("fields", [{"temperature": 0.5}, {"turns": 2, "tool_tokens": 3, "micro_batch": 3}])
def test_what_samples_and_what_trains_agree_on_every_token(fields):
    found = only(train(1, **fields).progress.measured[0])
    assert found["mismatch_largest"] < 1e-5


def test_rollouts_in_bfloat16_are_apart_from_a_float32_pass_and_follow_the_weights():
    same, other = train(1), train(2, rollout_dtype="bfloat16")
    found = only(other.progress.measured[0])
    assert 0 <= only(same.progress.measured[0])["mismatch_mean"] < 1e-5
    assert found["mismatch_mean"] > 1e-4
    assert found["mismatch_largest"] >= found["mismatch_mean"]
    assert found["kl"] > 0
    assert found["t_sync"] > 0
    pairs = zip(other._policy.sampler.network.parameters(), weights(other), strict=True)
    assert all(torch.equal(mine, trained.bfloat16()) for mine, trained in pairs)


def test_what_teaches_nothing_is_kept_or_discarded_and_counted_either_way():
    keeping, dropping = (
        train(1, grader=Alike(), zero_variance=how, learning_rate=0.5) for how in ("keep", "drop")
    )
    kept, dropped = (only(each.progress.measured[0]) for each in (keeping, dropping))
    assert kept["zero_variance_groups"] == dropped["zero_variance_groups"] == dropped["groups"] == 2
    assert (kept["tokens"], kept["tokens_discarded"]) == (dropped["tokens_discarded"], dropped["tokens"])
    assert (kept["policy_version"], dropped["policy_version"]) == (1, 0)
    assert all(
        torch.equal(*pair)
        for pair in zip(weights(dropping), policy(setting()).model.network.parameters(), strict=True)
    )
    # How far the two sides are apart is known nevertheless, and what that took is counted.
    assert dropped["tokens_scored"] == dropped["tokens_generated"]
    assert (kept["updates"], dropped["updates"]) == (1, 0)
    assert not {"t_train", "clipped", "ratio_largest"} & set(dropping.progress.measured[0].samples)


def test_one_group_of_two_is_dropped():
    class Half(Parity):
        def grade(self, each):
            return Grade(reward=1.0) if each.prompt == 0 else super().grade(each)

    grader = Half()
    found = only(train(1, grader=grader, zero_variance="drop").progress.measured[0])
    assert found["tokens"] == sum(each.count(Kind.RESPONSE) for each in grader.asked)
    assert found["tokens"] + found["tokens_discarded"] == found["tokens_generated"]
    assert found["tokens_scored"] == found["tokens_discarded"] > 0


@pytest.mark.parametrize("fields", [{}, {"epochs": 2}])
def test_dropping_hides_no_drift(fields):
    class Half(Parity):
        def grade(self, each):
            return Grade(reward=1.0) if each.prompt == 0 else super().grade(each)

    kept, dropped = (
        only(
            train(1, grader=Half(), zero_variance=how, rollout_dtype="bfloat16", **fields).progress.measured[
                0
            ]
        )
        for how in ("keep", "drop")
    )
    assert dropped["tokens"] < kept["tokens"]
    for name in ("mismatch_mean", "mismatch_largest", "kl"):
        assert dropped[name] == pytest.approx(kept[name], rel=1e-3)


def test_completions_that_filled_the_context_may_be_dropped():
    kept, dropped = (
        only(train(1, context=7, truncated=how).progress.measured[0]) for how in ("keep", "drop")
    )
    assert kept["truncated"] == dropped["truncated"] > 0
    assert kept["tokens"] == kept["tokens_generated"]
    assert dropped["tokens_discarded"] >= 3 * dropped["truncated"]


def test_tool_tokens_are_read_and_bear_no_loss():
    grader = Parity()
    loop = train(1, grader=grader, turns=2, tool_tokens=3)
    found = only(loop.progress.measured[0])
    assert found["tokens_tool"] == sum(each.count(Kind.TOOL) for each in grader.asked) == 24
    assert found["tokens"] == found["tokens_generated"] > 8 * 5
    again = train(1, turns=2, tool_tokens=3)
    assert digest(again) == digest(loop)


def test_what_a_tool_says_hangs_on_its_own_conversation_alone():
    """Not on how far others make it be padded, nor by what."""
    grader = Parity()
    loop = loop_of(setting(turns=2, tool_tokens=3), grader=grader)
    model = loop._policy.model
    object.__setattr__(model, "pad", 5)
    object.__setattr__(model, "ends", tuple(range(32, 64)))
    loop.step()
    lengths = set()
    for each in grader.asked:
        first = each.kinds.index(Kind.TOOL)
        shown = sum(token for token in each.ids[:first] if token != model.pad)
        said = [((shown + 1) * 31 + place * 17) % 64 for place in range(3)]
        assert each.tokens(Kind.TOOL) == said
        lengths.add(first)
    assert len(lengths) > 1


def test_each_trajectory_names_its_step_prompt_and_policy():
    grader, data = Parity(), Data()
    train(2, grader=grader, data=data, mini_batches=2)
    assert data.asked == [0, 1, 2, 3]
    assert len({each.id for each in grader.asked}) == 16
    assert {(each.id.split("/")[0], each.prompt, each.version) for each in grader.asked} == {
        ("0", 0, 0),
        ("0", 1, 0),
        ("1", 2, 2),
        ("1", 3, 2),
    }


def test_equal_seeds_train_alike_and_rewards_in_another_order_change_nothing():
    slow = Parity(delay=lambda each: 0.005 * (hash(each.id) % 5))
    assert digest(train(2)) == digest(train(2, grader=slow)) != digest(train(2, temperature=0.9))


def test_a_reward_that_cannot_be_had_ends_the_run_and_updates_nothing():
    class Gone(Parity):
        def grade(self, each):
            if each.id == "0/1/2":
                raise RewardUnavailableError("connection refused")
            return super().grade(each)

    loop = loop_of(setting(attempts=2), grader=Gone())
    with pytest.raises(RewardUnavailableError, match="0/1/2 has no reward after 2 attempts: connection"):
        loop.step()
    assert loop.progress.step == 0
    assert len(loop.ledger.faults) == 2
    assert all(
        torch.equal(*pair)
        for pair in zip(weights(loop), policy(setting()).model.network.parameters(), strict=True)
    )


def test_warming_up_makes_the_moments_and_moves_nothing():
    fields = {"mini_batches": 2, "turns": 2, "tool_tokens": 1, "rollout_dtype": "bfloat16"}
    loop = loop_of(setting(**fields))
    loop.warm_up()
    moments = loop._policy.optimiser.state
    assert set(moments) == set(weights(loop))
    assert not any(value.count_nonzero() for each in moments.values() for value in each.values())
    assert all(each.grad is None for each in weights(loop))
    loop.step()
    assert digest(loop) == digest(train(1, **fields))


def test_warming_up_stays_within_the_context():
    loop = loop_of(setting(new_tokens=50), context=6)
    read = []
    loop._policy.model.decoder.register_forward_pre_hook(
        lambda _, __, given: read.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    loop.warm_up()
    assert max(read) == 5


def scored_by_a_fault(monkeypatch, **fault):
    """Let the training side, and it alone, read or scale something else than what was sampled."""

    def faulty(model, ids, kinds, *, temperature, path):
        kinds = kinds.clone()
        kinds[:, : fault.get("hidden", 0)] = Kind.PAD
        return response_log_probs(
            model, ids, kinds, temperature=fault.get("temperature", temperature), path=path
        )

    monkeypatch.setattr(updates, "response_log_probs", faulty)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("fault", [{"hidden": 2}, {"temperature": 0.5}])
@pytest.mark.parametrize("fields", [{}, {"mini_batches": 2}])
def test_the_same_weights_that_disagree_beyond_rounding_end_the_run(monkeypatch, dtype, fault, fields):
    train(1, dtype=dtype, **fields)
    scored_by_a_fault(monkeypatch, **fault)
    with pytest.raises(MismatchError, match=r"the weights are the same, and .* the two sides don't read"):
        train(1, dtype=dtype, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompts": 0, "group": 1.5}, r"prompts = 0: give a whole .*; group = 1.5: give a whole"),
        ({"temperature": 0}, "temperature = 0: give a finite number above 0"),
        ({"zero_variance": "filter"}, 'zero_variance = "filter": give "keep" or "drop"'),
        ({"loss": "mean"}, 'loss = "mean": give "token-mean" or "sequence-mean"'),
        ({"overlap": True}, "give generate_at_once = 1 or so, and the same in an arm without overlap"),
        ({"overlap": 1}, "overlap = 1: give true or false"),
        ({"generate_at_once": 3}, "generate_at_once = 3, and prompts = 2: give at most as many"),
        ({"mini_batches": 9}, "mini_batches = 9, and prompts x group = 8 completions"),
        ({"turns": 2}, "turns = 2 with tool_tokens = 0: between turns a tool answers"),
        ({"tool_tokens": 2}, "turns = 1 with tool_tokens = 2"),
        ({"group": 1}, "group = 1: give a whole number of at least 2, since a completion is compared"),
        ({"learning_rate": 0}, "learning_rate = 0: give a finite number above 0"),
        ({"clip_low": 1.5}, "clip_low = 1.5: give a number from 0 to 1"),
        ({"rollout_dtype": "int8"}, 'rollout_dtype = "int8": give'),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_to_write(fields, message):
    with pytest.raises(ValueError, match=message):
        setting(**fields)
