"""What scored runs say, for people: `summary`, `report`, `failures`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ..option import Option
from . import options
from .progress import Progress

if TYPE_CHECKING:
    from ..eval.adapters.logs import Opened
    from ..eval.report.content import Options, Report
    from ..eval.stats.failures import Failures
    from ..eval.stats.runs import Subset
    from ..eval.stats.screen import Screen
    from ..eval.stats.summary import Convention


def summary(
    run: Annotated["str | Path", options.RUN],
    *,
    subset: Annotated[Literal["all", "paper", "verified"], options.SUBSET] = "all",
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    full: Annotated[bool, options.FULL] = False,
) -> "Screen":
    """Print what a scored run says: accuracies, drops with their evidence, the worst types, what to do next.

    Example: rbtc summary runs/qwen3-8b-fc --subset paper
    Example: rbtc summary runs/qwen3-8b-fc --full

    Raises UserError for a run that is not scored or lacks answers.

    >>> summary("runs/mine").overview.answer.sentence  # doctest: +SKIP
    """
    from ..eval.record import open_run
    from ..eval.stats.screen import screen

    return screen(open_run(Path(run)), subset=subset, allow_missing=allow_missing, full=full)


def report(
    runs: "Sequence[str | Path]",
    out: str | Path | None = None,
    *,
    baseline: str | None = None,
    ci: "Convention" = "cluster",
    subset: "Subset" = "all",
    release: Path | None = None,
    allow_missing: bool = False,
    browser: bool = True,
    discard_changes: bool = False,
    log_keys: Sequence[str] = (),
    progress: Progress = lambda line: None,
) -> "Report":
    """`rbtc report`: the paper's tables and figures over scored runs, and over logs of inspect_ai (`.eval`).

    `out`: a folder for report.html, .md, .csv and .json; None writes nothing. `baseline`: the model or run
    that differences are marked against. `ci`: `cluster` takes whole samples as units, `paper` takes rows as
    independent. `release`: names rows that a run lacks. `browser`: rows and replies go into the page, from
    `release`, else from the dataset folder that the runs name, if it is there.
    Raises UserError for a run that is not scored or lacks rows (unless `allow_missing`), and for a folder
    that holds anything but a report.
    """
    from ..eval.adapters.logs import opened
    from ..eval.report import content
    from ..io.folders import check_dir

    folder = None if out is None else Path(out)
    if folder is not None:  # before minutes of work
        check_dir(folder, kind="report", force=True, discard_changes=discard_changes)
    options = content.Options(convention=ci, subset=subset, allow_missing=allow_missing, baseline=baseline)
    progress(f"reading {len(runs)} runs")
    with opened([str(run).rstrip("/") or "/" for run in runs], log_keys) as found:
        return _report(found, options, folder, release, browser, discard_changes, progress)


def _report(
    runs: "Sequence[Opened]",
    options: "Options",
    folder: Path | None,
    release: Path | None,
    browser: bool,
    discard_changes: bool,
    progress: Progress,
) -> "Report":
    import msgspec

    from ..eval.report import content, page
    from ..eval.report.samples import embed
    from ..sql.query import Inputs, connect, text_of

    read = [one.read() for one in runs]
    inputs = Inputs(
        runs=[one.folder for one in runs],
        release=None if release is None else str(release),
        subset=options.subset,
        allow_missing=options.allow_missing,
    )
    expected: list[tuple[str, str]] | None = None
    marts: dict[str, list[dict[str, Any]]] = {}
    named = {one.folder: one.name for one in runs}
    with connect(inputs, check=False) as connection:  # reading a run has looked for doubled rows
        if release is not None:
            found = connection.sql("select clean_id, type_code from stg_release").fetchall()
            expected = [(str(clean_id), str(code)) for clean_id, code in found]
        for mart in content.MARTS:
            rows = connection.sql(text_of(mart, inputs)).to_arrow_table().to_pylist()
            marts[mart] = [{**row, "run": named[row["run"]]} if "run" in row else row for row in rows]
    progress("counting")
    made = content.build(read, options, marts=marts, expected=expected)
    made = msgspec.structs.replace(made, gaps=(*(note for one in runs for note in one.notes), *made.gaps))
    if folder is not None:
        progress("writing the page")
        of = {
            one.name: msgspec.structs.replace(run, path=one.folder)
            for one, run in zip(runs, read, strict=True)
        }
        samples = page.NO_ROWS
        if browser:
            samples = embed([of[m.run] for m in made.models], [m.label for m in made.models], release)
        page.write(made, folder, samples, discard_changes=discard_changes)
    return made


def failures(
    run: Annotated["str | Path", options.RUN],
    *,
    type_code: Annotated[str | None, options.TYPE] = None,
    error_mode: Annotated[
        str | None,
        Option(
            help="empty, omitted, missing_call, wrong_name, ghost, wrong_parameters, name_bias, "
            "wrong_language or other."
        ),
    ] = None,
    source: Annotated[Sequence[str], options.SOURCE] = (),
    flag: Annotated[
        str | None, Option(help="Replies whose verdict has this flag (quoted_call, …), right ones too.")
    ] = None,
    limit: Annotated[int, options.LIMIT] = 50,
) -> "Failures":
    """List a run's wrong answers: gold call and answer side by side, and why it is wrong.

    Example: rbtc failures runs/qwen3-8b-fc --type transient_timeout --error-mode omitted
    Example: rbtc failures runs/qwen3-8b-fc --flag quoted_call

    Raises UserError for a run that is not scored, and for names that do not occur.

    >>> failures("runs/mine", type_code="CD_AB").found  # doctest: +SKIP
    """
    from ..eval.stats import failures as room

    return room.failures(
        Path(run), type_code=type_code, error_mode=error_mode, sources=source, flag=flag, limit=limit
    )
