"""Entries into a site of static files that any host serves, and that a browser reads from a folder too.

    index.html live.html own.html how.html      the boards of today
    board-VERSION-FINGERPRINT[-N].html          a board's further pages; those of older dataset versions
    …-rows.js                                   its rows, loaded when somebody searches or sorts
    model/ORG/MODEL/RUN.html .svg               a run, and its badge
    data.parquet data.json                      every figure; the headline figures and what is left out

No page needs a request to another host, none a script to be read. The same entries make the same bytes.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import huggingface_hub.constants
import jinja2
import msgspec

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import figures, paper
from robustbench_tc.eval.live import report as live_report
from robustbench_tc.eval.stats import packs
from robustbench_tc.eval.stats.values import HEADS
from robustbench_tc.io import citation, templates
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.safe_text import safe

from . import flags, pages, tables
from .badge import badge, badge_says
from .boards import LEVEL, PAPER, Board, Row, boards, defended, front
from .chart import progress
from .entry import Entry
from .status import Status

PAGE = 100
"""Rows of a page."""

ENOUGH = 3
"""With fewer ranked runs than these the others follow on the same page; else they have pages of their own."""

HISTORY = 50
"""Runs of one model that its pages list, the newest."""

MOST_LEFT_OUT = 100
"""Runs that the front page names as left out; `data.json` names all."""

TABS = (
    ("Board", "index.html"),
    ("Live", "live.html"),
    ("Own tools", "own.html"),
    ("How to submit, tiers, data", "how.html"),
)


class Built(NamedTuple):
    """What a build made."""

    folder: Path
    runs: int
    """With a page."""
    left_out: int
    files: int


class Part(NamedTuple):
    """A page of a board as its template shows it."""

    stem: str
    title: str
    leads: tuple[str, str]
    note: str
    columns: tuple[pages.Column, ...]
    lines: list[pages.ShownRow]
    total: int
    fold: bool
    """Whether the rows without a rank are shown on demand."""
    shown: str
    choices: list[tuple[str, int, list[str]]]
    """Column → its place and values."""
    links: list[tuple[str, str]]
    reference: list[tuple[str, list[str]]]


def build(
    entries: Sequence[Entry],
    status: Status,
    out: Path,
    *,
    repository: str | None,
    dropped: Mapping[str, str] = {},
) -> Built:
    """Writes the site into the folder `out`, all or nothing; an earlier site is replaced, any other folder refused.

    `repository`: `ORG/NAME` on the Hub, to which the pages of runs link; None for a folder. `dropped`: runs
    that were left out before, each with its reason. UserError where the folder cannot be written.
    """
    found = boards(entries, status)
    withdrawn = {run: f"withdrawn: {one.reason}" for run, one in status.withdrawn.items()}
    left_out = sorted({**dropped, **withdrawn}.items())
    with atomic_dir(out, kind="site", force=True) as made:
        site = _Site(made, found, status, repository)
        site.write_boards(left_out)
        site.write_runs()
        tables.write(found, left_out, site.page_of, made)
        for name, parts in {
            "site.css": (str(figures.style()), _file("eval.report", "page.css"), _own("board.css")),
            "site.js": (_file("eval.report", "page.js"), _own("board.js")),
        }.items():
            site.write(name, "\n".join(parts))
    runs = sum(len(board.rows) + len(board.past) for board in found)
    return Built(out, runs, len(left_out), site.files)


class _Site:
    """A site that is being written."""

    def __init__(self, folder: Path, found: Sequence[Board], status: Status, repository: str | None) -> None:
        self.folder, self.boards, self.status = folder, found, status
        self.front = front(found, status)
        self.files = 0
        self.repository = repository
        self.address = f"{huggingface_hub.constants.ENDPOINT}/datasets/{repository}" if repository else ""

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.files += 1

    def render(self, name: str, template: str, here: str, **values: object) -> None:
        """A page. `here`: the tab that it belongs to."""
        root = "../" * name.count("/")
        self.write(name, _template(template).render(root=root, here=here, tabs=TABS, **values))

    # --- boards -------------------------------------------------------------------------------------------

    def page_of(self, board: Board) -> str:
        """The page that a board is first seen on."""
        if board.kind != "core":
            return f"{board.kind}.html"
        return "index.html" if board is self.front or board.fingerprint == PAPER else f"{stem(board)}.html"

    def write_boards(self, left_out: Sequence[tuple[str, str]]) -> None:
        """The pages of all boards, and their rows for the script."""
        shown: dict[str, list[Part]] = defaultdict(list)
        for board in sorted(self.boards, key=lambda one: one is not self.front):
            page = self.page_of(board)
            lines = [pages.line(row) for row in board.rows]
            rows = msgspec.json.encode(lines).decode()
            self.write(f"{stem(board)}-rows.js", f'boardRows("{stem(board)}", {rows});\n')
            parts = list(_parts(board, lines, page, self.front))
            shown[page].append(parts[0])
            for number, part in enumerate(parts[1:], 2):
                self.render(f"{stem(board)}-{number}.html", "boards.html.j2", page, **_page(board, [part]))
        older = [one for one in self.boards if self.page_of(one) == f"{stem(one)}.html"]
        links = [(f"{pages.label(board)}, {len(board.rows):,} runs", self.page_of(board)) for board in older]
        for board in older:
            name = self.page_of(board)
            self.render(name, "boards.html.j2", "index.html", **_page(board, shown[name]))
        for name, (title, lead) in LEADS.items():
            more: dict[str, Any] = {"title": title, "lead": lead, "parts": shown[name]}
            if name == "index.html":
                more |= {"older": links, "left_out": left_out}
                more["progress"] = progress(self.front) if self.front else ""
            self.render(name, "boards.html.j2", name, **{**_page(None, []), **more})
        self.render(
            "how.html",
            "how.html.j2",
            "how.html",
            title="How to submit",
            status=self.status,
            repository=self.repository or "RESULTS",
            address=self.address,
            bibtex=citation.paper_bibtex(),
        )

    # --- runs ---------------------------------------------------------------------------------------------

    def write_runs(self) -> None:
        """A page and a badge for each run, superseded ones included."""
        histories: dict[tuple[str, str], list[tuple[Board, Row]]] = defaultdict(list)
        every = [(board, row) for board in self.boards for row in (*board.rows, *board.past)]
        for board, row in sorted(every, key=lambda one: (one[1].day, one[1].run), reverse=True):
            histories[_model(row)].append((board, row))
        for board, row in every:
            page = pages.path_of(row)
            self.write(page.removesuffix(".html") + ".svg", badge(row))
            core = row.entry.core
            self.render(
                page,
                "run.html.j2",
                self.page_of(board),
                title=safe(row.entry.submission.model),
                row=row,
                entry=row.entry,
                core=core,
                live=row.entry.live,
                label=pages.label(board),
                board_page=self.page_of(board),
                by=pages.by(row),
                facts=pages.facts(row, len(board.ranked)),
                heatmap="" if core is None else pages.heatmap(core),
                badge=pages.page_of(row).rpartition("/")[2].removesuffix(".html") + ".svg",
                badge_says=badge_says(row),
                replies=f"{self.address}/tree/main/runs/{pages.quote(row.run)}"
                if self.address and row.tier != "published"
                else "",
                history=histories[_model(row)][:HISTORY],
            )


LEADS = {
    "index.html": (
        "Leaderboard",
        "How much of a model's tool calling survives deployment noise: the same tasks, clean and perturbed.",
    ),
    "live.html": (
        "Live runs",
        "Agents in worlds that their calls change: a tool fails before or after its effect, and what counts is "
        "the world in the end and what the user was told. Live runs move no place on the board.",
    ),
    "own.html": (
        "Agents on tools of their own",
        "Runs over rows that somebody made of their own tools: one table for each such dataset.",
    ),
}
"""Page → its heading and what it is about."""


def stem(board: Board) -> str:
    """What the files of a board begin with: `board-1.0.0-cc827666`."""
    if board.fingerprint == PAPER:
        return "board-paper"
    kind = "board" if board.kind == "core" else board.kind
    version = re.sub(r"[^A-Za-z0-9.]+", "_", board.version)[:40]
    return f"{kind}-{version}-{board.fingerprint[:8]}"


def _page(board: Board | None, parts: Sequence[Part]) -> dict[str, Any]:
    """The values of a page of boards; those of the front page are put in there."""
    title = "" if board is None else f"Leaderboard, {pages.label(board)}"
    lead = "" if board is None else "Not the board of the front page." if board.kind == "core" else ""
    return {
        "title": title, "lead": lead, "parts": parts, "progress": "", "older": (), "left_out": (),
        "per_page": PAGE, "most_left_out": MOST_LEFT_OUT,
    }  # fmt: skip


def _parts(
    board: Board, lines: Sequence[pages.ShownRow], page: str, front_board: Board | None
) -> Iterator[Part]:
    """The pages of a board, each with some of its rows."""
    name, ranked = stem(board), len(board.ranked)
    fold = ranked >= ENOUGH
    columns = pages.columns(board)
    groups = [(lines[:ranked], "with a rank"), (lines[ranked:], "without a rank")] if fold else [(lines, "")]
    chunks = [
        (group[at : at + PAGE], at, len(group), said)
        for group, said in groups
        for at in range(0, len(group), PAGE)
    ] or [([], 0, 0, "")]
    links = [
        (
            f"{said} {at + 1:,} to {at + len(chunk):,}".strip(),
            page if number == 1 else f"{name}-{number}.html",
        )
        for number, (chunk, at, _, said) in enumerate(chunks, 1)
    ]
    titles = {"live": "Live runs", "own": safe(board.dataset), "core": "Leaderboard"}
    of_paper = board.fingerprint == PAPER
    for number, (chunk, at, n, said) in enumerate(chunks):
        yield Part(
            stem=name,
            title="The paper's 21 models" if of_paper else f"{titles[board.kind]}, {pages.label(board)}",
            leads=pages.leading(board),
            note=OF_PAPER if of_paper else "",
            columns=columns,
            lines=list(chunk),
            total=len(lines),
            fold=fold,
            shown=f"{at + 1:,} to {at + len(chunk):,} of {n:,} {said}",
            choices=[
                (column.name, place, sorted({line.cells[place - 1].text for line in lines}))
                for place, column in enumerate(columns, 1)
                if column.choice
            ],
            links=[link for place, link in enumerate(links) if place != number][:LINKS],
            reference=[(one.name, pages.reference(one)) for one in board.reference] if number == 0 else [],
        )


LINKS = 120
"""Pages of a board that each page links to."""

OF_PAPER = (
    "They answered the paper's own rows, another version of the dataset: their figures are not to be set against "
    "those of other boards, and they are ranked with no other run."
)


def _model(row: Row) -> tuple[str, str]:
    entry = row.entry
    return entry.submitter or entry.run.partition("/")[0], entry.submission.model


# --- templates and styles -------------------------------------------------------------------------------


@cache
def _template(name: str) -> jinja2.Template:
    made = templates.environment(__package__, "templates")
    made.filters["inert"] = safe
    made.globals |= {
        "level": LEVEL,
        "tiers": pages.TIERS,
        "flag_means": flags.MEANING,
        "flag_says": flags.says,
        "heads": HEADS,
        "names": {one.code: one.display_name for one in taxonomy.types()},
        "components": {one.code: one.component for one in taxonomy.types()},
        "error_modes": schema.ERROR_MODES,
        "shares": figures.shares,
        "spelled": packs.typeset,
        "right_of": live_report.right_of,
        "false_success": live_report.false_success,
        "mean": live_report.mean,
        "effects": live_report.SIDE_EFFECTS,
        "page_of": pages.page_of,
        "defended": defended,
        "label_of": pages.label,
        "paper_address": citation.ADDRESS,
        "paper_source": paper.SOURCE,
    }
    return made.get_template(name)


def _own(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text("utf-8")


def _file(package: str, name: str) -> str:
    return files(f"robustbench_tc.{package}").joinpath(name).read_text("utf-8")
