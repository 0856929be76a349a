"""`rbtc eval`: ask a model every row, keep every answer, score them, print the summary."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import UserError
from . import _console
from ._of_runs import AllowMissing, DatasetName, say, say_left_out
from ._replacing import DiscardChanges
from ._requests import DEFAULTS, RequestWords, with_requests
from ._words import one_of
from ._workers import Address, Engine, workers

if TYPE_CHECKING:
    from ..eval.evaluate import Evaluated
    from ..eval.run import Progress

Model = Annotated[
    str | None,
    typer.Option(help="Model id as the endpoint knows it, MODEL@BASE_URL, or anthropic:MODEL, gemini:MODEL."),
]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        help="Of an OpenAI-compatible server; default OPENAI_BASE_URL, else OpenAI. Repeatable: the "
        "requests are dealt out."
    ),
]
Agent = Annotated[
    str | None, typer.Option(help="Ask a reference agent instead; its verdicts are known and compared.")
]
CallableName = Annotated[
    str | None,
    typer.Option(
        "--callable", metavar="MODULE:FUNCTION", help="Ask an agent of yours: a Python function of one task."
    ),
]
Command = Annotated[
    str | None,
    typer.Option(
        metavar="'PROGRAM ARG…'", help="Ask an agent of yours: a program, the request on its standard input."
    ),
]
ModeName = Annotated[
    str | None,
    typer.Option(
        help="fc (api: the same) or prompt. Default: fc; for the paper's models the mode of their training."
    ),
]
Backend = Annotated[
    Literal["openai", "vllm", "anthropic", "gemini"],
    one_of(
        "backend",
        "openai",
        "vllm",
        "anthropic",
        "gemini",
        help="openai; vllm: in this process, in batches; anthropic, gemini: their own (extra `providers`).",
    ),
]
Revision = Annotated[str | None, typer.Option(help="Of a Hub dataset: tag, branch or commit.")]
Types = Annotated[
    list[str] | None,
    typer.Option(help="Types (code, name or label), clean or components; comma-separated, repeatable."),
]
Sources = Annotated[list[str] | None, typer.Option(help="Sources; comma-separated, repeatable.")]
Ids = Annotated[
    list[str] | None, typer.Option(help="Row or clean ids, or @FILE with one per line. Repeatable.")
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="At most so many rows, in turns over types and sources, with their clean rows."),
]
Samples = Annotated[
    int | None,
    typer.Option(min=1, help="At most so many samples, each with all its rows, drawn by source."),
]
PromptFormat = Annotated[
    Literal["benchmark", "rlla"],
    one_of(
        "prompt-format",
        "benchmark",
        "rlla",
        help="Words of prompt mode: the benchmark's, or ToolRL's, for a checkpoint trained on its rows.",
    ),
]
Rlla = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Training data (folder or Hub id) with ToolRL's words, for that prompt format.",
    ),
]
Defend = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[,NAME]",
        help="Defences between the rows and the model, the first in front: `rbtc list defences`.",
    ),
]
Repeat = Annotated[int, typer.Option(min=1, help="Ask every row so many times.")]
Gpus = Annotated[
    int, typer.Option(min=1, help="With --engine ray and --backend vllm: so many, a vLLM on each.")
]
Out = Annotated[
    Path | None, typer.Option(help="Run folder; default runs/MODEL-MODE. The same command goes on in it.")
]
Reuse = Annotated[
    list[Path] | None,
    typer.Option(metavar="RUN", help="Take the answers of another run of equal settings. Repeatable."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Throw away the run that is in the folder.")]
NoScore = Annotated[bool, typer.Option("--no-score", help="Only ask; `rbtc score` later.")]
NoEarlyStop = Annotated[
    bool, typer.Option("--no-early-stop", help="Go on although the first 20 replies hold no call.")
]
NoProbe = Annotated[
    bool, typer.Option("--no-probe", help="Skip the five questions that a server is asked first.")
]
ShowProgress = Annotated[
    bool, typer.Option(help="A progress bar on standard error; without a terminal a line a minute.")
]


@with_requests
def eval_(
    ctx: typer.Context,
    dataset: DatasetName = "robustbench-tc",
    model: Model = None,
    base_url: BaseUrl = None,
    agent: Agent = None,
    function: CallableName = None,
    command: Command = None,
    mode: ModeName = None,
    backend: Backend = "openai",
    prompt_format: PromptFormat = "benchmark",
    rlla: Rlla = None,
    defend: Defend = None,
    revision: Revision = None,
    types: Types = None,
    sources: Sources = None,
    ids: Ids = None,
    limit: Limit = None,
    samples: Samples = None,
    repeat: Repeat = 1,
    requests: RequestWords = DEFAULTS,
    engine: Engine = "local",
    address: Address = None,
    gpus: Gpus = 1,
    out: Out = None,
    reuse: Reuse = None,
    fresh: Fresh = False,
    discard_changes: DiscardChanges = False,
    no_score: NoScore = False,
    no_early_stop: NoEarlyStop = False,
    no_probe: NoProbe = False,
    allow_missing: AllowMissing = False,
    progress: ShowProgress = True,
) -> None:
    """Ask a model every row, keep every answer, score them and print the summary.

    Killed or failed at any point, the same command goes on where it stopped. With other --types, --limit,
    --samples or a larger --repeat the run grows: what was answered is not asked again.

    Example: rbtc eval robustbench-tc --model qwen3-8b --base-url http://localhost:8000/v1 --top-p 0.95
    Example: rbtc eval robustbench-tc --model qwen3-8b --samples 20 --out runs/first-look
    """
    from .. import api

    with _asking(progress) as (started, tell):
        done = api.evaluate(
            dataset,
            model=model,
            base_url=[url for given in base_url or () for url in re.split(r",(?=https?://)", given)],
            agent=agent,
            callable=function,
            command=command,
            mode=mode,
            backend=backend,
            prompt_format=prompt_format,
            rlla=rlla,
            defend=defend or (),
            revision=revision,
            types=types or (),
            sources=sources or (),
            ids=ids_of(ids or ()),
            limit=limit,
            samples=samples,
            repeat=repeat,
            workers=workers(1, engine, address),
            gpus=gpus,
            out=out,
            reuse=reuse or (),
            fresh=fresh,
            discard_changes=discard_changes,
            score=False,
            early_stop=not no_early_stop,
            probed=None if no_probe else _console.note,
            started=started,
            progress=tell,
            **requests.options(ctx),
        )
    _finish(done, no_score, allow_missing)


def _answered(run: "Evaluated") -> str:
    folder = run.folder
    return f"{run.answered} of {folder.record.expected} rows have their answers in {folder.path}"


@contextmanager
def _asking(
    progress: bool,
) -> "Iterator[tuple[Callable[[Evaluated], None], Callable[[Progress], None]]]":
    """What is said while rows are asked: yields what gets the run, and what gets each state.

    Before the error that ends the block come the reasons why requests failed.
    """
    from . import AGAIN

    begun: list[Evaluated] = []

    def started(run: "Evaluated") -> None:
        begun.append(run)
        say(run.folder.notes)
        say_left_out(run.folder.record.left_out)

    def kept() -> str:
        return f"{_answered(begun[0])}; the same command goes on" if begun else AGAIN

    try:
        with _console.keeping(kept), bar(progress) as tell:
            yield started, tell
    except UserError:
        for run in begun:
            _say_why(run)
        raise


def _say_why(run: "Evaluated") -> None:
    from ..eval import reasons

    sessions = run.folder.record.sessions
    found = reasons.of_predictions(run.folder.predictions_path)
    say(reasons.lines(found, sessions[-1] if sessions else None))


def _finish(done: "Evaluated", no_score: bool, allow_missing: bool) -> None:
    """Says how far it got, scores and prints the summary."""
    from ..eval import reasons
    from ..eval.stats.screen import screen

    answered = _answered(done)
    _console.note(answered)
    if dropped := done.folder.record.sessions[-1].left_out:
        _console.note(f"the endpoint does not take {', '.join(dropped)}: left out of the requests")
    if unknown := reasons.unknown_finishes(done.folder.record.totals["finish_reason"]):
        _console.note(f"unknown finish reasons: {unknown}")
    if done.asked.request_errors:
        _console.note(
            f"{done.asked.request_errors} could not be had (request_error): the same command asks again"
        )
    if no_score:
        _say_why(done)
        return
    kept = f"{answered}; rbtc score {done.folder.path} makes the verdicts"
    with _console.keeping(kept), _console.working("scoring"):
        done.score(_console.note)
    refused = reasons.of_predictions(done.folder.predictions_path)
    if said := reasons.mostly_rejected(refused, done.folder.record.expected):
        raise UserError(said)
    try:
        _console.show(screen(done.folder, allow_missing=allow_missing))
    finally:
        _say_why(done)
    if done.agent is not None:
        say_agent(done.agent, done.unexpected, done.folder.record.expected)


def ids_of(words: Iterable[str]) -> list[str]:
    """The ids, those of files for every @FILE."""
    found: list[str] = []
    for word in words:
        if not word.startswith("@"):
            found.append(word)
            continue
        try:
            found += [line for line in Path(word[1:]).read_text("utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--ids {word}: {error}") from None
    return found


@contextmanager
def bar(wanted: bool) -> "Iterator[Callable[[Progress], None]]":
    """A progress bar, or without a terminal a line a minute; yields the function that moves it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    if not wanted:
        yield lambda state: None
        return
    if not sys.stderr.isatty():
        with _lines() as tell:
            yield tell
        return
    failures = TextColumn("{task.description}", markup=False)
    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), failures)
    with Bar(*columns, console=_console.err, transient=True) as shown:
        task = shown.add_task("", total=None)

        def tell(state: "Progress") -> None:
            failed = [f"{state.request_errors} failed"] if state.request_errors else []
            cost = [f"cost {state.cost:.4g}"] if state.cost else []
            shown.update(task, completed=state.done, total=state.total, description=", ".join(failed + cost))

        yield tell


