"""What size costs: training rows on 1 and 2 processes, a million predictions scored, growth up to 100 times.

    python -m benchmarks.scale --sources ../shared/sources             # about ten minutes on two idle cores
    python -m benchmarks.scale --sources ../shared/sources --quick     # a tenth of the size
    python -m benchmarks.scale growth

Every figure is of a command in a process of its own: wall seconds, processor seconds of the whole process
tree, and the peak of the tree's memory with shared pages counted once (the kernel's Pss, sampled). The
sources of the growth are the paper's samples, copied under new ids; answers are written down by rule.
`scale.svg` beside this file shows the growth.
"""

import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import Annotated, Any

import msgspec
import typer

from robustbench_tc.eval.report import figures
from robustbench_tc.eval.report.figures import Axis, Dot

from . import training_rows

HERE = Path(__file__).parent
COPIES = 4
"""Differently perturbed versions of a training row."""


def main(
    parts: Annotated[list[str] | None, typer.Argument()] = None,
    sources: Path = Path("../shared/sources"),
    quick: bool = False,
) -> None:
    """Print the figures of some parts (training, scoring, growth) or all; quick: at a tenth of the size."""
    every = {part.__name__: part for part in (training, scoring, growth)}
    if unknown := set(parts or ()) - set(every):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose from {', '.join(every)}")
    found: dict[str, Any] = {"quick": quick}
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        for name in parts or every:
            scratch = Path(folder) / name
            scratch.mkdir()
            found[name] = every[name](sources, scratch, quick)
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")


# --- the parts ----------------------------------------------------------------------------------------


