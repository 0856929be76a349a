"""Rows with several faults: the same alone and together, each where it can be met and repaired."""

from pathlib import Path

import msgspec
import pytest

from robustbench_tc import live_types
from robustbench_tc.builders.live.build import LITE_KINDS, LiveSpec
from robustbench_tc.builders.report import LiveReport
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live.inputs import LiveData, codes, mistake
from robustbench_tc.io import marker
from robustbench_tc.live_types import CASCADES, type_code
from robustbench_tc.schema import AFTER_EFFECT, At, Fault, LiveRow


@pytest.fixture(scope="module")
def data(cascades: Path) -> LiveData:
    """The rows; each is one that can be played (`load_live` refuses others)."""
    return load_live(str(cascades))


def _rows(data: LiveData, letters: str) -> dict[str, LiveRow]:
    code = type_code(f"cascade_{letters}")
    return {row.clean_id: row for row in data.rows if row.type_code == code}


def test_every_task_has_its_rows_or_the_reason(cascades: Path, data: LiveData) -> None:
    report = msgspec.json.decode((cascades / marker.BUILD).read_bytes(), type=LiveReport)
    assert report.kinds == tuple(CASCADES) and report.rows["clean"] == {"orders": 20, "calendar": 20}
    assert {code: sum(of.values()) for code, of in report.rows.items() if code != "clean"} == {
        type_code(name): 39 if "c" in letters else 40 for name, letters in CASCADES.items()
    }
    assert {skip.reason for skip in report.skipped} == {"no_other_call"} and len(report.skipped) == 3


def test_a_tasks_rows_have_the_same_faults_alone_and_together(data: LiveData) -> None:
    alone = {letter: _rows(data, letter) for letter in "abc"}
    for letters in ("ab", "ac", "abc"):
        for task, row in _rows(data, letters).items():
            a, *others = row.faults
            assert a == msgspec.structs.replace(alone["a"][task].fault, then=row.fault.then)  # type: ignore
            assert row.label == "repair" and row.position == alone["a"][task].position
            if "b" in letters:
                retried, *others = others
                assert retried.at == At(tool=a.at.tool, nth=a.at.nth + 1)
                assert msgspec.structs.replace(retried, at=a.at) == alone["b"][task].fault
                assert AFTER_EFFECT[retried.kind] == a.kind
            assert others == ([alone["c"][task].fault] if "c" in letters else [])
            assert all(one.at.tool != a.at.tool for one in others)


def test_none_is_built_or_counted_but_by_name() -> None:
    made = set(CASCADES)
    specs = (LiveSpec(), LiveSpec(profile="full"), LiveSpec(types=("outage",)))
    assert not any(made & set(spec.checked_kinds()) for spec in specs)
    assert LiveSpec(profile="lite", types=("live_cascade",)).checked_kinds() == (*LITE_KINDS, *CASCADES)
    assert LiveSpec(kinds=("silent_no_op",), types=("live_cascade_ab",)).checked_kinds()[1:] == (
        "cascade_ab",
    )
    assert not any(made & set(kinds) for kinds in live_types.FAMILIES.values())
    assert set(map(type_code, CASCADES)) <= live_types.by_name()
    assert codes(["live_cascade", "cascade_ab"]) == tuple(map(type_code, CASCADES))


def test_an_edited_row_is_refused(data: LiveData) -> None:
    row = next(iter(_rows(data, "abc").values()))
    clean = data.clean()[row.clean_id]
    first, then = row.faults[0], row.faults[1:]
    never = Fault(At(tool="nothing"), "stale_read", "always")
    for more, said in (
        (then[:1], "not of type"),
        ((*then, then[0]), "not of type"),
        ((then[0], msgspec.structs.replace(then[1], then=then)), "not of type"),
        ((then[0], never), "for ever"),
        ((then[0], msgspec.structs.replace(never, kind="silent_no_op")), "has not: 'nothing'"),
    ):
        edited = msgspec.structs.replace(row, fault=msgspec.structs.replace(first, then=more))
        assert said in str(mistake(edited, clean))
    kind = type_code(first.kind)
    single = msgspec.structs.replace(row, id=f"{row.clean_id}::{kind}", type_code=kind)
    assert "not of type" in str(mistake(single, clean))
