"""How far a version number has to move, and that nobody says less."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest
from robustbench_tc.release.diff import diff
from robustbench_tc.release.versions import STEPS, check_step, next_version

from .conftest import Done
from .released import released, small_build

Edit = Callable[[pa.Table], pa.Table]


@pytest.mark.parametrize(
    ("previous", "step", "enough"),
    [
        ("1.2.3", "none", "1.2.4"),
        ("1.2.3", "patch", "1.2.4"),
        ("1.2.3", "minor", "1.3.0"),
        ("1.2.3", "major", "2.0.0"),
        ("0.3.1", "minor", "0.4.0"),
        ("0.3.1", "major", "0.4.0"),
        ("1.1.0-rc.1", "patch", "1.1.0"),
        ("1.1.0-rc.1", "minor", "1.1.0"),
        ("1.1.0-rc.1", "major", "2.0.0"),
        ("2.0.0-rc.1", "major", "2.0.0"),
        ("1.0.1-rc.1", "minor", "1.1.0"),
    ],
)
def test_the_lowest_version_that_may_follow(previous: str, step: Any, enough: str) -> None:
    assert next_version(previous, step) == enough


plain = st.builds(lambda *n: ".".join(map(str, n)), *[st.integers(0, 99)] * 3)
ending = st.sampled_from(["", "-rc.1", "-alpha", "-0.3.7", "-x-y-z.1"])
versions = st.builds(str.__add__, plain, ending)


@given(versions, versions, st.sampled_from(STEPS))
def test_a_version_is_enough_exactly_from_the_lowest_on(given_: str, before: str, step: Any) -> None:
    import semver

    previous = manifest.Manifest(
        kind="toolrl-dr",
        version=before,
        created_at="",
        package_version="",
        licence="",
        data_sha256="",
        files={},
    )
    ours, theirs = semver.Version.parse(given_), semver.Version.parse(before)
    enough = ours > theirs and ours.finalize_version() >= semver.Version.parse(next_version(before, step))
    try:
        check_step(given_, previous, step)
    except UserError as refused:
        assert not enough and next_version(before, step) in str(refused)
    else:
        assert enough


@given(st.text(alphabet="0123456789.-+abcv\n١", max_size=12))
def test_a_version_that_is_taken_is_a_tag_that_git_takes(text: str) -> None:
    try:
        found = manifest.check_version(text)
    except UserError:
        return
    assert found.isascii() and ".." not in found and not found.endswith((".", ".lock")) and "+" not in found


# --- what the data say --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_build(tmp_path_factory.mktemp("a") / "robustbench-tc")


@pytest.fixture(scope="module")
def v1(a: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("v1") / "robustbench-tc"
    released(a, folder)
    return folder


def edited(a: Path, b: Path, config: str, edit: Edit) -> Path:
    shutil.copytree(a, b)
    path = next((b / config).glob("*.parquet"))
    pq.write_table(edit(pq.read_table(path)), path)
    return b


def put(column: str, value: Any) -> Edit:
    """The first row gets another value."""

    def edit(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        rows[0][column] = value
        return pa.Table.from_pylist(rows, table.schema)

    return edit


EDITS: dict[str, tuple[str, Edit, str]] = {
    "nothing": ("CD_AB", lambda table: table, "none"),
    "flags": ("CD_AB", put("flags", ["new"]), "patch"),
    "evidence": ("evidence", put("verdict", "partly"), "patch"),
    "words of the taxonomy": ("taxonomy", put("what_is_modified", "other words"), "patch"),
    "new column": ("CD_AB", lambda t: t.append_column("note", pa.array(["x"] * t.num_rows)), "patch"),
    "text": ("CD_AB", put("tools", "[]"), "minor"),
    "row": ("CD_AB", lambda table: table.slice(1), "minor"),
    "column gone": ("CD_AB", lambda table: table.drop(["flags"]), "major"),
    "column of another type": (
        "CD_AB",
        lambda t: t.set_column(t.schema.get_field_index("seed"), "seed", t["seed"].cast(pa.string())),
        "major",
    ),
    "type redefined": ("taxonomy", put("component", "reward"), "major"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_change_has_its_step(name: str, a: Path, tmp_path: Path) -> None:
    config, edit, step = EDITS[name]
    found = diff(a, edited(a, tmp_path / "b", config, edit))
    assert found.step == step and found.plain()["step"] == step


def test_a_config_that_is_gone_is_major_and_a_new_one_minor(a: Path, tmp_path: Path) -> None:
    shutil.copytree(a, tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "CD_AB")
    assert diff(a, tmp_path / "b").step == "major"
    assert diff(tmp_path / "b", a).step == "minor"


def test_the_command_names_the_step_and_the_version(
    a: Path, v1: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    b = edited(a, tmp_path / "b", "CD_AB", put("tools", "[]"))
    assert rbtc("diff", v1, b).out.splitlines()[-1] == "minor step: B follows A as version 1.1.0 or higher"
    assert rbtc("diff", a, b).out.splitlines()[-1] == "minor step"
    gone = edited(a, tmp_path / "c", "CD_AB", EDITS["column gone"][1])
    assert "CD_AB changes its meaning: column flags" in rbtc("diff", v1, gone).out
    import json

    plain = json.loads(rbtc("diff", v1, gone, "--json").out)
    assert plain["step"] == "major" and plain["next_version"] == "2.0.0"
