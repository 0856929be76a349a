"""Live episodes under TRL: its own loop with scripted texts, and the rewards of verl's rollout."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs TRL: make test-trl")

from robustbench_tc.api.building import build_live
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.train_recipes import grpo
from robustbench_tc.train_recipes.trl import live
from tests.conftest import ROOT
from tests.eval.adapters import episodes, trained
from tests.refusals import refuses


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live") / "robustbench-tc-live"
    build_live(out=folder, kinds=("timeout_after_effect", "silent_no_op", "injected_instruction"))
    return folder


def tokenizer(dataset: Path) -> Any:
    """Made of the rows' own texts, with the template of a family that calls tools."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_chat_template

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=4_000, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator((row["live_row"] for row in live.rows(str(dataset))[::20]), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=qwen3_chat_template,
    )


def model(words: Any) -> Any:
    """A random one of a few thousand weights."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.set_num_threads(1)
    config = Qwen2Config(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=65_536,
    )
    return Qwen2ForCausalLM(config)


def written(reply: episodes.Reply, last: bool) -> str:
    """A reply as a model of that family writes it."""
    if last:
        return reply.text
    calls = [{"name": name, "arguments": given} for name, given in trained.calls_of(reply)]
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def test_its_own_loop_plays_episodes_and_earns_what_the_rollout_earns(dataset: Path, tmp_path: Path) -> None:
    """One step of GRPO over tasks of both worlds, faults among them; the texts are scripted."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = load_live(str(dataset)).rows
    drawn = {one.row: one for one in episodes.drawn(rows, len(rows))}
    wanted = (
        "orders_1::clean",
        "orders_6::live_timeout_after_effect",
        "calendar_2::live_silent_no_op",
        "calendar_5::live_injected_instruction",
    )
    played = [drawn[name] for name in wanted]
    turns = {row.id: len(row.turns) for row in rows}
    scripts = {
        row.turns[0].messages[0].content: trained.as_trl_has_it(drawn[row.id], turns[row.id])
        for row in rows
        if row.id in wanted
    }
    words = tokenizer(dataset)
    said: list[float] = []

    class Scripted(GRPOTrainer):  # type: ignore[misc,unused-ignore]
        def _generate_single_turn(self, prompt_ids: Any, *_: Any, **more: Any) -> Any:
            made = []
            for ids in prompt_ids:
                text = words.decode(ids)
                [script] = [found for opening, found in scripts.items() if opening in text]
                number = text.count("<|im_start|>assistant") - 1
                made.append(words.encode(written(script[number], number == len(script) - 1) + "<|im_end|>"))
            return made, None

    found = {row["clean_id"] + "::" + row["type_code"]: row for row in live.rows(str(dataset))}
    reward = live.reward()

    def kept(*given: Any, **more: Any) -> list[float]:
        said.extend(reward(*given, **more))
        return said[-len(given[0]) if given else -8 :]

    settings = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=8,
        max_completion_length=40_000,
        shuffle_dataset=False,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        remove_unused_columns=False,
    )
    trainer = Scripted(
        model(words),
        kept,
        args=settings,
        train_dataset=Dataset.from_list([found[name] for name in wanted]),
        processing_class=words,
        environment_factory=live.environments(),
    )
    trainer.train()
    expected = [one["score"] for one in trained.by_verl(dataset, played)]
    assert said == [score for score in expected for _ in range(2)]
    assert len(set(said)) > 1
    [logged] = [line for line in trainer.state.log_history if "reached" in line]
    assert logged["score"] == pytest.approx(sum(said) / len(said))


def test_the_code_of_the_page(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands, but with a small model and for one step of short answers."""
    page = (ROOT / "docs/training.md").read_text().partition("## Live episodes under TRL")[2]
    code = page.partition("```python\n")[2].partition("```")[0]
    words = tokenizer(dataset)
    model(words).save_pretrained(tmp_path / "model")
    words.save_pretrained(tmp_path / "model")
    few = 'max_steps=1, max_completion_length=8, use_cpu=True, bf16=False, report_to="none", logging_steps=1'
    for told, instead in (("Qwen/Qwen3-1.7B", "model"), ('"runs/live"', f'"runs/live", {few}')):
        assert code.count(told) == 1
        code = code.replace(told, instead)
    (tmp_path / "robustbench-tc-live").symlink_to(dataset)
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {}
    exec(code, made)
    state = made["trainer"].state
    assert state.global_step == 1 and any("reached" in line for line in state.log_history)


def test_the_recipe_plays_live_rows(dataset: Path, tmp_path: Path) -> None:
    words = tokenizer(dataset)
    model(words).save_pretrained(tmp_path / "model")
    words.save_pretrained(tmp_path / "model")
    few = ["max_steps=1", "max_completion_length=8", "num_generations=2", "per_device_train_batch_size=2"]
    few += ["gradient_accumulation_steps=1", "steps_per_generation=1", "eval_strategy=no"]
    out = tmp_path / "run"
    grpo.grpo(str(tmp_path / "model"), out, str(dataset), ["data=live", *few], rows=4, cpu=True)
    (line,) = map(json.loads, (out / "curve.jsonl").open())
    assert line["step"] == 1 and 0 <= line["reached"] <= 1 and -3 <= line["score"] <= 4
    assert (out / "model" / "model.safetensors").is_file()


def test_tools_have_the_schemas_of_the_world(dataset: Path) -> None:
    from transformers.utils import get_json_schema

    tools = {row.world: row.tools for row in load_live(str(dataset)).rows}
    for world, made in live.environments().items():
        for tool in tools[world]:
            seen = get_json_schema(getattr(made, tool.name))["function"]
            assert seen["description"] == tool.description
            declared = seen["parameters"]
            assert set(declared["required"]) == set(tool.plain.required)
            assert list(declared["properties"]) == list(tool.plain.properties)
            for name, about in tool.plain.properties.items():
                same = {key: declared["properties"][name].get(key) for key in ("type", "description", "enum")}
                assert same == {key: about.get(key) for key in ("type", "description", "enum")}, tool.name


def test_forty_random_episodes_earn_what_the_rollout_earns(dataset: Path) -> None:
    played = episodes.drawn(load_live(str(dataset)).rows, 40, seed=1)
    ours, theirs = trained.by_verl(dataset, played), trained.by_trl(dataset, played)
    assert ours == theirs and len({one["score"] for one in ours}) > 2


def test_rows(dataset: Path, tmp_path: Path) -> None:
    train, held = live.rows(str(dataset), "train"), live.rows(str(dataset), "validation")
    both = live.rows(str(dataset))
    assert len(train) + len(held) == len(both) > 100
    assert not {row["clean_id"] for row in train} & {row["clean_id"] for row in held}
    assert {row["environment"] for row in both} == {"orders", "calendar"}
    refuses("is not a RobustBench-TC dataset", live.rows, str(tmp_path))
