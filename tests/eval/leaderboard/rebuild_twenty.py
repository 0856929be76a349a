"""Rebuilds of one store with its files written in any order, by one process and by two: the same bytes."""

import random
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from robustbench_tc import taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec, select_types
from robustbench_tc.eval import inputs
from robustbench_tc.eval.leaderboard import index
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.moderation import Decision
from robustbench_tc.eval.leaderboard.rebuild import rebuild, verify
from robustbench_tc.eval.leaderboard.store import Store

from .. import small
from . import desks
from .made import behind, run_folder

ROUNDS = 20

PACKS = ("offers", "registry", "abstention")

Kind = tuple[str, str, dict[str, object]]
"""Name, agent, and what is special about the run."""

KINDS: tuple[Kind, ...] = (
    ("Alpha-3B", "oracle", {}),
    ("Beta-7B", "name-biased", {}),
    ("Gamma-14B", "gives-up-on-error", {}),
    ("Delta-1B", "silent", {}),
    ("Alpha-3B", "oracle", {"mode": "fc"}),
    ("Beta-7B", "apology", {"mode": "fc"}),
    ("Epsilon-2B", "gives-up-on-error", {"repeat": 2}),
    ("Zeta-9B", "name-biased", {"mode": "fc", "repeat": 3}),
    ("Beta-7B", "oracle", {"defend": ("retry",)}),
    ("Alone-2B", "rambler", {"defend": ("schema", "hint")}),
    ("Alpha-3B", "always-calls", {}),  # supersedes the first one
    ("Copy-8B", "gives-up-on-error", {}),
    ("Alpha-3B", "oracle", {"packs": True}),
    ("Beta-7B", "name-biased", {"packs": True, "mode": "fc"}),
)


def with_packs(folder: Path) -> Asked:
    """A dataset that holds packs: a clean row of each source and what is made of it."""
    build_release(BuildSpec(profile="bundled", codes=select_types(("core", *PACKS))), folder / "built")
    rows = inputs.load(str(folder / "built")).rows
    first: dict[str, str] = {}
    for row in rows:
        first.setdefault(row.source, row.clean_id)
    kept = [row for row in rows if row.clean_id == first[row.source]]
    return Asked.of(inputs.load(str(small.write(folder / "cut", kept))))


def of_core(packs: Asked) -> Asked:
    """The same samples without the packs."""
    core = {taxonomy.CLEAN, *taxonomy.codes()}
    return Asked(name="core", version="1.0.0", rows=tuple(one for one in packs.rows if one.type_code in core))


def store_of_kinds(folder: Path, core: Asked, packs: Asked, kinds: Sequence[Kind] = KINDS) -> Store:
    """A submission of each kind, listed by a desk; the second is verified and cleared of a flag, the last
    one hidden."""
    store, day = Store(folder / "results"), datetime(2026, 10, 1, 12, tzinfo=UTC)
    ids = []
    for number, (name, agent, options) in enumerate(kinds):
        how = dict(options)
        asked = packs if how.pop("packs", False) else core
        chain = how.pop("defend", ())
        run = run_folder(folder / f"run{number}", agent, asked, model=name, **how)  # type: ignore[arg-type]
        if chain:
            run = behind(run, folder / f"behind{number}", *chain)  # type: ignore[misc]
        now = day + timedelta(days=number)
        desk = Desk(store, desks.InProcess(asked, Limits()), Limits(), lambda now=now: now)  # type: ignore[misc]
        ids.append(desks.listed(desk, run, f"user{number % 3}", name))
        if number == 1:
            verify(store, ids[-1], run, core, by="ann", now=now)
    why = Decision(
        submission=ids[1],
        action="clear-flag",
        flag="reference-agent",
        reason="why",
        by="ann",
        at="2026-11-20",
    )
    with store.locked():
        store.decide(why)
        store.decide(Decision(submission=ids[-1], action="hide", reason="why", by="ann", at="2026-11-20"))
    return store


def rounds(store: Store, asked: Sequence[Asked], number: int, folder: Path) -> Iterator[str]:
    """A digest of everything that is computed: of the store as it was listed, then of each round's copy,
    which is made in an order of its own and rebuilt from nothing, and then once more over that."""
    rebuild(store, asked)
    yield digest(store)
    names = sorted(path.name for path in (store.folder / "submissions").iterdir())
    for turn in range(number):
        rng = random.Random(turn)
        again = Store(folder / f"round{turn}")
        for one in rng.sample(names, len(names)):
            for name in rng.sample(files := sorted(p.name for p in store.path(one).iterdir()), len(files)):
                again.path(one).mkdir(exist_ok=True)
                shutil.copyfile(store.path(one) / name, again.path(one) / name)
        for part in ("verifications", "moderation"):
            for path in rng.sample(there := sorted((store.folder / part).iterdir()), len(there)):
                shutil.copyfile(path, again.folder / part / path.name)
        given = rng.sample(list(asked), len(asked))
        found = rebuild(again, given, num_proc=1 + turn % 2)
        assert sorted(found.new) == names and not found.not_possible, found
        once = rebuild(again, given, num_proc=1) if turn == 0 else None
        assert once is None or (sorted(once.same) == names and not once.boards_changed), once
        yield digest(again)
        shutil.rmtree(again.folder)


def digest(store: Store) -> str:
    """Over the names and bytes of entries and boards; the index holds times of files and is left out."""
    over = sha256()
    for folder in (store.entries, store.folder / "boards"):
        for path in sorted(folder.iterdir()):
            if path.name != index.FILE:
                over.update(f"{folder.name}/{path.name}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return over.hexdigest()
