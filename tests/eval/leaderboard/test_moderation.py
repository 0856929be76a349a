"""Records that take a submission off the board."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard import moderation
from robustbench_tc.eval.leaderboard.moderation import Decision
from robustbench_tc.eval.leaderboard.records import encode

ID = "20261120-0123456789ab"


def decision(action: moderation.Action = "hide", reason: str = "a reason", one: str = ID) -> Decision:
    return Decision(submission=one, action=action, reason=reason, by="ann", at="2026-11-20T12:00:00+00:00")


def write(folder: Path, *decisions: Decision) -> None:
    for number, one in enumerate(decisions, 1):
        (folder / moderation.file_name(one.submission, number)).write_bytes(encode(one))


def test_the_last_decision_counts(tmp_path: Path) -> None:
    write(tmp_path, decision(), decision("unhide"))
    found, damaged = moderation.read(tmp_path)
    assert [one.action for one in found[ID]] == ["hide", "unhide"]
    assert not damaged and moderation.hidden(found) == {}
    write(tmp_path, decision(), decision("unhide"), decision("withdraw", "mine"))
    assert moderation.hidden(moderation.read(tmp_path)[0])[ID].reason == "mine"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b'{"x": 1}', b"[" * 100_000, encode(decision(one="20261120-ba9876543210"))],
)
def test_a_broken_record_hides_its_submission_and_says_so_in_one_line(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, decision(), decision("unhide"))
    (tmp_path / moderation.file_name(ID, 1)).write_bytes(content)
    found, [said] = moderation.read(tmp_path)
    assert said.startswith(f"moderation {ID}-0001.json cannot be read, so {ID} is hidden: ")
    assert "\n" not in said and len(said) < 300
    assert moderation.hidden(found)[ID].reason == moderation.UNREADABLE
    with pytest.raises(UserError, match="repair or remove that file"):
        moderation.refuse_idle("unhide", ID, moderation.hidden(found)[ID])


def test_files_that_are_no_records_are_named_and_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "..x-0001.json").write_text("{}")
    found, damaged = moderation.read(tmp_path)
    assert found == {} and len(damaged) == 2 and all("is left out" in line for line in damaged)
    assert moderation.read(tmp_path / "nothing") == ({}, [])


def test_reasons_are_one_line_that_can_be_shown() -> None:
    assert moderation.check_reason("  two\nlines \t here ") == "two lines here"
    for bad, says in (
        ("", "is empty"),
        (" \n", "is empty"),
        ("x" * 501, "501 characters"),
        ("a\x00b", "cannot"),
    ):
        with pytest.raises(UserError, match=says):
            moderation.check_reason(bad)


@given(st.text(max_size=600))
def test_whatever_passes_is_printable_and_bounded(text: str) -> None:
    try:
        reason = moderation.check_reason(text)
    except UserError:
        return
    assert reason.isprintable() and 0 < len(reason) <= 500


def test_what_would_change_nothing_is_refused() -> None:
    hidden, withdrawn = decision(), decision("withdraw")
    for action, now, says in (
        ("unhide", None, "is not hidden"),
        ("hide", hidden, "off the board already .hidden by a maintainer: a reason"),
        ("withdraw", withdrawn, "withdrawn already"),
    ):
        with pytest.raises(UserError, match=says):
            moderation.refuse_idle(action, ID, now)  # type: ignore[arg-type]
    moderation.refuse_idle("hide", ID, None)
    moderation.refuse_idle("withdraw", ID, hidden)
    moderation.refuse_idle("unhide", ID, withdrawn)


def on_flag(action: moderation.Action, flag: str = "copy", reason: str = "a reason") -> Decision:
    return msgspec.structs.replace(decision(action, reason), flag=flag)


def test_the_last_decision_on_each_flag_counts_and_none_hides(tmp_path: Path) -> None:
    write(
        tmp_path,
        on_flag("clear-flag"),
        decision("hide"),
        on_flag("clear-flag", "near-gold", "a model of ours"),
        on_flag("restore-flag"),
    )
    found, damaged = moderation.read(tmp_path)
    assert not damaged and list(moderation.cleared(found)[ID]) == ["near-gold"]
    assert moderation.hidden(found)[ID].action == "hide"
    write(tmp_path, *(on_flag(action) for action in ("clear-flag", "restore-flag")), decision("unhide"))
    found, damaged = moderation.read(tmp_path)
    assert moderation.hidden(found) == {} and moderation.cleared(found) == {} and not damaged
    assert on_flag("clear-flag").says() == "cleared of a flag: copy"


@pytest.mark.parametrize("changes", [{"flag": ""}, {"flag": "<b>"}, {"flag": "copy", "action": "hide"}])
def test_a_decision_on_no_flag_is_one_that_cannot_be_read(tmp_path: Path, changes: dict[str, str]) -> None:
    write(tmp_path, msgspec.structs.replace(on_flag("clear-flag"), **changes))
    found, [said] = moderation.read(tmp_path)
    assert moderation.hidden(found)[ID].reason == moderation.UNREADABLE and "names a flag" in said


def test_a_flag_is_cleared_and_restored_once() -> None:
    now = on_flag("clear-flag")
    with pytest.raises(UserError, match="cleared already: a reason"):
        moderation.refuse_idle_flag(now, now)
    with pytest.raises(UserError, match="has not been cleared"):
        moderation.refuse_idle_flag(on_flag("restore-flag"), None)
    moderation.refuse_idle_flag(now, None)
    moderation.refuse_idle_flag(on_flag("restore-flag"), now)
