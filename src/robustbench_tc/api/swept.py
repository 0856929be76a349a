"""A sweep: each model of a file is served, probed, evaluated and stopped, one after the other.

What is done is seen in the folders: a run that has its answers is asked nothing, and one that is in the
results repository is not put there again. So whatever was killed is made good by the next start.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UserError
from ..eval.leaderboard import submit as board
from ..eval.leaderboard.entry import Submission
from ..eval.leaderboard.repository import STATUS
from ..eval.models import mode_of, serve_command
from ..eval.probe import failed, mode as fitting
from ..eval.record import Mode, default_place
from ..eval.request_settings import RequestOptions
from ..eval.serving import served
from ..io.files import atomic_file
from ..option import Tell
from .evaluating import evaluate, probe
from .reporting import report

URL = "http://127.0.0.1:8000/v1"
"""Where `vllm serve` listens."""


class Listed(RequestOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file: a model, by the name that its runs have."""

    serve: str | None = None
    """The command of its server; by default the models' table's, or none where there is a base_url."""
    base_url: str | None = None
    """By default where `vllm serve` listens."""
    model: str | None = None
    """What the server calls it, where that is another name."""
    mode: Mode | tuple[Mode, ...] = ()
    """By default as `rbtc eval` has it."""
    wait_s: float = 1800.0
    """How long its server may take until it answers."""
    concurrency: int = 32
    timeout_s: float = 300.0
    max_retries: int = 6
    submission: Mapping[str, Any] = {}
    """What a submission to a leaderboard states of it."""


class Failure(msgspec.Struct, kw_only=True):
    """What did not work."""

    model: str
    mode: str
    step: str
    """serve, probe, eval, submit or report."""
    reason: str = ""


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a sweep."""

    runs: tuple[str, ...]
    """The complete ones."""
    failures: tuple[Failure, ...]
    out: str

    @property
    def exit_code(self) -> int:
        """1 where something failed."""
        return int(bool(self.failures))

    def shown(self) -> Iterator[str]:
        """What failed, and where the rest is."""
        yield from (f"{one.model} {one.mode}: {one.step}: {one.reason}" for one in self.failures)
        yield f"{len(self.runs)} complete runs, {len(self.failures)} failures: {self.out}"


@contextmanager
def _step(failures: list[Failure], say: Tell, model: str, mode: str, first: str) -> Iterator[Failure]:
    """Keeps whatever fails in the block, a defect of ours too, at the step that it has got to then."""
    now = Failure(model=model, mode=mode, step=first)
    try:
        yield now
    except Exception as error:
        now.reason = f"{'' if isinstance(error, UserError) else type(error).__name__ + ': '}{error}"
        failures.append(now)
        say(f"{model} {mode}: {now.step}: {now.reason}")


def run(
    listed: Mapping[str, Listed],
    dataset: str,
    place: Path,
    *,
    org: str | None,
    rows: Mapping[str, Any],
    progress: Tell,
    say: Tell,
) -> Swept:
    """Goes through the models, into the results repository `place`.

    `rows`: what of the dataset is asked, as `evaluate` takes it; where that is a part, nothing is submitted.
    """
    runs: list[str] = []
    failures: list[Failure] = []
    work, step = place / "sweep", partial(_step, failures, say)

    def asked(name: str, mode: Mode, url: str, *, dry_run: bool = False) -> int:
        """Evaluates a model; how many rows that leaves, or when it is dry, would ask."""
        one = listed[name]
        found = evaluate(
            dataset,
            model=one.model or name,
            name=name if one.model else None,
            base_url=url,
            mode=mode,
            concurrency=one.concurrency,
            timeout_s=one.timeout_s,
            max_retries=one.max_retries,
            out=work / default_place(name, mode).name,
            dry_run=dry_run,
            progress=lambda state: progress(f"{name} {mode}: {state.done:,} of {state.total:,} rows"),
            say=say,
            **rows,
            **{field: getattr(one, field) for field in RequestOptions.__struct_fields__},
        )
        return found.planned.rows if found.planned else found.folder.record.expected - found.answered

    if not (place / STATUS).is_file():
        board.init(str(place), dataset)
    work.mkdir(exist_ok=True)
    for name, one in listed.items():
        left, url = dict[Mode, int](), one.base_url or URL
        for mode in [one.mode] if isinstance(one.mode, str) else one.mode or [mode_of(name)]:
            with step(name, mode, "eval"):
                left[mode] = asked(name, mode, url, dry_run=True)
        with ExitStack() as server, step(name, "", "serve") as at:
            if any(left.values()) and (one.serve or one.base_url is None):
                line = one.serve or serve_command(name)
                server.enter_context(served(line, url, work / "servers.log", one.wait_s))
            at.step = "probe"
            found = probe(one.model or name, base_url=url).findings if any(left.values()) else ()
            for mode, missing in left.items():
                with step(name, mode, "probe") as now:
                    if missing and mode == "fc" and fitting(found) != "fc":
                        raise UserError("; ".join(check.line for check in failed(found)))
                    now.step = "eval"
                    if unanswered := asked(name, mode, url):
                        raise UserError(f"{unanswered} rows have no answer")
                    runs.append(str(work / default_place(name, mode).name))
                    now.step = "submit"
                    stated = msgspec.convert({"model": name, **one.submission}, Submission)
                    if not any(rows.values()):
                        board.submit(Path(runs[-1]), str(place), stated, org=org, said=progress)
    if runs:
        with step("all", "", "report"):
            report(runs, work / "report", progress=progress)
    with atomic_file(work / "failures.json", replace=True) as beside:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(failures), indent=1) + b"\n")
    return Swept(runs=tuple(runs), failures=tuple(failures), out=str(place))
