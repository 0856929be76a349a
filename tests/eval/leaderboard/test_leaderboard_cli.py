"""`rbtc leaderboard`: what a maintainer types, and what they read."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from robustbench_tc.cli.leaderboard import _quotas, app
from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.rebuild import load, rebuild
from robustbench_tc.eval.leaderboard.row import Row
from robustbench_tc.eval.leaderboard.store import Store

from .conftest import RunOf
from .test_rebuild import listed


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_submit_check_says_what_the_board_would_say(release: Path, run_of: RunOf) -> None:
    done = run("submit-check", run_of("oracle"), "--dataset", release)
    assert done.exit_code == 0, done.output
    assert done.output.count("passed") == 8 and "perturbed" in done.output
    done = run("submit-check", run_of("oracle") / "predictions.parquet", "--dataset", release, "--json")
    assert json.loads(done.output)["submission"]["model"] == "agent-oracle"


def test_submit_check_ends_with_1_where_the_board_would_refuse(
    release: Path, run_of: RunOf, tmp_path: Path
) -> None:
    done = run("submit-check", run_of("oracle"), "--dataset", release, "--model", "<b>bold</b>")
    assert done.exit_code == 1
    assert "FAILED" in done.output and "cannot be listed" in done.output and "not reached" in done.output
    found = run("submit-check", tmp_path, "--dataset", release).exception
    assert isinstance(found, UserError) and "no predictions at" in str(found)


def test_a_submission_is_verified_and_rebuilt(
    release: Path, asked: Asked, run_of: RunOf, tmp_path: Path
) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("oracle"), "Alpha-3B")
    where = ("--dataset", release, "--store", store.folder)
    done = run("verify", one, "--run", run_of("oracle"), *where, "--by", "ann")
    assert done.exit_code == 0 and "same verdict in 206 of 206 rows" in " ".join(done.output.split())
    assert store.verifications()[0][one].by == "ann"
    again = run("verify", one, "--run", run_of("oracle"), *where).exception
    assert isinstance(again, UserError) and "verified already, by ann" in str(again)
    unknown = run("verify", "nothing", "--run", run_of("oracle"), *where).exception
    assert isinstance(unknown, UserError) and "no submission" in str(unknown)

    assert run("rebuild", *where).exit_code == 0
    (store.folder / "verifications" / f"{one}.json").write_text("{")
    done = run("rebuild", *where, "--json")
    [why] = json.loads(done.output)["not_possible"].values()
    assert done.exit_code == 1 and why.startswith(f"verification {one} is left out")
    (store.folder / "verifications" / f"{one}.json").unlink()
    (store.entries / f"{one}.json").write_text("{}")
    done = run("rebuild", *where, "--json")
    assert done.exit_code == 0 and json.loads(done.output)["new"] == [one]
    (store.path(one) / "predictions.parquet").write_bytes(b"PAR1")
    done = run("rebuild", *where, "--num-proc", "2")
    assert done.exit_code == 1 and "not what was submitted" in " ".join(done.output.split())


def test_a_port_that_is_taken_is_named_before_anything_is_loaded(release: Path, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = run("serve", "--dataset", release, "--store", tmp_path / "r", "--port", port).exception
    assert isinstance(found, UserError) and "take another --port" in str(found)
    assert not (tmp_path / "r").exists()


def test_a_dataset_without_every_type_makes_no_board(tmp_path: Path) -> None:
    from .. import small

    folder = small.write(tmp_path / "release", small.rows("CD"))
    found = run(
        "submit-check", folder / "clean" / "test-00000-of-00001.parquet", "--dataset", folder
    ).exception
    assert isinstance(found, UserError) and "a board needs a dataset with every type" in str(found)


def test_a_file_is_no_results_folder(release: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = run("rebuild", "--dataset", release, "--store", tmp_path / "file").exception
    assert isinstance(found, UserError) and "is not a folder" in str(found)


def test_every_verb_has_help_with_an_example() -> None:
    for verb in ("serve", "submit-check", "verify", "rebuild", "export", "clear-flag", "restore-flag"):
        done = run(verb, "--help")
        assert done.exit_code == 0 and "Example: rbtc leaderboard" in " ".join(done.output.split())


def test_limits_travel_to_the_worker(release: Path) -> None:
    import msgspec

    from robustbench_tc.eval.leaderboard.serve import worker_command

    limits = Limits(per_day=3, file_bytes=5)
    assert msgspec.json.decode(worker_command(release, limits)[-1], type=Limits) == limits


def test_quotas_of_labs_are_read_before_anything_is_served(tmp_path: Path) -> None:
    assert _quotas(["acme=50", "ann=0"]) == {"acme": 50, "ann": 0}
    assert _quotas([]) == {}
    for bad, says in (
        ("acme", "is not NAME=N"),
        ("acme=-1", "is not NAME=N"),
        ("acme=1000000000000", "is not NAME=N"),
        ("<b>=5", "cannot be listed"),
    ):
        found = run("serve", "--quota", bad, "--store", tmp_path / "none").exception
        assert isinstance(found, UserError) and says in str(found)
    found = run("serve", "--quota", "acme=5", "--quota", "acme=6").exception
    assert isinstance(found, UserError) and "twice" in str(found)
    assert not (tmp_path / "none").exists()


def test_a_submission_is_hidden_withdrawn_and_put_back(asked: Asked, run_of: RunOf, tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("oracle"), "Alpha-3B")
    where = ("--store", store.folder, "--reason")
    done = run("hide", one, *where, "its answers are the golden ones")
    assert done.exit_code == 0 and "hidden by a maintainer" in done.output
    assert store.off_the_board()[0][one].reason == "its answers are the golden ones"
    again = run("hide", one, *where, "once more").exception
    assert isinstance(again, UserError) and "off the board already" in str(again)
    assert "withdrawn at the wish" in run("withdraw", one, *where, "asked for").output
    assert "put back" in run("unhide", one, *where, "it was right").output and not store.off_the_board()[0]
    for arguments, says in (
        (("unhide", one, *where, "x"), "is not hidden"),
        (("hide", one, *where, " "), "is empty"),
        (("hide", "nothing", *where, "x"), "no submission"),
    ):
        found = run(*arguments).exception
        assert isinstance(found, UserError) and says in str(found)
    assert len(list((store.folder / "moderation").iterdir())) == 3


def test_a_flag_is_cleared_and_put_back(asked: Asked, run_of: RunOf, tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    ids = {listed(store, asked, run_of("oracle"), name) for name in ("Alpha-3B", "Beta-7B")}
    [one] = next(iter(load(store, {}).values())).copies
    [first] = ids - {one}

    def row() -> Row:
        board = next(iter(load(store, {}).values()))
        found = board.row(one)
        assert found is not None and one in board.copies
        return found

    assert set(row().flags) == {"near-gold", "reference-agent", "copy"}
    where = ("--store", store.folder, "--reason")
    for flag in ("copy", "near-gold"):
        done = run("clear-flag", one, flag, *where, "a reason", "--by", "ann")
        assert done.exit_code == 0 and f"cleared of a flag: {flag}" in done.output
    assert row().flags == ("reference-agent",) and row().cleared == ("copy", "near-gold")
    assert rebuild(store, [asked]).changed == () and row().flags == ("reference-agent",)
    assert "flagged again: near-gold" in run("restore-flag", one, "near-gold", *where, "it was").output
    assert row().flags == ("near-gold", "reference-agent")
    for arguments, says in (
        (("clear-flag", one, "copy", *where, "x"), "cleared already: a reason"),
        (("clear-flag", first, "copy", *where, "x"), "has no flag copy: it has near-gold, reference-agent"),
        (("clear-flag", one, "copied", *where, "x"), "did you mean copy"),
        (("restore-flag", one, "near-gold", *where, "x"), "has not been cleared"),
        (("clear-flag", "nothing", "copy", *where, "x"), "no submission"),
        (("clear-flag", one, "reference-agent", *where, ""), "is empty"),
    ):
        found = run(*arguments).exception
        assert isinstance(found, UserError) and says in str(found), str(found)
    assert len(list((store.folder / "moderation").iterdir())) == 3
