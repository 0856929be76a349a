"""`rbtc eval`: ask a model every row, keep every answer, score them, print the summary."""

import dataclasses
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import taxonomy
from ..errors import UserError, unknown
from . import _console, runs
from ._workers import Address, Engine, workers

if TYPE_CHECKING:
    from ..eval.inputs import Selection
    from ..eval.run import Progress


def eval_(
    dataset: runs.DatasetName = "robustbench-tc",
    model: Annotated[
        str | None, typer.Option(help="Model id as the endpoint knows it, or MODEL@BASE_URL.")
    ] = None,
    base_url: Annotated[
        list[str] | None,
        typer.Option(
            help="Of an OpenAI-compatible server; default OPENAI_BASE_URL, else OpenAI. Repeatable: the "
            "requests are dealt out."
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Ask a reference agent instead; its verdicts are known and compared.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="prompt or fc (api: the same); default: the models' table, else prompt."),
    ] = None,
    backend: Annotated[str, typer.Option(help="openai, or vllm: in this process, in batches.")] = "openai",
    revision: Annotated[str | None, typer.Option(help="Of a Hub dataset: tag, branch or commit.")] = None,
    types: Annotated[
        list[str] | None, typer.Option(help="Type codes, clean, or components; comma-separated, repeatable.")
    ] = None,
    sources: Annotated[list[str] | None, typer.Option(help="Sources; comma-separated, repeatable.")] = None,
    ids: Annotated[
        list[str] | None, typer.Option(help="Row or clean ids, or @FILE with one per line. Repeatable.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many rows, spread over types and sources.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Ask every row so many times.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Sent to the endpoint; repeat n gets seed + n.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="Default: the models' table, else 0.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Default: the models' table, else 1024.")
    ] = None,
    logprobs: Annotated[bool, typer.Option("--logprobs", help="Ask for and keep log probabilities.")] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests under way, per address; or the largest batch.")
    ] = 32,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one attempt.")] = 300.0,
    max_retries: Annotated[
        int, typer.Option(min=0, help="More attempts after 429, 5xx, a time-out or no completion.")
    ] = 6,
    engine: Engine = "local",
    address: Address = None,
    gpus: Annotated[
        int, typer.Option(min=1, help="With --engine ray and --backend vllm: so many, a vLLM on each.")
    ] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Run folder; default runs/MODEL-MODE. The same command goes on in it.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away the run that is in the folder.")] = False,
    no_score: Annotated[bool, typer.Option("--no-score", help="Only ask; `rbtc score` later.")] = False,
    allow_missing: runs.AllowMissing = False,
    progress: Annotated[bool, typer.Option(help="A progress bar on standard error.")] = True,
) -> None:
    """Ask a model every row, keep every answer, score them and print the summary.

    Killed or failed at any point, the same command goes on where it stopped.

    Example: rbtc eval robustbench-tc --model qwen3-8b --base-url http://localhost:8000/v1
    """
    from ..eval import agents, inputs, models, prompts, record, session
    from ..eval.agent_server import serving
    from ..llm import Endpoint, parse_endpoint

    if backend not in ("openai", "vllm"):
        raise unknown("backend", backend, ("openai", "vllm"))
    who, urls = workers(1, engine, address), list(base_url or ())
    if agent is not None and (model, urls, backend) != (None, [], "openai"):
        raise UserError("--agent brings its own server: leave --model, --base-url and --backend out")
    if agent is None and model is None:
        raise UserError("no model: name one with --model, or a reference agent with --agent")
    if agent is not None:
        agents.agent(agent)
        asked = Endpoint(f"agent-{agent}")
    elif backend == "vllm":
        asked = Endpoint(model or "")
    else:
        asked = parse_endpoint(model or "")
        urls = [asked.base_url] if asked.base_url else urls
        asked = Endpoint(asked.model, urls[0] if urls else None)
    entry = models.find(asked.model)

    decoding = entry.decoding() if entry is not None else dict(models.DEFAULT_DECODING)
    given = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    decoding |= {name: value for name, value in given.items() if value is not None}
    if logprobs:
        decoding["logprobs"] = True
    if entry is not None and entry.thinking == "off":
        decoding["chat_template_kwargs"] = models.NO_THINKING

    data = inputs.load(dataset, revision=revision)
    selection = _selection(types, sources, ids, limit)
    rows = inputs.select(data, selection)
    hashes = data.hashes()
    settings = record.Settings(
        fingerprint=data.fingerprint(),
        model=asked.model,
        mode=record.mode_of(mode or (entry.mode if entry is not None else "prompt")),
        backend=backend,
        decoding=decoding,
        prompt_version=prompts.prompt_version(),
        selection=selection,
        repeat=repeat,
    )
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", asked.model).strip("-") or "model"
    path = out or Path("runs") / f"{slug}-{settings.mode}"
    if fresh and path.exists():
        shutil.rmtree(record.open_run(path).path)  # nothing but a run folder is ever removed
    folder = record.start(path, data, settings, len(rows) * repeat)
    runs.say_left_out(data.left_out)

    with ExitStack() as stack:
        if agent is not None:
            asked = Endpoint(asked.model, api_key="none", reasoning=False)
            urls = [stack.enter_context(serving(agent, data.rows))]
        if backend == "vllm":
            openings = [session.vllm(entry, asked.model, decoding, batch=concurrency)] * gpus
        else:
            ends = [dataclasses.replace(asked, base_url=url) for url in urls or (None,)]
            # On Ray each address has an actor of its own; here one client asks them all.
            groups = [(end, ()) for end in ends] if who.engine == "ray" else [(ends[0], ends[1:])]
            if who.engine != "ray":
                concurrency *= len(ends)
            openings = [
                session.endpoint(
                    first,
                    decoding,
                    also=others,
                    concurrency=concurrency,
                    timeout_s=timeout,
                    max_retries=max_retries,
                )
                for first, others in groups
            ]
        opened = openings[0]
        if who.engine == "ray":
            from ..eval.backends.cluster import on_ray

            concurrency *= len(openings)
            opened = on_ray(openings, who, concurrency=concurrency, gpus=1 if backend == "vllm" else 0)
        with _bar(progress) as tell:
            state = session.run(folder, rows, hashes, opened, concurrency=concurrency, progress=tell)

    answered = state.done - state.request_errors
    _console.err.print(f"{answered} of {state.total} rows have their answers in {path}", markup=False)
    if state.request_errors:
        _console.err.print(
            f"{state.request_errors} could not be had (request_error): the same command asks again",
            markup=False,
        )
    if no_score:
        return
    wrong = runs.score_run(folder, data, agent)
    runs.print_summary(folder, "all", allow_missing, as_json=False)
    if agent is not None:
        _say_agent(agent, wrong, state.total)


