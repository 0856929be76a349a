"""`make train-real` from end to end with the toy's model, in small (`make test-trl`)."""

import json
from pathlib import Path

import pytest
import typer

pytest.importorskip("trl", reason="needs TRL: make test-trl")

from benchmarks.train_real import __main__ as command, result

from tests.refusals import refuses

from . import forked
from .test_trl import folder as folder

SMALL = {"ROWS": 12, "QUESTIONS": 6, "GRPO": {**command.GRPO, "num_generations": 2}}


def test_a_whole_run_and_one_that_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run_program", forked.run_program)
    for name, value in SMALL.items():
        monkeypatch.setattr(command, name, value)
    monkeypatch.setitem(command.SETTINGS, "max_length", 1500)  # its tokenizer knows few words
    monkeypatch.setitem(command.GRPO, "max_completion_length", 8)
    model, out = folder / "base", tmp_path / "out"
    refuses("a run worth making takes", command.train_real, model, out, budget=0)
    assert not out.exists()
    (folder / "rows" / "mine").write_text("")
    refuses("is not empty", command.train_real, model, folder / "rows")
    refuses("no model in", command.train_real, tmp_path, out)
    with pytest.raises(typer.Exit):  # of so few questions no bar holds
        command.train_real(model, out, budget=600, grpo_steps=1)
    told = capsys.readouterr()
    assert "power, before the run" in told.err and told.out.count("FAILED") >= 1
    found = json.loads((out / "train-real.json").read_text())
    assert found["rows"] == 12 and found["questions"] == 6 and set(found["seeds"][0]) == set(result.TRAINED)
    assert set(found["base"]["right"]) == set(result.CONDITIONS) and found["grpo_steps"] == 1
    assert (out / "train-real.svg").read_text() == result.figure(found)
    assert not list(out.glob("**/checkpoint-*")) and (out / "seed-0" / "permuted-grpo" / "model").is_dir()
    scores = out / "seed-0" / "clean.json"
    before, written = scores.read_text(), (out / "train-real.json").read_bytes()
    scores.unlink()  # as if it had been stopped there
    with pytest.raises(typer.Exit):
        command.train_real(model, out, budget=600, grpo_steps=1)
    assert scores.read_text() == before and (out / "train-real.json").read_bytes() == written
    refuses("another model, seeds or budget", command.train_real, model, out, seeds=2, budget=600)
