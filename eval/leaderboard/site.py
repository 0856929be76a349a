"""Entries into a site of static files that any host serves, and that a browser reads from a folder too.

    index.html live.html own.html how.html      the boards of today
    KIND-FINGERPRINT[-N].html                   a board's further pages; those of older dataset versions
    KIND-FINGERPRINT-rows.js                    its rows, loaded when somebody searches or sorts
    model/ORG/MODEL/RUN.html .svg               a run, and its badge
    data.parquet data.json                      every figure; the headline figures and what is left out

No page needs a request to another host, none a script to be read. The same entries make the same bytes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import taxonomy
from robustbench_tc.dataset_cards import citation
from robustbench_tc.eval.report import figures
from robustbench_tc.eval.stats import packs
from robustbench_tc.eval.stats.packs import live as live_report
from robustbench_tc.eval.stats.values import HEADS, METRICS
from robustbench_tc.io import templates
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.safe_text import safe

from . import boards, flags, pages
from .boards import PAPER, Board, Row
from .entry import Entry, Status

PAGE = 100
"""Rows of a page."""

ENOUGH = 3
"""With fewer ranked runs than these the others follow on the same page; else they have pages of their own."""

HISTORY = 50
"""Runs of one model that its pages list, the newest."""

MOST_LEFT_OUT = 100
"""Runs that the front page names as left out; `data.json` names all."""

TABS = ("index.html", "live.html", "own.html")
"""Pages that are always there, each with a template of its own."""


class Built(msgspec.Struct, frozen=True):
    """What a build made."""

    folder: str
    runs: int
    """With a page."""
    left_out: int

    def shown(self) -> Iterator[str]:
        """Where to look."""
        left = f", {self.left_out} left out (index.html says why)" if self.left_out else ""
        yield f"{self.runs} runs{left}: {self.folder}/index.html"


def build(
    entries: Sequence[Entry],
    status: Status,
    out: Path,
    *,
    repository: str | None,
    dropped: Mapping[str, str] = {},
    form: str | None = None,
) -> Built:
    """Writes the site into the folder `out`, all or nothing; an earlier site is replaced, all else refused.

    `repository`: `ORG/NAME` on the Hub, to which the pages of runs link; None for a folder. `dropped`: runs
    that were left out before, each with its reason. `form`: where a form to submit with is served, from the
    front page. UserError where the folder cannot be written.
    """
    found = boards.boards(entries, status)
    withdrawn = {run: f"withdrawn: {one.reason}" for run, one in status.withdrawn.items()}
    left_out = sorted({**dropped, **withdrawn}.items())
    with atomic_dir(out, kind="site", force=True) as made:
        site = _Site(made, found, status, repository, form)
        site.write_boards(left_out)
        site.write_runs()
        site.render("how.html", "how.html.j2")
        write_tables(found, left_out, site.page_of, made)
        own, of_report = files(__package__) / "static", files("robustbench_tc.eval.report")
        site.write(
            "site.css",
            f"{figures.style()}\n{(of_report / 'page.css').read_text()}\n{(own / 'board.css').read_text()}",
        )
        site.write("site.js", (of_report / "page.js").read_text() + (own / "board.js").read_text())
    return Built(str(out), sum(len(board.rows) + len(board.past) for board in found), len(left_out))


class _Site:
    """A site that is being written; templates know it as `site`."""

    def __init__(
        self,
        folder: Path,
        found: Sequence[Board],
        status: Status,
        repository: str | None,
        form: str | None,
    ) -> None:
        self.folder, self.boards, self.status, self.form = folder, found, status, form
        self.front = boards.front(found, status)
        self.repository = repository or "RESULTS"
        self.address = f"{huggingface_hub.constants.ENDPOINT}/datasets/{repository}" if repository else ""
        self.templates = templates.environment(__package__, "templates")
        self.templates.filters["inert"] = safe
        self.templates.globals |= {
            "boards": boards,
            "pages": pages,
            "flags": flags,
            "heads": HEADS,
            "types": {one.code: one for one in taxonomy.types()},
            "spelled": packs.typeset,
            "live_report": live_report,
            "citation": citation,
            "per_page": PAGE,
            "most_left_out": MOST_LEFT_OUT,
        }

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def render(self, name: str, template: str, **values: object) -> None:
        """The page `name`."""
        root = "../" * name.count("/")
        self.write(
            name, self.templates.get_template(template).render(root=root, here=name, site=self, **values)
        )

    def page_of(self, board: Board) -> str:
        """The page that a board is first seen on."""
        if board.kind != "core":
            return f"{board.kind}.html"
        return "index.html" if board is self.front or board.fingerprint == PAPER else f"{stem(board)}.html"

    def write_boards(self, left_out: Sequence[tuple[str, str]]) -> None:
        """The pages of all boards, and their rows for the script."""
        shown: dict[str, list[dict[str, Any]]] = {page: [] for page in TABS}
        for board in sorted(self.boards, key=lambda one: one is not self.front):
            lines = [pages.shown(row) for row in board.rows]
            self.write(
                f"{stem(board)}-rows.js",
                f'boardRows("{stem(board)}", {msgspec.json.encode(lines).decode()});\n',
            )
            for part in _parts(board, lines, self.page_of(board)):
                shown.setdefault(part["page"], []).append(part)
        older = [board for board in self.boards if self.page_of(board) not in TABS]
        for page, parts in shown.items():
            self.render(
                page,
                f"{page}.j2" if page in TABS else "boards.html.j2",
                parts=parts,
                older=older,
                left_out=left_out,
            )

    def write_runs(self) -> None:
        """A page and a badge for each run, superseded ones included."""
        every = [(board, row) for board in self.boards for row in (*board.rows, *board.past)]
        every.sort(key=lambda one: (one[1].day, one[1].run), reverse=True)
        histories: dict[tuple[str, str], list[tuple[Board, Row]]] = defaultdict(list)
        for board, row in every:
            histories[boards.of_whom(row.entry)].append((board, row))
        for board, row in every:
            history = histories[boards.of_whom(row.entry)][:HISTORY]
            self.render(pages.page_of(row), "run.html.j2", row=row, board=board, history=history)
            text = pages.badge(row)
            told = templates.badge(
                "RobustBench-TC", text, pages.colour(row), f"{safe(row.entry.submission.model)}: {text}"
            )
            self.write(pages.page_of(row).removesuffix(".html") + ".svg", told)


def stem(board: Board) -> str:
    """What the files of a board begin with: `core-cc827666`."""
    return f"{board.kind}-{board.fingerprint[:8]}"


def _parts(board: Board, lines: Sequence[pages.ShownRow], page: str) -> list[dict[str, Any]]:
    """The pages of a board, each with some of its rows, as `table.html.j2` shows them. `page`: the first."""
    ranked = len(board.ranked)
    groups = (
        {" with a rank": lines[:ranked], " without a rank": lines[ranked:]}
        if ranked >= ENOUGH
        else {"": lines}
    )
    chunks = {
        f"{at + 1:,} to {min(at + PAGE, len(group)):,} of {len(group):,}{kind}": group[at : at + PAGE]
        for kind, group in groups.items()
        for at in range(0, len(group), PAGE)
    }
    names = [page, *(f"{stem(board)}-{number}.html" for number in range(2, len(chunks) + 1))]
    choices = {
        name: (place, sorted({line.cells[place - 1].text for line in lines}))
        for place, name in enumerate(pages.COLUMNS[board.kind], 1)
        if name in pages.CHOICES
    }
    return [
        {
            "page": name,
            "stem": stem(board),
            "board": board,
            "lines": chunk,
            "fold": len(groups) > 1,
            "shown": span,
            "choices": choices,
            "links": dict(zip(names, chunks, strict=True)),
        }
        for name, (span, chunk) in zip(names, chunks.items(), strict=True)
    ]


# --- for programs -------------------------------------------------------------------------------------------

HEADLINE = ("run", "model", "rank", "tier", "flags", "perturbed", "success_all", "clean")
"""What `data.json` says of a run."""

COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys((
        "run", "kind", "dataset", "version", "fingerprint", "model", "submitter", "tier", "flags", "mode",
        "defended", "weights", "licence", "day", "superseded_by",
    ), pa.string()),
    "rank": pa.int32(),
    **{f"{of}_{name}": pa.int32() for name in (*HEADS, *taxonomy.codes()) for of in ("right", "n")},
    **dict.fromkeys((
        "p_leader", "params_b", "prompt_tokens", "completion_tokens", "latency_s",
    ), pa.float64()),
    **{f"{name}{end}": pa.float64() for name in (
        *METRICS, *(f"success_{one}" for one in live_report.groups()),
        *(f"accuracy_{one}" for one in taxonomy.codes()),
    ) for end in ("", "_low", "_high")},
}  # fmt: skip
"""The columns of `data.parquet`: one row a run, superseded ones included."""


def write_tables(
    found: Sequence[Board], left_out: Sequence[tuple[str, str]], page: Callable[[Board], str], folder: Path
) -> None:
    """`data.parquet` and `data.json` into `folder`. `page`: where a board is first seen."""
    flat = {row.run: _flat(row) for board in found for row in (*board.rows, *board.past)}
    pq.write_table(
        pa.Table.from_pylist([*flat.values()], pa.schema(COLUMNS)),
        folder / "data.parquet",
        compression="zstd",
    )
    headlines = {
        "boards": [
            {
                "kind": board.kind,
                "dataset": board.dataset,
                "version": board.version,
                "fingerprint": board.fingerprint,
                "page": page(board),
                "runs": [
                    {name: flat[row.run].get(name) for name in HEADLINE} | {"page": pages.page_of(row)}
                    for row in board.rows
                ],
            }
            for board in found
        ],
        "left_out": dict(left_out),
    }
    folder.joinpath("data.json").write_bytes(msgspec.json.encode(headlines) + b"\n")


def _flat(row: Row) -> dict[str, Any]:
    """A run by column, with fields that are none."""
    entry, core = row.entry, row.entry.core
    columns = {
        **msgspec.structs.asdict(entry.submission),
        **msgspec.structs.asdict(entry),
        **msgspec.structs.asdict(row),
        "flags": " ".join(flag.code for flag in row.flags),
        "defended": boards.defended(entry),
        "day": row.day,
        "rank": row.rank or None,
    }
    if core is not None:
        columns |= {"finding": core.sentence, **msgspec.structs.asdict(core.usage)}
        for name, (right, n) in core.counts.items():
            columns |= {f"right_{name}": right, f"n_{name}": n}
    for name, value in row.values.items():
        if value is not None:
            columns |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
    return columns
