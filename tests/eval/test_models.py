"""The models' table, and the line that serves one."""

import csv
import shlex
from pathlib import Path

import pytest

from robustbench_tc.eval.models import find, models, serve_command

from ..refusals import refuses


def test_the_table_is_the_papers(shared: Path) -> None:
    with (shared / "spec" / "paper" / "models.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == list(models())
    for row in rows:
        model = models()[row["model"]]
        closed = row["mode"] == "api"
        assert (model.mode, model.group) == ("fc" if closed else row["mode"], row["group"])
        assert (model.weights or "") == ("" if closed else row["hf_id"])
        assert (model.thinking or "", model.dtype or "") == (row["thinking"], row["dtype"])
        for name in ("params_b", "max_model_len", "temperature", "max_tokens"):
            assert getattr(model, name) == (float(row[name]) if row[name] else None)


def test_every_open_model_with_weights_has_a_line() -> None:
    for model in models().values():
        if model.weights is None:
            continue
        words = shlex.split(serve_command(model.name))
        assert words[:3] == ["vllm", "serve", model.weights]
        assert ("--enable-auto-tool-choice" in words) == (model.mode == "fc")


def test_the_line_of_a_thinking_fc_model() -> None:
    assert serve_command("qwen3-8b") == (
        "vllm serve Qwen/Qwen3-8B --served-model-name Qwen3-8B qwen3-8b --port 8000 --dtype bfloat16 "
        "--max-model-len 16384 --enable-auto-tool-choice --tool-call-parser hermes "
        """--default-chat-template-kwargs '{"enable_thinking":false}'"""
    )


def test_models_are_found_by_name_and_by_weights_in_any_case() -> None:
    assert find("QWEN3-8B") is find("qwen/qwen3-8b") is models()["Qwen3-8B"]
    assert find("tiny") is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Qwen3-8", "unknown model 'Qwen3-8': did you mean Qwen3-8B"),
        ("o4-mini", "o4-mini is a closed model"),
        ("ToolRL-DR-Full", "no published weights: name a folder or Hub id behind it"),
    ],
)
def test_a_model_that_cannot_be_served_is_one_line(name: str, said: str) -> None:
    refuses(said, serve_command, name)


def test_weights_of_ones_own_can_be_named() -> None:
    assert serve_command("ToolRL-DR-Full", weights="out/full").startswith("vllm serve out/full ")