@contextmanager
def _lines() -> "Iterator[Callable[[Progress], None]]":
    """A line a minute; yields the function that is given each state."""
    begun = time.monotonic()
    latest: Progress | None = None

    def line() -> str:
        return "nothing is asked yet" if latest is None else how_far(latest, time.monotonic() - begun)

    def tell(state: "Progress") -> None:
        nonlocal begun, latest
        begun = time.monotonic() if latest is None else begun
        latest = state

    with _console.each_minute(line):
        yield tell


def how_far(state: "Progress", seconds: float) -> str:
    """A session's progress in a line: done, failed, rate, time left, and the cost where prices are known.

    Answers that were there before count as done, and neither in the rate nor in the time left.
    """
    parts = [f"{state.done:,} of {state.total:,} done"]
    if state.request_errors:
        parts.append(f"{state.request_errors:,} failed")
    rate = (state.done - state.kept) / seconds if seconds > 0 else 0.0
    if rate > 0:
        parts.append(f"{rate:.3g} a second")
        parts.append(f"about {_console.time_of((state.total - state.done) / rate)} left")
    else:
        parts.append(f"no new answer in {_console.time_of(seconds)}")
    if state.cost:
        parts.append(f"cost {state.cost:.4g}")
    return ", ".join(parts)


def say_agent(agent: str, wrong: list[str], total: int) -> None:
    """Whether the verdicts on a reference agent are the known ones. Raises UserError where they are not."""
    if wrong:
        raise UserError(
            f"{len(wrong)} of {total} verdicts on the agent {agent} are not the known ones, the first: "
            f"{wrong[0]!r}"
        )
    _console.out.print(f"all {total} verdicts on the agent {agent} are the known ones", markup=False)
