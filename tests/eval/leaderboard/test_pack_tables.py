"""What a model's page shows of packs beyond the core, and that they move no place on the board."""

from pathlib import Path

import msgspec
import pytest

from robustbench_tc.eval.leaderboard.board import boards, p_of
from robustbench_tc.eval.leaderboard.records import Entry, board_version, encode
from robustbench_tc.eval.leaderboard.row import FOCUSES, LEVELS, Figures
from robustbench_tc.eval.leaderboard.scoring import entry_of_run

from ..synthetic_runs import clean_ids, coin, pairs, write_run
from .few import submission

IDS = clean_ids({"bfcl_v3": 6, "apibank": 20, "rotbench": 4, "toolalpaca": 4, "tooleyes": 6})
PREFERRED = [(one, code) for one in IDS[:9] for code in ("CD_AB_pref", "TD_AB_pref")]
CORE = coin(1)


def entry(folder: Path, pack: bool | None) -> Entry:
    """Of a run of the core, and of a pack whose every answer is right or wrong."""
    rows = pairs(IDS) + ([] if pack is None else PREFERRED)
    return entry_of_run(write_run(folder, lambda c, t: pack if t.endswith("_pref") else CORE(c, t), rows))


def test_a_pack_is_counted_beside_the_core_and_moves_nothing(tmp_path: Path) -> None:
    core = entry(tmp_path / "core", None)
    assert core.packs == {} and [table.name for table in core.tables] == ["levels", "stages"]
    for right in (True, False):
        beside = entry(tmp_path / str(right), right)
        assert beside.packs == {"offers": 18}
        assert (beside.counts, beside.metrics, beside.types, beside.gains) == (
            (core.counts, core.metrics, core.types, core.gains)
        )
        of_pack = [row for row in beside.tables[0].rows if row[1] == "offers"]
        assert [row[3:5] for row in of_pack] == [(18 if right else 0, 18)]
        assert set(core.tables[0].rows) < set(beside.tables[0].rows)


def test_an_entry_is_stored_and_read_with_its_tables(tmp_path: Path) -> None:
    made = entry(tmp_path / "run", True)
    assert msgspec.json.decode(encode(made), type=Entry) == made
    fields = msgspec.to_builtins(made)
    for name in ("packs", "tables"):
        del fields[name]
    before = msgspec.convert(fields, Entry)
    assert (before.packs, before.tables) == ({}, ())


def test_the_models_page_shows_the_tables(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="the pages need the extra leaderboard (make env-leaderboard)")
    from robustbench_tc.eval.leaderboard import pages

    def page(made: Entry) -> str:
        one = submission(1, "weak-3b")
        version = board_version(one.dataset_version, one.fingerprint)
        board = boards([one], {}, {one.id: made}, {})[version]
        return pages.model_page(
            board.rows[0],
            made,
            board,
            version,
            history=[],
            verification=None,
            submission=one,
            against=None,
            differences=[],
        )

    shown = page(entry(tmp_path / "run", True))
    assert (
        "offers (18 rows)." in shown and '<th scope="row">reasoning</th><td class="num">offers</td>' in shown
    )
    assert "wrong answers by the first stage at which they fail" in shown
    assert "holds the core alone" in page(entry(tmp_path / "core", None))
    assert "Levels, stages and packs" not in page(
        msgspec.structs.replace(entry(tmp_path / "x", None), tables=())
    )


def test_a_board_is_ranked_by_the_core_types_of_a_level(tmp_path: Path) -> None:
    entries = [entry(tmp_path / f"{right}", right) for right in (True, False)]
    right, wrong = map(Figures.of, entries)
    assert [one.counts("interaction") for one in (right, wrong)] == [
        tuple(map(sum, zip(*(core.counts[name] for name in ("action", "transition")), strict=True)))
        for core in entries
    ]
    assert right.counts("reasoning") == entries[0].counts["reward"]
    assert LEVELS == ("perception", "interaction", "reasoning") and set(LEVELS) < set(FOCUSES)
    # Two runs that differ in a pack alone are equal in every level, as on the board.
    for level in LEVELS:
        assert p_of(right, wrong, level) == 1.0
    lacking = {code: n for code, n in entries[0].counts.items() if code != "CD"}
    assert Figures.of(msgspec.structs.replace(entries[0], counts=lacking)).counts("reasoning") is None


def test_a_level_is_shown_with_the_interval_of_its_table(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="the pages need the extra leaderboard (make env-leaderboard)")
    from robustbench_tc.eval.leaderboard import pages

    made = entry(tmp_path / "run", True)
    assert Figures.of(made).accuracy("reasoning") == made.metrics["accuracy_reward"]
    assert Figures.of(made).delta("perception").value == made.metrics["delta_observation"].value
    before = Figures.of(msgspec.structs.replace(made, tables=())).accuracy("reasoning")
    assert (before.value, before.low) == (made.metrics["accuracy_reward"].value, None)
    assert pages.focus_name("interaction") == "the level interaction"
