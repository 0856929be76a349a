"""`rbtc live`: agents in worlds that their calls change; run, look at, score, and play oneself."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import _console, live_play, live_show
from ._replacing import DiscardChanges
from ._requests import DEFAULTS, RequestWords, with_requests
from ._words import one_of
from .eval import BaseUrl, Defend, Fresh, ModeName, NoScore, Repeat, Revision, ShowProgress, bar, ids_of

if TYPE_CHECKING:
    from ..eval.live.evaluate import Played
    from ..eval.run import Progress

app = typer.Typer(
    no_args_is_help=True, help="Agents in worlds that their calls change, with and without faults."
)

Model = Annotated[
    str | None,
    typer.Option(help="Model id as the endpoint knows it, MODEL@BASE_URL, or anthropic:MODEL, gemini:MODEL."),
]
Agent = Annotated[
    str | None, typer.Option(help="A scripted agent instead of a model, such as oracle or blind-retrier.")
]
Backend = Annotated[
    Literal["openai", "anthropic", "gemini"],
    one_of("backend", "openai", "anthropic", "gemini", help="Which API is spoken."),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        help="Kinds of faults (their clean rows come along), or clean; comma-separated, repeatable."
    ),
]
Ids = Annotated[
    list[str] | None, typer.Option(help="Row ids or tasks, or @FILE with one per line. Repeatable.")
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="At most so many rows, in turns over types, with their clean rows.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="Run folder; default runs/live/MODEL-MODE. The same command goes on in it."),
]


@app.command("run")
@with_requests
def run(
    ctx: typer.Context,
    dataset: live_show.DatasetName = "robustbench-tc-live",
    model: Model = None,
    base_url: BaseUrl = None,
    agent: Agent = None,
    mode: ModeName = None,
    backend: Backend = "openai",
    revision: Revision = None,
    types: Types = None,
    ids: Ids = None,
    limit: Limit = None,
    repeat: Repeat = 1,
    world: live_show.Worlds = None,
    world_python: live_show.WorldPython = None,
    defend: Defend = None,
    requests: RequestWords = DEFAULTS,
    out: Out = None,
    fresh: Fresh = False,
    discard_changes: DiscardChanges = False,
    no_score: NoScore = False,
    progress: ShowProgress = True,
) -> None:
    """Let a model act in every row's world, turn by turn; keep every answer and every result; score them.

    Killed or failed at any point, the same command goes on where it stopped.

    Example: rbtc live run robustbench-tc-live --model qwen3-8b --base-url http://localhost:8000/v1
    Example: rbtc live run robustbench-tc-live --agent oracle --types silent_no_op
    """
    from .. import api

    with _playing(progress) as (started, tell):
        done = api.run_live(
            dataset,
            model=model,
            base_url=[url for given in base_url or () for url in re.split(r",(?=https?://)", given)],
            agent=agent,
            mode=mode,
            backend=backend,
            revision=revision,
            types=types or (),
            ids=ids_of(ids or ()),
            limit=limit,
            repeat=repeat,
            worlds=world or (),
            world_python=world_python,
            defend=defend or (),
            out=out,
            fresh=fresh,
            discard_changes=discard_changes,
            started=started,
            progress=tell,
            **requests.options(ctx),
        )
    record = done.folder.record
    ends = ", ".join(f"{how} {count:,}" for how, count in record.totals["ended"].items())
    _console.out.print(f"{_how_far(done)} ({ends})")
    if left_out := record.sessions[-1].left_out:
        _console.note(f"the endpoint does not take {', '.join(left_out)}: left out of the requests")
    if failed := record.totals["ended"].get("request_error"):
        _console.note(f"{failed} could not be had (request_error): the same command asks again")
    if no_score:
        _console.note(f"rbtc live score {done.folder.path} makes the scores")
    else:
        live_show.score(done.folder.path, world=world, world_python=world_python)


def _how_far(run: "Played") -> str:
    return f"{run.ended:,} of {run.folder.record.expected:,} episodes ended, in {run.folder.path}"


@contextmanager
def _playing(
    progress: bool,
) -> "Iterator[tuple[Callable[[Played], None], Callable[[Progress], None]]]":
    """Yields what gets the run, and what gets each state; after Ctrl-C says what was kept."""
    from . import AGAIN

    begun: list[Played] = []

    def kept() -> str:
        return f"{_how_far(begun[0])}; the same command goes on" if begun else AGAIN

    with _console.keeping(kept), bar(progress) as tell:
        yield begun.append, tell


app.command("show")(live_show.show)
app.command("score")(live_show.score)
app.command("summary")(live_show.summary)
app.command("report")(live_show.report)
app.command("play")(live_play.play)
