"""Every figure that the pages of adapters and defences state: `make adapters-check`, or PART=defences of it.

    python -m tests.eval.adapters.bars RELEASE OUT [PART …]

RELEASE is a build of profile paper; the live dataset is built into OUT. A part's lines are printed as they
come and kept in OUT/PART.txt once it is through.

    defences   what is known by construction (docs/defences.md), in this process
    gold       verifiers' own validation over every live row and every row of RELEASE
    episodes   1,000 random live episodes through every adapter
    verdicts   eight agents over every row through inspect_ai and lm-eval (an hour)
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from robustbench_tc.api.building import build_live
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.inputs import load_live

from ..defence_bars import figures as defences
from . import episodes, played, trained, verdict_bars

EPISODES = 1_000


def live_dataset(out: Path) -> Path:
    """All tasks and faults of the bundled worlds."""
    folder = out / "robustbench-tc-live"
    if not folder.is_dir():
        build_live(out=folder)
    return folder


def of_gold(release: Path, out: Path) -> Iterator[str]:
    for name, dataset, more in (
        ("rbtc-rows", live_dataset(out), ()),
        ("rbtc-rows", release, ()),
        ("rbtc-rows", release, ("--taskset.mode", "fc")),
    ):
        yield validated(name, dataset, *more)


def validated(name: str, dataset: Path, *more: str) -> str:
    """What `vf-validate` counts: gold has to earn 1, and a row that nobody played less than 1."""
    with tempfile.TemporaryDirectory() as place:
        done = played.verifiers(
            *("vf-validate", name, "--taskset.dataset", dataset, "--runtime.type", "subprocess"),
            *("--rich", "False", "--max-concurrent", 8, "-o", "out", *more),
            place=Path(place),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        [path] = Path(place).glob("out/*/summary.json")
        found = json.loads(path.read_text())
    checks = found["checks"]
    words = " ".join(more)
    return (
        f"{name} {words}: gold earns 1 in {checks['gold']['valid']} of {found['total']} rows, "
        f"no reply less than 1 in {checks['noop']['valid']}"
    )


def of_episodes(release: Path, out: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as place:
        yield from compared(live_dataset(out), EPISODES, Path(place))


def compared(dataset: Path, count: int, place: Path, *only: str) -> Iterator[str]:
    """A line for each adapter beside our own loop. `only`: of the harnesses, without training's loops."""
    rows = load_live(str(dataset)).rows
    drawn = episodes.drawn(rows, count)
    ours = played.by_us(dataset, drawn, place)
    right = sum(one["success"] is True for one in ours)
    yield f"{count} episodes of {len(rows)} rows: {right} earn 1 in our own loop"
    through: dict[str, Callable[..., list[played.Record]]] = {
        "inspect_ai": played.by_inspect,
        "verifiers": played.by_verifiers,
    }
    for name, play in through.items():
        if only and name not in only:
            continue
        theirs = play(dataset, drawn, place)
        same = sum(a["success"] == b["success"] for a, b in zip(ours, theirs, strict=True))
        whole = sum(
            all(a[name] == b[name] for name in played.COLUMNS) for a, b in zip(ours, theirs, strict=True)
        )
        yield f"{name}: {same} of {count} rewards are ours, {whole} with all of {', '.join(played.COLUMNS)}"
    if only:
        return
    verl, trl = trained.by_verl(dataset, drawn), trained.by_trl(dataset, drawn)
    equal = sum(a == b for a, b in zip(verl, trl, strict=True))
    yield f"TRL: {equal} of {count} rewards are those of verl's loop"
    pairs = [(a, b) for a, b in zip(ours, verl, strict=True) if played.same_course(a)]
    same = sum(bool(a["state"]) == bool(b["reached"]) for a, b in pairs)
    yield f"data=live: {same} of {len(pairs)} end states that its loop can compare are right where ours are"


PARTS: dict[str, Callable[[Path, Path], Iterator[str]]] = {
    "defences": lambda release, out: defences(release),
    "gold": of_gold,
    "episodes": of_episodes,
    "verdicts": verdict_bars.figures,
}


def main(release: Path, out: Path, *parts: str) -> None:
    """Prints the lines of these parts; of all where none is named."""
    for part in parts:
        if part not in PARTS:
            raise unknown("part", part, PARTS)
    out.mkdir(parents=True, exist_ok=True)
    for part in parts or PARTS:
        lines = []
        for line in PARTS[part](release, out):
            lines.append(line)
            sys.stdout.write(f"{part}: {line}\n")
            sys.stdout.flush()
        (out / f"{part}.txt").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), *sys.argv[3:])
    except UserError as error:
        sys.exit(str(error))
