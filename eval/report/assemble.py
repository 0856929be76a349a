"""A report from runs and logs: they are read, the marts asked, everything counted, the page written."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.eval.adapters.logs import Opened, opened
from robustbench_tc.eval.stats.runs import Subset
from robustbench_tc.eval.stats.summary import Convention
from robustbench_tc.io.folders import check_dir
from robustbench_tc.sql.query import Inputs, connect, text_of

from . import page
from .content import MARTS, Report, build
from .samples import embed, embed_live


def report(
    runs: Sequence[str],
    out: Path | None = None,
    *,
    baseline: str | None = None,
    convention: Convention = "cluster",
    subset: Subset = "all",
    allow_missing: bool = False,
    dataset: str | None = None,
    log_keys: Sequence[str] = (),
    browser: bool = True,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    discard_changes: bool = False,
    progress: Callable[[str], None],
) -> Report:
    """The report of scored runs and logs; written where there is an `out`. Raises UserError."""
    if out is not None:  # before minutes of work
        check_dir(out, kind="report", force=True, discard_changes=discard_changes)
    progress(f"reading {len(runs)} runs")
    with opened(runs, log_keys) as found:
        read = [one.read() for one in found]
        live = any(one.live for one in read)
        marts, expected = ({}, None) if live else _asked(found, subset, allow_missing, dataset)
        progress("counting")
        made = build(
            read,
            convention=convention,
            subset=subset,
            allow_missing=allow_missing,
            baseline=baseline,
            marts=marts,
            expected=expected,
        )
        made = msgspec.structs.replace(made, gaps=(*(n for one in found for n in one.notes), *made.gaps))
        if out is None:
            return made
        progress("writing the page")
        samples = page.NO_ROWS
        if browser:
            folders = {one.name: one.folder for one in found}
            of = {run.path: msgspec.structs.replace(run, path=folders[run.path]) for run in read}
            shown, labels = [of[m.run] for m in made.models], [m.label for m in made.models]
            samples = (
                embed_live(shown, labels, dataset, worlds, world_python)
                if live
                else embed(shown, labels, dataset)
            )
        page.write(made, out, samples, discard_changes=discard_changes)
    size = (out / "report.html").stat().st_size
    return msgspec.structs.replace(made, written=f"{out / 'report.html'}, {size / 1e6:.1f} MB")


def _asked(
    runs: Sequence[Opened], subset: Subset, allow_missing: bool, dataset: str | None
) -> tuple[dict[str, list[dict[str, Any]]], list[tuple[str, str]] | None]:
    """The rows of the marts, and the rows that there should be where a dataset says so."""
    inputs = Inputs(
        runs=[one.folder for one in runs],
        release=dataset,
        subset=subset,
        allow_missing=allow_missing,
    )
    named = {one.folder: one.name for one in runs}
    expected, marts = None, {}
    with connect(inputs, check=False) as connection:  # reading a run has looked for doubled rows
        if dataset is not None:
            found = connection.sql("select clean_id, type_code from stg_release").fetchall()
            expected = [(str(clean_id), str(code)) for clean_id, code in found]
        for mart in MARTS:
            rows = connection.sql(text_of(mart, inputs)).to_arrow_table().to_pylist()
            marts[mart] = [{**row, "run": named[row["run"]]} if "run" in row else row for row in rows]
    return marts, expected
