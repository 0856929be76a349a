"""The first screen of any run: at most 16 lines of at most 100 characters, with the numbers of the JSON."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.values import HEADS

from ..conftest import Done
from .synthetic_runs import SIZES, clean_ids, coin, pairs, write_run

LINES, WIDTH = 16, 100

FEW = {"bfcl_v3": 6, "apibank": 9, "rotbench": 3, "toolalpaca": 3, "tooleyes": 3}
OWN = {"own": 14}
LONG = "🦊 a-model/of ‮strange\nname " * 12

Rows = list[tuple[str, str]]


def biased(clean_id: str, code: str) -> bool:
    """Right but for the types with decoys."""
    return taxonomy.component_of(code) != "reward"


def thirds(clean_id: str, code: str) -> bool:
    """Wrong on one perturbed row of three."""
    return code == "clean" or hash_of(clean_id + code) % 3 > 0


def half(clean_id: str, code: str) -> bool | None:
    """Right on every other row, no answer to the rest."""
    return None if hash_of(clean_id + code) % 2 else True


def hash_of(text: str) -> int:
    return sum(map(ord, text))


def of_packs(sizes: dict[str, int], *, core: bool) -> Rows:
    """Rows of every type beyond the core, with their clean rows, beside the core or alone."""
    ids = clean_ids(sizes)
    codes = [kind.code for kind in taxonomy.types("extension")]
    rows = pairs(ids) if core else [(one, "clean") for one in ids]
    return rows + [(one, code) for code in codes for one in ids]


def kinds() -> dict[str, dict[str, Any]]:
    """Kind of run → what `write_run` makes it of."""
    few = pairs(clean_ids(FEW))
    clean = [row for row in few if row[1] == "clean"]
    mixed = next(kind.code for kind in taxonomy.types("all") if kind.pack == "mixed")
    found: dict[str, dict[str, Any]] = {
        "a whole run": {"verdict": biased, "rows": pairs(clean_ids(SIZES))},
        "nothing right": {"verdict": lambda c, t: False},
        "all right": {"verdict": lambda c, t: True},
        "no answers": {"verdict": lambda c, t: None},
        "half missing": {"verdict": half},
        "clean only": {"verdict": coin(3), "rows": clean},
        "one clean row": {"verdict": coin(3), "rows": clean[:1]},
        "no clean rows": {"verdict": coin(3), "rows": [row for row in few if row[1] != "clean"]},
        "one perturbed row": {"verdict": biased, "rows": [row for row in few if row[1] == "CD"][:1]},
        "one type": {"verdict": biased, "rows": [row for row in few if row[1] in ("clean", "CD_AB")]},
        "own tools": {"verdict": biased, "rows": pairs(clean_ids(OWN))},
        "packs only": {"verdict": thirds, "rows": of_packs(FEW, core=False)},
        "packs beside the core": {"verdict": thirds, "rows": of_packs(FEW, core=True)},
        "a mixture that loses": {
            "verdict": lambda c, t: t == "clean",
            "rows": clean + [(one, mixed) for one, _ in clean],
        },
        "strange names": {"verdict": biased, "model": LONG, "version": LONG},
        "a defence": {"verdict": biased, "settings": {"defend": ["retry", "shuffle:3"]}},
        "all cut": {"verdict": biased, "finish_reason": lambda c, t: "length"},
        "rejected": {"verdict": lambda c, t: t == "clean", "status": lambda c, t: "rejected"},
        "agent errors": {
            "verdict": lambda c, t: hash_of(c) % 3 > 0,
            "status": lambda c, t: "ok" if hash_of(c) % 3 else "agent_error",
        },
    }
    for seed, (right, kept) in enumerate([(0.2, 0.5), (0.6, 0.95), (0.95, 0.7)]):
        found[f"a coin of {right}"] = {
            "verdict": coin(seed, right, kept),
            "mode": lambda c, t: "fc",
            "settings": {"mode": "fc"},
        }
        found[f"a coin of {right}, 3 repeats"] = {"verdict": coin(seed, right, kept), "repeats": 3}
    return {name: {"rows": few, **one} for name, one in found.items()}


KINDS = kinds()


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    given = dict(KINDS[request.param])
    settings = given.pop("settings", {})
    made = write_run(tmp_path / "run", given.pop("verdict"), given.pop("rows"), **given)
    record = json.loads((made / "run.json").read_text())
    record["settings"] |= settings
    (made / "run.json").write_text(json.dumps(record))
    return made


def test_a_summary_is_one_screen_with_the_numbers_of_its_json(
    folder: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = rbtc("summary", folder, "--allow-missing")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) <= LINES
    assert [line for line in lines if cell_len(line) > WIDTH] == []
    monkeypatch.setenv("COLUMNS", "40")
    assert rbtc("summary", folder, "--allow-missing").out == done.out, "a pipe has no width"

    made = json.loads(rbtc("summary", folder, "--allow-missing", "--json").out)
    answer = made["answer"]
    assert lines[2] == answer["sentence"]
    accuracies = {name: made["summary"]["lines"][name] for name in HEADS}
    shown = {line.split()[0]: line for line in lines[5:] if line.split()[0] in accuracies}
    assert shown.keys() == {name for name, one in accuracies.items() if one["n"]}
    for name, line in shown.items():
        wanted = [accuracies[name]["accuracy"]]
        if found := answer["lines"].get(name):
            wanted += [found["drop"][end] for end in ("value", "low", "high")]
            assert line.endswith(found["word"])
            assert found["keeps"] is None or f"≥ {round(100 * found['keeps'])} %" in line
        printed = re.findall(r"-?\d+\.\d", line)
        assert printed == [f"{100 * one + 0:.1f}".replace("-0.0", "0.0") for one in wanted if one is not None]
    warned = [line for line in lines if line.startswith("warn ")]
    assert len(warned) == bool(answer["warnings"])
    if len(answer["warnings"]) > 1:
        assert warned[0].endswith(f" (+{len(answer['warnings']) - 1} more: --full)")
    if answer["worst"]:
        [worst] = [line for line in lines if line.startswith("worst ")]
        after = answer["types"][answer["worst"][0]]["after"]
        assert worst.startswith(f"worst  {taxonomy.named(answer['worst'][0])} {100 * after:.1f}")
        assert any(f"--type {answer['worst'][0]}" in line for line in lines if line.startswith("next "))


def test_full_prints_the_screen_and_then_every_warning_and_table(
    folder: Path, rbtc: Callable[..., Done]
) -> None:
    screen = rbtc("summary", folder, "--allow-missing").out
    full = rbtc("summary", folder, "--allow-missing", "--full")
    assert full.code == 0 and full.out.startswith(screen)
    made = json.loads(rbtc("summary", folder, "--allow-missing", "--json").out)
    assert all(f"warning: {one}" in full.out for one in made["answer"]["warnings"])
    listed = {line.split()[0] for line in full.out.splitlines() if line.strip()}
    assert made["summary"]["types"].keys() <= listed