def _selection(
    types: list[str] | None, sources: list[str] | None, ids: list[str] | None, limit: int | None
) -> "Selection":
    from ..eval.inputs import Selection

    codes: list[str] = []
    for word in _words(types):
        if word in taxonomy.COMPONENTS:
            codes += [t.code for t in taxonomy.types() if t.component == word]
        else:
            codes.append(word)
    wanted: list[str] = []
    for word in ids or ():
        if word.startswith("@"):
            try:
                wanted += [line for line in Path(word[1:]).read_text("utf-8").splitlines() if line.strip()]
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(f"--ids {word}: {error}") from None
        else:
            wanted.append(word)
    return Selection(
        types=tuple(dict.fromkeys(codes)),
        sources=tuple(dict.fromkeys(_words(sources))),
        ids=tuple(dict.fromkeys(wanted)),
        limit=limit,
    )


def _words(given: Iterable[str] | None) -> list[str]:
    return [word.strip() for item in given or () for word in item.split(",") if word.strip()]


@contextmanager
def _bar(wanted: bool) -> "Iterator[Any]":
    """A progress bar; yields the function that moves it."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    if not wanted or not sys.stderr.isatty():
        yield lambda state: None
        return
    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, TextColumn("{task.description}"), console=_console.err, transient=True) as bar:
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