def training(_: Path, folder: Path, quick: bool) -> dict[str, Any]:
    """`rbtc build toolrl-dr` with the rule types, `COPIES` perturbed versions of each made-up row."""
    rows = 100_000 if quick else 1_000_000

    def build(perturbed: int, processes: int) -> dict[str, Any]:
        source = folder / f"rlla-{perturbed}"
        if not source.exists():
            training_rows.write_source(source, perturbed // COPIES)
        found = command(
            "build", "toolrl-dr", "--rlla", source, "--configs", "full", "--copies", COPIES,
            "--num-proc", processes, "--out", folder / "out", "--force", "--json",
        )  # fmt: skip
        made = json.loads(found.pop("said"))["rows"]["full"]["perturbed"]
        return {"perturbed_rows": made, "rows_per_second": round(made / found["seconds"]), **found}

    tenth, one, two = build(rows // 10, 1), build(rows, 1), build(rows, 2)
    return {
        "one_process": one,
        "two_processes": two,
        "a_tenth": tenth,
        "speedup": round(one["seconds"] / two["seconds"], 2),
        "speedup_of_an_empty_loop": loop_speedup(),
        "peak_to_that_of_a_tenth": round(one["peak_mib"] / tenth["peak_mib"], 2),
    }


def loop_speedup() -> float:
    """What two processes gain on this machine that share nothing: the ceiling of any speedup, median of 3."""
    line = [sys.executable, "-c", "for _ in range(100_000_000): pass"]

    def seconds(processes: int) -> float:
        started = time.perf_counter()
        for process in [subprocess.Popen(line) for _ in range(processes)]:
            process.wait()
        return time.perf_counter() - started

    return round(sorted(2 * seconds(1) / seconds(2) for _ in range(3))[1], 2)


def scoring(sources: Path, folder: Path, quick: bool) -> dict[str, Any]:
    """`rbtc score` of the paper profile's rows, answered again and again."""
    release, run = folder / "robustbench-tc", folder / "run"
    command("build", "--sources", sources, "--out", release)
    count = answer(release, run, 25 if quick else 251)
    found = {}
    for name, processes in (("one_process", 1), ("two_processes", 2)):
        figures = command("score", run, "--num-proc", processes)
        del figures["said"]
        rate = round(count / figures["seconds"])
        found[name] = {"predictions": count, "predictions_per_second": rate, **figures}
    tenth = folder / "tenth"
    answer(release, tenth, 3 if quick else 25)
    peak = command("score", tenth)["peak_mib"]
    return found | {"peak_to_that_of_a_tenth": round(found["one_process"]["peak_mib"] / peak, 2)}


def growth(sources: Path, folder: Path, quick: bool) -> dict[str, Any]:
    """Build, score and report of the paper profile at 1, 10 and 100 times its samples, on one process."""
    times = (1, 10) if quick else (1, 10, 100)
    seconds: dict[str, dict[int, float]] = {"build": {}, "score": {}, "report": {}}
    found: dict[str, Any] = {}
    for factor in times:
        release, run = folder / f"robustbench-tc-{factor}", folder / f"run-{factor}"
        figures = {"build": python("grown", sources, release, factor)}
        rows = answer(release, run, 1)
        figures["score"] = command("score", run)
        figures["score_on_two"] = command("score", run, "--num-proc", 2)
        figures["report"] = command("report", run, "--out", folder / f"report-{factor}", "--allow-missing")
        for name, one in figures.items():
            del one["said"]
            if name in seconds:
                seconds[name][factor] = one["seconds"]
        found[f"times_{factor}"] = {"rows": rows, **figures}
    (HERE / "scale.svg").write_text(drawn(seconds))
    last, before = times[-1], times[-2]
    found["last_step_cost"] = {
        name: round(by[last] / by[before] / (last / before), 2) for name, by in seconds.items()
    }
    return found


def drawn(seconds: dict[str, dict[int, float]]) -> str:
    """Seconds by size as a figure of its own, both axes logarithmic.

    A dashed line is proportional to the size, and meets the line beside it at its end.
    """
    times = sorted({factor for by in seconds.values() for factor in by})
    logs = [math.log10(value) for by in seconds.values() for value in by.values()]
    powers = [10.0**power for power in range(math.floor(min(logs)), math.ceil(max(logs)) + 1)]
    dots, paths = [], []
    for kind, (name, by) in zip(("first", "second", "third"), seconds.items(), strict=True):
        points, per_sample = sorted(by.items()), by[times[-1]] / times[-1]
        straight = [(x, per_sample * x) for x in times if per_sample * x >= powers[0]]
        paths += [figures.Path(straight, "proportional"), figures.Path(points, kind, name)]
        dots += [Dot(x, y, kind, f"{name}, {x}×: {y:g} s") for x, y in points]
    samples, spent = "samples, in times the paper profile's 199", "seconds, one process; dashed: proportional"
    chart = figures.chart(
        Axis(times[0], times[-1], {x: f"{x}×" for x in times}, log=True, name=samples),
        Axis(powers[0], powers[-1], {y: f"{y:g}" for y in powers}, log=True, name=spent),
        dots,
        paths,
        "Seconds of build, score and report by the number of samples",
        size=(640, 400),
        right=80,
    )
    return figures.alone(chart)


# --- what runs in processes of their own ------------------------------------------------------------------


def grown(sources: Path, out: Path, factor: int) -> None:
    """Builds the paper profile with every sample `factor` times."""
    from robustbench_tc.builders import build
    from robustbench_tc.builders.sources import Pool, Profile, read_pool
    from robustbench_tc.dataset_cards.render import benchmark_card
    from robustbench_tc.eval.validate import self_check

    def copied(root: Path, profile: Profile, *, checked: bool) -> Pool:
        pool = read_pool(root, profile, checked=checked)
        samples = list(pool.samples)
        for copy in range(1, factor):
            for sample in pool.samples:
                clean_id = f"{sample.clean_id} copy {copy}"
                again = msgspec.structs.replace(sample, id=f"{clean_id}::clean", clean_id=clean_id)
                assert not checked or self_check(again) is None
                samples.append(again)
        return msgspec.structs.replace(pool, samples=tuple(samples))

    setattr(build, "read_pool", copied)  # noqa: B010 - what the build reads, replaced
    spec = build.BuildSpec(profile="paper", sources=sources)
    build.build(spec, out, card=benchmark_card)


def answered(release: Path, run: Path, repeats: int) -> None:
    """Writes a run over the release; says how many predictions it has."""
    import pyarrow.parquet as pq
    from tests.eval import answered as by_rule

    made = by_rule.run(run, release, repeats)
    sys.stdout.write(str(pq.read_metadata(made.answers_path).num_rows))


def answer(release: Path, run: Path, repeats: int) -> int:
    return int(python("answered", release, run, repeats)["said"])


def command(*arguments: object) -> dict[str, Any]:
    """`rbtc ARGUMENTS`, measured."""
    code = "from robustbench_tc.cli import main; main()"
    return measured([sys.executable, "-c", code, *map(str, arguments)])


def python(function: str, *arguments: object) -> dict[str, Any]:
    """A function of this module in a process of its own, measured."""
    shown = ", ".join(repr(a) if isinstance(a, int) else f"Path({str(a)!r})" for a in arguments)
    code = f"from pathlib import Path; from benchmarks import scale; scale.{function}({shown})"
    return measured([sys.executable, "-c", code])


def measured(line: list[str]) -> dict[str, Any]:
    """Runs a command: what it printed, wall and processor seconds, peak memory of its process tree in MiB."""
    before, started, peak = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0
    with subprocess.Popen(line, stdout=PIPE, stderr=PIPE, text=True, cwd=HERE.parent) as process:
        said = None
        while said is None:
            try:
                said, complaint = process.communicate(timeout=0.2)
            except subprocess.TimeoutExpired:
                peak = max(peak, _pss(process.pid))
    if process.returncode:
        sys.exit((complaint.strip().splitlines() or ["failed without a word"])[-1])
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "said": said,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(spent, 1),
        "peak_mib": round(peak / 1024),
    }


def _pss(pid: int) -> int:
    """Kilobytes of a process and everything below it, shared pages shared out."""
    total = 0
    with suppress(OSError):  # it has ended
        memory = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += sum(map(int, re.findall(r"^Pss: +([0-9]+)", memory, re.MULTILINE)))
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            total += sum(_pss(int(child)) for child in children.read_text().split())
    return total


if __name__ == "__main__":
    typer.run(main)
