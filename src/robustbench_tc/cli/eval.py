"""`rbtc eval`: ask a model every row, keep every answer, score them, print the summary."""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import UserError
from . import _console, runs
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
ModeName = Annotated[
    str | None,
    typer.Option(help="prompt or fc (api: the same); default: the models' table, else prompt."),
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
    list[str] | None, typer.Option(help="Type codes, clean, or components; comma-separated, repeatable.")
]
Sources = Annotated[list[str] | None, typer.Option(help="Sources; comma-separated, repeatable.")]
Ids = Annotated[
    list[str] | None, typer.Option(help="Row or clean ids, or @FILE with one per line. Repeatable.")
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="At most so many rows, spread over types and sources.")
]
Repeat = Annotated[int, typer.Option(min=1, help="Ask every row so many times.")]
Gpus = Annotated[
    int, typer.Option(min=1, help="With --engine ray and --backend vllm: so many, a vLLM on each.")
]
Out = Annotated[
    Path | None, typer.Option(help="Run folder; default runs/MODEL-MODE. The same command goes on in it.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Throw away the run that is in the folder.")]
NoScore = Annotated[bool, typer.Option("--no-score", help="Only ask; `rbtc score` later.")]
ShowProgress = Annotated[bool, typer.Option(help="A progress bar on standard error.")]


@with_requests
def eval_(
    ctx: typer.Context,
    dataset: runs.DatasetName = "robustbench-tc",
    model: Model = None,
    base_url: BaseUrl = None,
    agent: Agent = None,
    mode: ModeName = None,
    backend: Backend = "openai",
    revision: Revision = None,
    types: Types = None,
    sources: Sources = None,
    ids: Ids = None,
    limit: Limit = None,
    repeat: Repeat = 1,
    requests: RequestWords = DEFAULTS,
    engine: Engine = "local",
    address: Address = None,
    gpus: Gpus = 1,
    out: Out = None,
    fresh: Fresh = False,
    discard_changes: DiscardChanges = False,
    no_score: NoScore = False,
    allow_missing: runs.AllowMissing = False,
    progress: ShowProgress = True,
) -> None:
    """Ask a model every row, keep every answer, score them and print the summary.

    Killed or failed at any point, the same command goes on where it stopped.

    Example: rbtc eval robustbench-tc --model qwen3-8b --base-url http://localhost:8000/v1 --top-p 0.95
    """
    from .. import api
    from . import AGAIN

    begun: list[Evaluated] = []

    def started(run: "Evaluated") -> None:
        begun.append(run)
        runs.say(run.folder.notes)
        runs.say_left_out(run.folder.record.left_out)

    def kept() -> str:
        return f"{_answered(begun[0])}; the same command goes on" if begun else AGAIN

    with _console.keeping(kept), _bar(progress) as tell:
        done = api.evaluate(
            dataset,
            model=model,
            base_url=[url for given in base_url or () for url in re.split(r",(?=https?://)", given)],
            agent=agent,
            mode=mode,
            backend=backend,
            revision=revision,
            types=types or (),
            sources=sources or (),
            ids=_ids(ids or ()),
            limit=limit,
            repeat=repeat,
            workers=workers(1, engine, address),
            gpus=gpus,
            out=out,
            fresh=fresh,
            discard_changes=discard_changes,
            score=False,
            started=started,
            progress=tell,
            **requests.options(ctx),
        )
    _finish(done, no_score, allow_missing)


def _answered(run: "Evaluated") -> str:
    return f"{run.answered} of {run.asked.total} rows have their answers in {run.folder.path}"


def _finish(done: "Evaluated", no_score: bool, allow_missing: bool) -> None:
    """Says how far it got, scores and prints the summary."""
    answered = _answered(done)
    runs.note(answered)
    if dropped := done.folder.record.sessions[-1].left_out:
        runs.note(f"the endpoint does not take {', '.join(dropped)}: left out of the requests")
    if done.asked.request_errors:
        runs.note(
            f"{done.asked.request_errors} could not be had (request_error): the same command asks again"
        )
    if no_score:
        return
    with _console.keeping(f"{answered}; rbtc score {done.folder.path} makes the verdicts"):
        done.score(runs.note)
    runs.print_summary(done.folder, "all", allow_missing, as_json=False)
    if done.agent is not None:
        _say_agent(done.agent, done.unexpected, done.asked.total)


def _ids(words: Iterable[str]) -> list[str]:
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
def _bar(wanted: bool) -> "Iterator[Any]":
    """A progress bar; yields the function that moves it."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    if not wanted or not sys.stderr.isatty():
        yield lambda state: None
        return
    failures = TextColumn("{task.description}", markup=False)
    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), failures)
    with Bar(*columns, console=_console.err, transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(state: "Progress") -> None:
            failed = f"{state.request_errors} failed" if state.request_errors else ""
            bar.update(task, completed=state.done, total=state.total, description=failed)

        yield tell


def _say_agent(agent: str, wrong: list[str], total: int) -> None:
    if wrong:
        raise UserError(
            f"{len(wrong)} of {total} verdicts on the agent {agent} are not the known ones, the first: "
            f"{wrong[0]!r}"
        )
    _console.out.print(f"all {total} verdicts on the agent {agent} are the known ones", markup=False)
