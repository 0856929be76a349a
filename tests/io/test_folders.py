"""The guard itself: what is ours is replaced; whatever else lies there survives, also what comes later."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.errors import UserError
from robustbench_tc.io import files, folders, marker, parquet
from robustbench_tc.io.folders import atomic_dir, check_dir, claim, remove_dir

from ..refusals import refuses
from ..trees import tree, write

KIND: marker.OwnKind = "report"


def make(path: Path, contents: dict[str, str | bytes] | None = None, **options: Any) -> Path:
    """A folder of ours through the way that every command takes."""
    contents = {"a.txt": "one", "sub/b.txt": "two"} if contents is None else contents
    with atomic_dir(path, kind=KIND, **options) as made:
        write(made, contents)
    return path


def sealed(**fields: Any) -> bytes:
    given = {"kind": KIND, "marker_version": marker.OWN_VERSION, "files": {}, "own_sha256": ""} | fields
    return marker.sealed(msgspec.convert(given, folders.Marker))


def checked(path: Path, kind: str = KIND) -> None:
    check_dir(path, kind=kind, force=True)


def refused(path: Path, *parts: str, **options: Any) -> None:
    """Replacing and removing are refused, and nothing around has changed."""
    before = tree(path.parent)
    for attempt in (
        lambda: make(path, force=True, **options),
        lambda: remove_dir(path, kind=KIND, **options),
    ):
        error = refuses(".", attempt)
        for part in parts:
            assert part in error
        assert tree(path.parent) == before


# --- what is replaced ---------------------------------------------------------------------------------


def test_a_folder_of_ours_is_replaced_with_force_and_leaves_nothing_beside(tmp_path: Path) -> None:
    make(tmp_path / "out")
    before = tree(tmp_path)
    refuses("out exists: --force replaces it", make, tmp_path / "out")
    assert tree(tmp_path) == before
    make(tmp_path / "out", {"c.txt": "three"}, force=True)
    assert set(tree(tmp_path)) == {"out", "out/c.txt", "out/rbtc.json"}
    remove_dir(tmp_path / "out", kind=KIND)
    assert tree(tmp_path) == {}


def test_an_empty_folder_is_anybodys(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    make(tmp_path / "out", force=True)
    assert "out/a.txt" in tree(tmp_path)


def test_changes_are_discarded_on_request_only(tmp_path: Path) -> None:
    out = make(tmp_path / "out")
    (out / "a.txt").write_text("mine now")
    refused(out, "changed since", "a.txt", "--discard-changes")
    make(out, force=True, discard_changes=True)
    assert (out / "a.txt").read_text() == "one"
    (out / "a.txt").unlink()  # what is gone is no loss
    make(out, force=True)
    assert (out / "a.txt").read_text() == "one"


def test_names_that_mean_something_to_a_shell_are_names(tmp_path: Path) -> None:
    """`*` in --out is a character: folders of other names beside it are never looked at."""
    for name in ("out*", "[ab]", "o?t", "-rf", "a b", "é\n"):
        strangers = write(tmp_path / "in", {".outX.rbtc-partial/thesis.txt": "t", ".A.rbtc-old/x": "t"})
        before = tree(strangers)
        make(strangers / name)
        make(strangers / name, {"c.txt": "three"}, force=True)
        remove_dir(strangers / name, kind=KIND)
        assert tree(strangers) == before


# --- what is never replaced ---------------------------------------------------------------------------

STRANGERS: dict[str, Callable[[Path], object]] = {
    "a file": lambda out: write(out, {"thesis.txt": "years"}),
    "a hidden file": lambda out: write(out, {".env": "KEY=1"}),
    "a file deep inside": lambda out: write(out, {"sub/deep/er/x": ""}),
    "an empty folder": lambda out: (out / "notes").mkdir(),
    "a link": lambda out: (out / "link").symlink_to("/etc/hostname"),
    "a link to a folder": lambda out: (out / "link").symlink_to("/etc", target_is_directory=True),
    "a link that leads nowhere": lambda out: (out / "link").symlink_to("nowhere"),
    "a pipe": lambda out: os.mkfifo(out / "pipe"),
    "a repository": lambda out: write(out, {".git/HEAD": "ref: refs/heads/main\n"}),
    "a worktree": lambda out: write(out, {".git": "gitdir: elsewhere\n"}),
    "a lock that is not ours": lambda out: write(out, {".x.lock": "by hand"}),
    "something that looks unfinished": lambda out: write(out, {".a.txt.partial": "x"}),
    "a folder that looks unfinished": lambda out: write(out / ".a.rbtc-partial", {"x": "y"}),
    "another marker": lambda out: write(out, {"build_report.json": "{}"}),
    "a name with control characters": lambda out: write(out, {"\x1b[2J\n": "x"}),
}


def test_a_strangers_file_in_our_folder_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, put in enumerate(STRANGERS.values()):
        out = make(tmp_path / str(number) / "out")
        put(out)
        refused(out)
        refused(out, discard_changes=True)
    out = make(tmp_path / "out")
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("out/s")
    refused(out, "contains files that rbtc did not write: s.")


def test_a_named_file_that_became_a_link_or_a_folder_is_not_ours(tmp_path: Path) -> None:
    victim = write(tmp_path / "victim", {"a.txt": "one", "b.txt": "two"})
    out = make(tmp_path / "out")
    (out / "a.txt").unlink()
    (out / "a.txt").symlink_to(victim / "a.txt")  # the same bytes
    refused(out, "a.txt", discard_changes=True)
    out = make(tmp_path / "other")
    (out / "sub" / "b.txt").unlink()
    (out / "sub").rmdir()
    (out / "sub").symlink_to(victim)
    refused(out, "sub", discard_changes=True)


MARKERS: dict[str, bytes] = {
    "nothing": b"",
    "not JSON": b"thesis",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "another program's": b'{"kind": "report", "version": 1}',
    "an older version": sealed(marker_version=1),
    "ours without a seal": b'{"kind": "report", "marker_version": 2, "files": {}, "own_sha256": ""}',
    "ours with another's seal": json.dumps(
        {"kind": "report", "marker_version": 2, "files": {"thesis.txt": "0" * 64}, "own_sha256": "0" * 64}
    ).encode(),
    "unknown kind": sealed(kind="thesis"),
    "another kind": sealed(kind="space"),
    "unknown version": sealed(marker_version=99),
    "no version": sealed(marker_version=0),
    "a path above": sealed(files={"../victim/a.txt": hashlib.sha256(b"one").hexdigest()}),
    "an absolute path": sealed(files={"/etc/hostname": "0" * 64}),
    "a path in disguise": sealed(files={"sub/../../victim/a.txt": "0" * 64}),
    "a path with a dot": sealed(files={"./a.txt": "0" * 64}),
    "an empty name": sealed(files={"": "0" * 64}),
    "a zero byte": sealed(files={"a\0b": "0" * 64}),
    "names nothing that is there": sealed(),
}


def test_a_foreign_marker_makes_nothing_ours(tmp_path: Path) -> None:
    for number, (text, name) in enumerate(product(MARKERS.values(), (marker.OWN, marker.BUILD))):
        root = write(
            tmp_path / str(number), {"victim/a.txt": "one", f"out/{name}": text, "out/thesis.txt": "y"}
        )
        refused(root / "out")
        refused(root / "out", discard_changes=True)


def test_a_marker_that_names_other_places_moves_nothing_there(tmp_path: Path) -> None:
    victim = tree(write(tmp_path / "victim", {"a.txt": "one"}))
    for name in ("../victim/a.txt", "/etc/hostname", "sub/../../victim/a.txt"):
        write(tmp_path / "out", {marker.OWN: sealed(files={name: hashlib.sha256(b"one").hexdigest()})})
        make(tmp_path / "out", force=True, discard_changes=True)
        remove_dir(tmp_path / "out", kind=KIND)
        assert tree(tmp_path / "victim") == victim and Path("/etc/hostname").exists()


def test_a_marker_that_is_a_pipe_a_link_or_a_folder_is_none(tmp_path: Path) -> None:
    good = make(tmp_path / "good", {})
    puts: tuple[Callable[[Path], object], ...] = (
        os.mkfifo,
        lambda path: path.symlink_to(good / marker.OWN),
        Path.mkdir,
    )
    for number, put in enumerate(puts):
        out = write(tmp_path / str(number), {"thesis.txt": "years"})
        put(out / marker.OWN)
        refused(out)


@given(st.data())
@settings(max_examples=30)
def test_any_change_of_the_marker_is_seen(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    out = make(tmp_path_factory.mktemp("changed") / "out")
    text = bytearray((out / marker.OWN).read_bytes())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != text[at]))
    (out / marker.OWN).write_bytes(text)
    refused(out, discard_changes=True)


_NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(
    st.dictionaries(_NAMES.filter(lambda n: n not in (".", "..")), st.binary(max_size=20), max_size=4),
    st.data(),
)
@settings(max_examples=60)
def test_whatever_lies_in_a_folder_is_named_unchanged_or_survives(
    tmp_path_factory: pytest.TempPathFactory, foreign: dict[str, bytes], data: st.DataObject
) -> None:
    """Ours goes if nothing else is there; else all of it is as it was before."""
    root = tmp_path_factory.mktemp("any")
    out = make(root / "out")
    for name, content in foreign.items():
        with suppress(OSError):  # a drawn name may be too long, or a folder's
            (out / name).write_bytes(content)
    touched = data.draw(st.sampled_from([None, "a.txt", "sub/b.txt"]))
    if touched is not None:
        (out / touched).write_bytes(data.draw(st.binary(max_size=5)))
    untouched = tree(out) == {
        **tree(make(root / "like")),
    }
    before = tree(root)
    try:
        remove_dir(out, kind=KIND)
    except UserError:
        assert tree(root) == before
        assert not untouched
    else:
        assert untouched and not out.exists()


# --- places -------------------------------------------------------------------------------------------


def test_the_working_folder_and_its_parents_are_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = make(tmp_path / "out")
    monkeypatch.chdir(out / "sub")
    refused(out, "the working folder or a parent of it")
    before = tree(tmp_path)
    for name in (Path("..") / "..", Path(".."), Path(), out / ".." / "out"):
        refuses(".", make, name, force=True, discard_changes=True)
    assert tree(tmp_path) == before


def test_roots_and_links_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(make(tmp_path / "out"))
    refused(tmp_path / "link", "a link")
    (tmp_path / "dangling").symlink_to("nowhere")
    refused(tmp_path / "dangling", "a link")
    refused(write(tmp_path, {"thesis": "a file"}) / "thesis", "not a folder")
    refuses("a parent of it", make, Path("/"), force=True)


def test_what_is_mounted_in_a_folder_of_ours_is_never_touched(tmp_path: Path) -> None:
    out = make(tmp_path / "out")
    elsewhere = write(tmp_path / "elsewhere", {"c.txt": "two"})
    with mounted(out / "sub", "--bind", str(elsewhere)):
        refused(out, "sub/c.txt", discard_changes=True)


@contextmanager
def mounted(target: Path, *options: str) -> Iterator[None]:
    """A mount for the block; what is mounted there afterwards, whatever its name is then, is unmounted."""
    if os.geteuid() or subprocess.run(["mount", *options, str(target)], capture_output=True).returncode:
        pytest.skip("this machine does not let us mount")
    try:
        yield
    finally:
        for line in Path("/proc/self/mounts").read_text().splitlines():
            if line.split(" ")[1].startswith(str(target.parents[1])):
                subprocess.run(["umount", line.split(" ")[1]], check=True)


# --- what comes in between ----------------------------------------------------------------------------


def test_a_file_that_appears_while_the_new_folder_is_written_keeps_the_old_one(tmp_path: Path) -> None:
    out = make(tmp_path / "out")
    with pytest.raises(UserError, match="thesis"), atomic_dir(out, kind=KIND, force=True) as made:
        write(made, {"c.txt": "three"})
        write(out, {"thesis.txt": "years"})
        before = tree(out)
    assert tree(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_that_appears_after_the_first_check_keeps_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def later(self: Path, target: Path) -> Path:
        if target.suffix == files.OLD:
            write(self, {late: "years of work"})
        return rename(self, target)

    for number, late in enumerate(("thesis.txt", "sub/new.txt", "notes/new.txt")):
        out = make(tmp_path / str(number))
        for attempt in (
            partial(make, out, {"c.txt": "three"}, force=True),
            partial(remove_dir, out, kind=KIND),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(Path, "rename", later)
                refuses(f"{number} contains files that rbtc did not write: {late.split('/')[0]}", attempt)
            assert (out / late).read_text() == "years of work" and (out / "a.txt").read_text() == "one"
            assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_folder_that_took_the_name_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = make(tmp_path / "out")
    rename = Path.rename

    def contested(self: Path, target: Path) -> Path:
        if self.suffix == files.PARTIAL and self.is_dir():
            write(out, {"thesis.txt": "years"})
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", contested)
    with pytest.raises(OSError, match="not empty"):
        make(out, {"c.txt": "three"}, force=True)
    assert (out / "thesis.txt").read_text() == "years"


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), atomic_dir(tmp_path / "out") as made:
        write(made, {"a.txt": "one"})
        raise ValueError("stop")
    assert tree(tmp_path) == {}


def test_strangers_folders_with_similar_names_are_left_alone(tmp_path: Path) -> None:
    for name in (".out.old", ".out.x.rbtc-partial", ".out.partial", "out.rbtc-partial", ".outs.rbtc-old"):
        write(tmp_path / name, {"thesis.txt": "years"})
    write(tmp_path, {".out.lock": "my notes"})
    before = tree(tmp_path)
    make(tmp_path / "out")
    make(tmp_path / "out", force=True)
    remove_dir(tmp_path / "out", kind=KIND)
    assert tree(tmp_path) == before


def killed(after: int, work: Callable[[], object]) -> bool:
    """Does the work in a process that is killed before its `after`-th file operation; whether it was."""
    child = os.fork()
    if child == 0:
        left = after

        def dies(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return call(*arguments, **options)

            return wrapped

        code = 1
        try:
            for name in ("rename", "unlink", "rmdir", "mkdir", "open", "link", "replace"):
                setattr(os, name, dies(getattr(os, name)))
            for name in ("open", "write_bytes"):
                setattr(Path, name, dies(getattr(Path, name)))
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_killed_at_any_file_operation_a_folder_is_whole_or_gone_and_the_next_run_tidies(
    tmp_path: Path,
) -> None:
    old, new = {"a.txt", "sub/b.txt", "sub", "rbtc.json"}, {"c.txt", "rbtc.json"}
    for what in ("replace", "remove"):
        outcomes = set()
        for after in range(200):
            root = tmp_path / what / str(after)
            out = make(root / "out")
            again: Callable[[], object] = partial(make, out, {"c.txt": "three"}, force=True)
            stopped = killed(after, again if what == "replace" else partial(remove_dir, out, kind=KIND))
            seen = set(tree(out)) if out.exists() else None
            # Between the two renames nothing has the name: the next run puts the old one back.
            assert seen in (None, old, new), seen
            outcomes.add(None if seen is None else frozenset(seen))
            again()
            assert set(tree(root)) == {"out", "out/c.txt", "out/rbtc.json"}, after
            if not stopped:
                break
        else:
            pytest.fail("the command never came to its end")
        assert len(outcomes) >= 2


def test_a_swap_that_was_killed_in_the_middle_is_undone_before_anything_else(tmp_path: Path) -> None:
    out = make(tmp_path / "out")
    before = tree(out)
    out.rename(files.beside(out, files.OLD))
    refuses("exists", make, out)
    assert tree(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# --- single files -------------------------------------------------------------------------------------


def put(path: Path, text: str, **options: Any) -> None:
    with files.atomic_file(path, **options) as beside:
        beside.write_text(text)


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    write(tmp_path, {"mine.csv": "mine", "target": "mine"})
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    before = tree(tmp_path)
    for name in ("mine.csv", "link", "dangling", "folder"):
        refuses("exists and is not replaced", put, tmp_path / name, "ours")
    assert tree(tmp_path) == before


def test_a_file_that_takes_the_name_meanwhile_is_kept(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="exists and is not replaced"),
        files.atomic_file(tmp_path / "a.csv") as beside,
    ):
        beside.write_text("ours")
        (tmp_path / "a.csv").write_text("mine")
    assert tree(tmp_path) == {"a.csv": ("file", b"mine")}


def test_what_a_killed_write_left_goes_with_the_next_and_nothing_else(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal; from pathlib import Path; from robustbench_tc.io.files import atomic_file\n"
        "with atomic_file(Path(sys.argv[1])) as beside:\n"
        "    beside.write_text('much more than the next one writes')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.csv")], check=False)
    [left] = tmp_path.iterdir()
    assert files.is_ours(left.name)
    write(tmp_path, {".a.csv.partial": "mine"})
    with files.atomic_file(tmp_path / "a.csv", replace=True) as beside:
        refuses("being written by another process", put, tmp_path / "a.csv", "theirs")
        beside.write_text("ours")
    assert tree(tmp_path) == {"a.csv": ("file", b"ours"), ".a.csv.partial": ("file", b"mine")}


def put_own(path: Path, text: str) -> None:
    table = pa.table({"text": [text]})
    parquet.write_file([table], path, table.schema, replace=True)


@pytest.fixture
def lives_on(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    claim(run, "run", ("journal.jsonl", "scores"))
    return run


def test_files_that_a_folder_that_lives_on_was_begun_with_are_written_again(lives_on: Path) -> None:
    run = lives_on
    put_own(run / "scores", "one")
    put_own(run / "scores", "two")
    assert pq.read_table(run / "scores").to_pylist() == [{"text": "two"}]
    write(run, {"other": "mine", "journal.jsonl": "written again and again"})
    refuses(
        "contains files that rbtc did not write: other", remove_dir, run, kind="run", discard_changes=True
    )
    refuses("holds run, not report", claim, run, "report", ())
    (run / "other").unlink()
    claim(run, "run", (), run / "scores")  # ours already
    remove_dir(run, kind="run")
    assert tree(run.parent) == {}


def test_a_folder_without_a_marker_is_claimed_with_nothing_new_in_it(tmp_path: Path) -> None:
    write(tmp_path, {"run/scores": "mine", "run/run.json": "{}"})
    before = tree(tmp_path)
    refuses(
        "exists and is not replaced", claim, tmp_path / "run", "run", ("scores",), tmp_path / "run/scores"
    )
    assert tree(tmp_path) == before
    claim(tmp_path / "run", "run", ("run.json", "scores"))
    checked(tmp_path / "run", "run")


def test_killed_at_any_file_operation_either_version_of_a_file_is_there(lives_on: Path) -> None:
    for after in range(100):
        put_own(lives_on / "scores", "one")
        stopped = killed(after, partial(put_own, lives_on / "scores", "two"))
        assert pq.read_table(lives_on / "scores").to_pylist() in ([{"text": "one"}], [{"text": "two"}])
        checked(lives_on, "run")
        if not stopped:
            break
    else:
        pytest.fail("it never came to its end")


# --- locks --------------------------------------------------------------------------------------------


def test_a_lock_leaves_nothing_and_follows_no_link(tmp_path: Path) -> None:
    with (
        files.locked(tmp_path / "out"),
        pytest.raises(UserError, match="another process"),
        files.locked(tmp_path / "out"),
    ):
        pass
    assert tree(tmp_path) == {}
    write(tmp_path, {".out.lock": "my notes", "target": "mine"})
    (tmp_path / ".link.rbtc-lock").symlink_to("target")
    before = tree(tmp_path)
    with files.locked(tmp_path / "out"):
        pass
    with pytest.raises(OSError, match="link"), files.locked(tmp_path / "link"):
        pass
    assert tree(tmp_path) == before
    (tmp_path / ".killed.rbtc-lock").touch()  # of a process that was killed
    with files.locked(tmp_path / "killed"):
        pass
    assert not (tmp_path / ".killed.rbtc-lock").exists()


def test_many_processes_that_wait_for_a_lock_each_get_it_and_leave_nothing(tmp_path: Path) -> None:
    """Each adds 1 under the lock, 50 times: a lock that two hold, or that is refused, loses some."""
    count = tmp_path / "count"
    count.write_text("0")
    code = (
        "from pathlib import Path; from robustbench_tc.io.files import locked\n"
        f"count = Path({str(count)!r})\n"
        "for _ in range(50):\n"
        "    with locked(count, wait=True): count.write_text(str(int(count.read_text()) + 1))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [one.wait() for one in running] == [0] * 4
    assert tree(tmp_path).keys() == {"count"} and count.read_text() == "200"


def test_a_lock_is_never_counted_unless_it_is_held(tmp_path: Path) -> None:
    out = make(tmp_path / "out")
    with files.locked(out / "journal.jsonl"):
        refused(out, "being written by another process")
    (out / ".journal.jsonl.rbtc-lock").touch()
    make(out, force=True)


# --- the rest -----------------------------------------------------------------------------------------


def test_many_foreign_files_are_listed_with_a_bound(tmp_path: Path) -> None:
    out = make(tmp_path / "out")
    write(out, {f"{number}.txt": "" for number in range(3_000)})
    error = refuses(".", make, out, force=True)
    assert " and " in error and len(error) < 500


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small" / "disk"
    disk.mkdir(parents=True)
    with mounted(disk, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        yield disk


def test_a_full_disk_names_the_file(small_disk: Path) -> None:
    with (
        pytest.raises(OSError, match="No space left") as error,
        files.atomic_file(small_disk / "a.csv") as beside,
    ):
        beside.write_bytes(b"x" * 100_000)
    assert error.value.filename == str(small_disk / "a.csv")
    assert tree(small_disk) == {}
    with pytest.raises(OSError, match="No space left") as error:
        make(small_disk / "out", {"a.txt": b"x" * 100_000})
    assert error.value.filename == str(small_disk / "out")
    assert tree(small_disk) == {}
