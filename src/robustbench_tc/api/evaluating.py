"""`evaluate`, which asks a dataset's rows, and `probe`, which tries the server before."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors import UserError
from ..option import Option, Tell, check, silent, struct_of
from . import options

if TYPE_CHECKING:
    from ..eval.callables.agent import Function
    from ..eval.inputs import Names
    from ..eval.probe import Probed
    from ..eval.run import Progress
    from ..schema import Json
    from .evaluated import Evaluated


def evaluate(
    dataset: Annotated["str | Path", options.ASKED] = "robustbench-tc",
    *,
    model: Annotated[str | None, options.MODEL] = None,
    name: Annotated[
        str | None,
        Option(
            help="Name in the run, its folder and reports of a model that is a path or a checkpoint.",
            panel=options.MODEL_PANEL,
        ),
    ] = None,
    base_url: Annotated["Names", options.BASE_URL] = (),
    agent: Annotated[str | None, options.AGENT] = None,
    callable: Annotated[
        "Function | None",
        Option(
            help="MODULE:FUNCTION: your own agent, a Python function that takes one task.",
            panel=options.MODEL_PANEL,
            typed=str | None,
        ),
    ] = None,
    command: Annotated["str | Sequence[str] | None", options.COMMAND] = None,
    mode: Annotated[str | None, options.MODE] = None,
    backend: Annotated[Literal["openai", "vllm", "anthropic", "gemini"], options.BACKEND] = "openai",
    headers: Annotated["Mapping[str, str]", options.HEADER] = MappingProxyType({}),
    prompt_format: Annotated[
        Literal["benchmark", "rlla"],
        Option(
            help="Wording of prompt mode. rlla: ToolRL's, for a checkpoint trained on its rows.",
            panel=options.MODEL_PANEL,
        ),
    ] = "benchmark",
    rlla: Annotated["str | Path | None", options.RLLA] = None,
    defend: Annotated["Names", options.DEFEND] = (),
    revision: Annotated[str | None, options.REVISION] = None,
    types: Annotated["Names", options.TYPES] = (),
    sources: Annotated["Names", options.SOURCE] = (),
    ids: Annotated["str | Sequence[str]", options.IDS] = (),
    limit: Annotated[int | None, options.LIMIT] = None,
    samples: Annotated[int | None, options.SAMPLES] = None,
    repeat: Annotated[int, options.REPEAT] = 1,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    seed: Annotated[int | None, options.SEED] = None,
    temperature: Annotated[float | None, options.TEMPERATURE] = None,
    max_tokens: Annotated[int | None, options.MAX_TOKENS] = None,
    top_p: Annotated[float | None, options.TOP_P] = None,
    top_k: Annotated[int | None, options.TOP_K] = None,
    stop: Annotated["str | Sequence[str]", options.STOP] = (),
    reasoning_effort: Annotated[str | None, options.REASONING_EFFORT] = None,
    logprobs: Annotated[bool, options.LOGPROBS] = False,
    system: Annotated[str | None, options.SYSTEM] = None,
    system_as_user: Annotated[bool, options.SYSTEM_AS_USER] = False,
    extra_body: Annotated["Mapping[str, Json]", options.EXTRA_BODY] = MappingProxyType({}),
    chat_template_args: Annotated["Mapping[str, Json]", options.CHAT_TEMPLATE_ARG] = MappingProxyType({}),
    concurrency: Annotated[int, options.CONCURRENCY] = 32,
    timeout_s: Annotated[float, options.TIMEOUT] = 300.0,
    max_retries: Annotated[int, options.MAX_RETRIES] = 6,
    max_cost: Annotated[float | None, options.MAX_COST] = None,
    price: Annotated["tuple[float, float] | None", options.PRICE] = None,
    engine: Annotated[Literal["local", "ray"], options.ENGINE] = "local",
    address: Annotated[str | None, options.ADDRESS] = None,
    gpus: Annotated[
        int,
        Option(
            help="Number of GPUs, with one vLLM on each (--engine ray, --backend vllm).",
            panel=options.COST,
            at_least=1,
        ),
    ] = 1,
    out: Annotated["str | Path | None", options.OUT] = None,
    reuse: Annotated[
        "str | Path | Sequence[str | Path]",
        Option(
            help="Reuse the answers of another run with equal settings. Repeatable.",
            panel=options.PLACE,
            read=tuple,
        ),
    ] = (),
    fresh: Annotated[bool, options.FRESH] = False,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    score: Annotated[bool, options.SCORE] = True,
    early_stop: Annotated[
        bool, Option(help="Stop if the first 20 replies contain no call.", panel=options.COST)
    ] = True,
    probe: Annotated[
        bool, Option(help="Probe a server with five requests first, once per run.", panel=options.COST)
    ] = True,
    share: Annotated[
        bool, Option(help="At temperature 0 send equal requests only once.", panel=options.COST)
    ] = True,
    dry_run: Annotated[bool, options.DRY_RUN] = False,
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    started: "Callable[[Evaluated], None]" = lambda run: None,
    progress: "Callable[[Progress], None]" = lambda state: None,
    say: Tell = silent,
) -> "Evaluated":
    """Ask a model every row, store every answer, score them and print the summary.

    If the command is killed or fails, run it again to resume. With other --types, --limit, --samples or a
    larger --repeat the run grows: answered rows are not asked again. Rows of a live dataset are played in
    their worlds, turn by turn; --types takes kinds of faults there and adds their clean rows. The default
    folder is runs/MODEL-MODE, for a live dataset runs/live/MODEL-MODE.

    Example: rbtc eval robustbench-tc --model qwen3-8b --base-url http://localhost:8000/v1 --top-p 0.95
    Example: rbtc eval robustbench-tc --model qwen3-8b --samples 20 --out runs/first-look
    Example: rbtc eval robustbench-tc-live --agent oracle --types silent_no_op

    Raises UserError if an option, the dataset, the folder, a world or the endpoint is wrong; all answers are
    kept.
    `started` gets the run before any request, `progress` each state of it, `say` lines for people.

    >>> evaluate("robustbench-tc", model="qwen3-8b", base_url="http://localhost:8000/v1")  # doctest: +SKIP
    """
    given = locals()
    from ..eval import inputs, record, who
    from ..eval.live.inputs import LiveData
    from ..eval.request_settings import RequestOptions
    from .evaluated import Evaluated

    check(evaluate, given)
    requests = struct_of(RequestOptions, given)
    workers = options.workers_of(1, engine, address)
    if out is not None:
        record.check_place(Path(out))
    data = inputs.load(str(dataset), revision=revision)
    live = isinstance(data, LiveData)
    run = Evaluated.begin(
        data,
        struct_of(who.Named, given).checked(requests, live=live),
        inputs.selection_of(types, sources, ids, limit, samples, live=live),
        repeat=repeat,
        worlds=worlds,
        world_python=world_python,
        out=out,
        fresh=fresh,
        discard_changes=discard_changes,
        reuse=reuse,
        dry=dry_run,
    )
    run.allow_missing = allow_missing
    for line in run.notes:
        say(line)
    if dry_run:
        run.planned = run.dry_run()
        return run
    started(run)
    effort = struct_of(who.Effort, given | {"workers": workers})
    try:
        run.ask(effort, probe=probe, say=say, progress=progress)
    except UserError:
        for line in run.why_failed():
            say(line)
        raise
    if score:
        run.score()
    return run


def probe(
    model: Annotated[str, options.MODEL],
    *,
    base_url: Annotated["Names", options.BASE_URL] = (),
    long: Annotated[int | None, Option(help="Also send a request of this many words.", at_least=1)] = None,
) -> "Probed":
    """Check in fourteen short requests how a server handles tools, calls, schemas and parameters.

    Prints the matching `rbtc eval` command at the end. Exits 1 if a check that every run needs fails.

    Example: rbtc probe qwen3-8b --base-url http://localhost:8000/v1

    Raises UserError if nothing answers.
    """
    from ..eval.probe import probed
    from ..eval.request_settings import RequestOptions
    from ..eval.who import endpoints

    return probed(endpoints(model, base_url, None, "openai", RequestOptions()), long)
