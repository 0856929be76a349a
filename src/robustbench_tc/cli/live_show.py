"""`rbtc live show`, `score` and `summary`: a live run looked at again, without the model."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..schema import Json, dumps
from . import _console
from ._console import styled
from ._replacing import DiscardChanges

if TYPE_CHECKING:
    from ..eval.live.score import LiveScore
    from ..eval.live.show import Shown, ShownCall
    from ..eval.stats.intervals import Interval

DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="A live dataset: a folder, or a Hub id.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A live run's folder.")]
Worlds = Annotated[
    list[str] | None,
    typer.Option("--world", metavar="FILE", help="The Python file of a world of your own. Repeatable."),
]
WorldPython = Annotated[
    str | None, typer.Option(help="The Python that has BFCL's classes (default: that of make env-live).")
]
Moved = Annotated[
    str | None, typer.Option("--dataset", help="Where the run's dataset lies now, if it was moved.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]

LONG = 600
"""Characters of a text or a value that `show` prints."""


def show(
    run: Run,
    episode: Annotated[
        str, typer.Argument(metavar="EPISODE", help="A row id, or a unique beginning of one.")
    ],
    repeat: Annotated[int, typer.Option(min=0, help="Which repeat of the row, from 0.")] = 0,
    dataset: Moved = None,
    world: Worlds = None,
    world_python: WorldPython = None,
    as_json: AsJson = False,
) -> None:
    """One episode step by step: turns, calls, the fault, results, and what each call changed in the world.

    Example: rbtc live show runs/live/agent-oracle-fc orders_1::live_silent_no_op
    """
    from .. import api

    found = api.show_episode(
        run, episode, repeat=repeat, dataset=dataset, worlds=world or (), world_python=world_python
    )
    if as_json:
        _console.json(found)
    else:
        print_episode(found)


def print_episode(found: "Shown") -> None:
    """The episode for people."""
    echo = _console.out.print
    echo(styled(found.id, style="bold"))
    echo(f"world {found.world}, {found.model}, mode {found.mode}", markup=False)
    fault = found.fault
    if fault is not None:
        at = next(
            f"{name} {value}"
            for name in ("call", "write", "read", "tool")
            if (value := getattr(fault.at, name))
        )
        right = f"; right is to {found.label}" if found.label else ""
        echo(styled(f"fault: {fault.kind} at {at}{right}", style="yellow"))
    for number, turn in enumerate(found.turns, 1):
        echo()
        echo(styled(f"turn {number}", style="bold"))
        for said in turn.says:
            echo(styled("user: ", style="cyan") + styled(said))
        if turn.adds:
            echo(styled(f"new tools: {', '.join(turn.adds)}", style="cyan"))
        for reply in turn.replies:
            if reply.text:
                echo(styled("agent: ", style="cyan") + styled(_short(reply.text)))
            for call in reply.calls:
                _print_call(call)
            if reply.answered:
                from ..schema import PLEASE_DECIDE

                echo(styled("user: ", style="cyan") + styled(PLEASE_DECIDE))
    echo()
    print_verdict(found.scores)
    if found.error:
        echo(styled(f"no answer: {found.error}", style="red"))


def _print_call(call: "ShownCall") -> None:
    echo = _console.out.print
    who = "  a defence calls " if call.defence else "  calls "
    echo(styled(who, style="green") + styled(f"{call.name} {_short(_json(call.arguments))}"))
    if call.met or call.executed != 1:
        times = {0: "not at all", 1: "once", 2: "twice"}.get(call.executed, f"{call.executed} times")
        note = f"    {'the fault is met; ' if call.met else ''}carried out {times}"
        echo(styled(note + (f" ({call.problem})" if call.problem else ""), style="yellow"))
    echo(
        styled("    gets " if call.defence else "    is shown ", style="green") + styled(_short(call.result))
    )
    if call.told is not None:
        echo(styled("    in the end ", style="green") + styled(_short(call.told)))
    if call.true_result is not None:
        echo(styled("    was in truth ", style="yellow") + styled(_short(call.true_result)))
    for change in call.changes:
        before, after = _short(_json(change.before)), _short(_json(change.after))
        echo(styled("    changes ", style="magenta") + styled(f"{change.path}: {before} → {after}"))
    if call.more_changes:
        echo(styled(f"    and {call.more_changes} more changes", style="magenta"))


def print_verdict(scores: "LiveScore") -> None:
    """How the episode ended, and whether the world is as it should be."""
    right = {True: "is as it should be", False: "is wrong", None: "cannot be judged"}[scores.state]
    verdict = {True: "right", False: "not right", None: "no verdict"}[scores.success]
    parts = [
        f"{verdict}; ended: {scores.ended}",
        f"the world {right}",
        f"the user was told: {scores.told or 'nothing'}",
    ]
    parts += ["what the user asked was not answered"] * (scores.answered is False)
    parts += ["what is right was said to have failed"] * bool(scores.false_failure)
    parts += ["what no call did was said to be done"] * bool(scores.false_claim)
    if scores.met:
        parts.append("recovered" if scores.recovered else "not recovered")
    style = {True: "green", False: "red", None: "yellow"}[scores.success]
    _console.out.print(styled("; ".join(parts), style=style))


def _json(value: Json) -> str:
    try:
        return value if isinstance(value, str) else dumps(value)
    except ValueError:
        return repr(value)


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text):,} characters)"


def score(
    run: Run,
    dataset: Moved = None,
    world: Worlds = None,
    world_python: WorldPython = None,
    as_json: AsJson = False,
) -> None:
    """Replay every episode without the model, and write and print the scores.

    Example: rbtc live score runs/live/qwen3-8b-fc
    """
    from .. import api

    kept = "the scores were not written; run the same command again"
    with _console.keeping(kept), _console.working("replaying"):
        found = api.score_live(run, dataset=dataset, worlds=world or (), world_python=world_python)
    _print_summary(found, as_json)


def summary(run: Run, as_json: AsJson = False) -> None:
    """Per kind of fault: how often the world ended as it should, and what the user was told.

    Example: rbtc live summary runs/live/qwen3-8b-fc --json
    """
    from ..eval.live import record
    from ..eval.live.score import read_scores

    _print_summary(read_scores(record.open_run(run).path), as_json)


def report(
    run: Run,
    out: Annotated[Path, typer.Option(help="Folder for live.html and live.json.")] = Path("live-report"),
    dataset: Moved = None,
    world: Worlds = None,
    world_python: WorldPython = None,
    discard_changes: DiscardChanges = False,
) -> None:
    """Write one self-contained page of a scored live run: what faults cost, and episodes step by step.

    Example: rbtc live report runs/live/qwen3-8b-fc --out live-report
    """
    from .. import api

    with _console.status("replaying", f"the files in {out} are those of before; run it again") as progress:
        page = api.report_live(
            run,
            out,
            dataset=dataset,
            worlds=world or (),
            world_python=world_python,
            discard_changes=discard_changes,
            progress=progress,
        )
    size = f"{page.stat().st_size / 1e6:.1f} MB"
    _console.out.print(f"{page}, {size} (also live.json)", markup=False)


def _print_summary(found: "Iterable[LiveScore]", as_json: bool) -> None:
    from ..eval.live.counts import counted
    from ..eval.report.live import ceiling
    from ..eval.stats.live import clean_success, lines

    scores = list(found)
    counts, faults, clean = counted(scores), lines(scores), clean_success(scores)
    if as_json:
        _console.json({"counts": counts, "faults": faults})
        return
    columns = (
        "",
        "right / n",
        "success",
        "Δ to clean",
        "met",
        "recovered",
        "silent failures",
        "false success",
        "false failures / claims",
        "unclear",
    )
    rows: list[tuple[str, ...]] = []
    for one in counts:
        if one.type_code == "clean":
            success = "" if clean is None else _interval(clean)
            rows.append(("clean", f"{one.success} / {one.judged}", success, *[""] * 7))
    for line in faults:
        low, high = line.false_success
        rows.append(
            (
                line.name,
                f"{round(line.success.value * line.n)} / {line.n}{ceiling(line)}",
                _interval(line.success),
                _interval(line.delta),
                f"{line.met} / {line.met + line.unmet}",
                "" if line.recovery is None else _interval(line.recovery),
                str(line.silent),
                str(low) if low == high else f"{low} to {high}",
                f"{line.false_failures} / {line.false_claims}",
                str(line.unclear),
            )
        )
    title = "how often an episode was right, of those that met their fault"
    _console.out.print(_console.table(columns, rows, title))
    if unanswered := sum(one.unanswered for one in counts):
        _console.note(f"{unanswered} episodes had no answer (request_error) and are in no figure")


def _interval(found: "Interval") -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
