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
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import huggingface_hub.constants
import jinja2
import msgspec

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import figures
from robustbench_tc.eval.live import report as live_report
from robustbench_tc.eval.stats import packs
from robustbench_tc.eval.stats.values import HEADS
from robustbench_tc.io import citation, templates
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.safe_text import safe

from . import boards as boards_module
from . import flags, pages, tables
from .boards import PAPER, Board, Row, boards, front
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

    runs: int
    """With a page."""
    left_out: int


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
    found = boards(entries, status)
    withdrawn = {run: f"withdrawn: {one.reason}" for run, one in status.withdrawn.items()}
    left_out = sorted({**dropped, **withdrawn}.items())
    with atomic_dir(out, kind="site", force=True) as made:
        site = _Site(made, found, status, repository, form)
        site.write_boards(left_out)
        site.write_runs()
        tables.write(found, left_out, site.page_of, made)
        own, of_report = files(__package__) / "static", files("robustbench_tc.eval.report")
        styles = [str(figures.style()), (of_report / "page.css").read_text(), (own / "board.css").read_text()]
        site.write("site.css", "\n".join(styles))
        site.write("site.js", (of_report / "page.js").read_text() + (own / "board.js").read_text())
    runs = sum(len(board.rows) + len(board.past) for board in found)
    return Built(runs, len(left_out))


class _Site:
    """A site that is being written."""

    def __init__(
        self,
        folder: Path,
        found: Sequence[Board],
        status: Status,
        repository: str | None,
        form: str | None,
    ) -> None:
        self.folder, self.boards, self.status, self.repository = folder, found, status, repository
        self.tabs = (*TABS, ("Submit a run", form)) if form else TABS
        self.front = front(found, status)
        self.address = f"{huggingface_hub.constants.ENDPOINT}/datasets/{repository}" if repository else ""

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def render(self, name: str, template: str, here: str, **values: object) -> None:
        """A page. `here`: the tab that it belongs to."""
        root = "../" * name.count("/")
        self.write(name, _template(template).render(root=root, here=here, tabs=self.tabs, **values))

    def page_of(self, board: Board) -> str:
        """The page that a board is first seen on."""
        if board.kind != "core":
            return f"{board.kind}.html"
        return "index.html" if board is self.front or board.fingerprint == PAPER else f"{stem(board)}.html"

    def write_boards(self, left_out: Sequence[tuple[str, str]]) -> None:
        """The pages of all boards, and their rows for the script."""
        shown: dict[str, list[dict[str, Any]]] = {name: [] for name in HEADINGS}
        for board in sorted(self.boards, key=lambda one: one is not self.front):
            page, lines = self.page_of(board), [pages.shown(row) for row in board.rows]
            rows = msgspec.json.encode(lines).decode()
            self.write(f"{stem(board)}-rows.js", f'boardRows("{stem(board)}", {rows});\n')
            of_page = _parts(board, lines, page)
            if page in shown:
                shown[page].append(of_page.pop(0))
            heading = f"Leaderboard, {pages.label(board)}", ""
            for part in of_page:
                self.render(part["page"], "boards.html.j2", page, heading=heading, parts=[part], **NO_MORE)
        older = [
            (f"{pages.label(one)}, {len(one.rows):,} runs", self.page_of(one))
            for one in self.boards
            if self.page_of(one) not in shown
        ]
        front_page = {
            "older": older, "left_out": left_out, "progress": progress(self.front) if self.front else "",
        }  # fmt: skip
        for page, heading in HEADINGS.items():
            more = front_page if page == "index.html" else NO_MORE
            self.render(page, "boards.html.j2", page, heading=heading, parts=shown[page], **more)
        self.render("how.html", "how.html.j2", "how.html", heading=("How to submit", ""), status=self.status,
                    repository=self.repository or "RESULTS", address=self.address)  # fmt: skip

    def write_runs(self) -> None:
        """A page and a badge for each run, superseded ones included."""
        every = [(board, row) for board in self.boards for row in (*board.rows, *board.past)]
        histories: dict[tuple[str, str], list[tuple[Board, Row]]] = defaultdict(list)
        for board, row in sorted(every, key=lambda one: (one[1].day, one[1].run), reverse=True):
            histories[row.of_whom].append((board, row))
        for board, row in every:
            page = pages.path_of(row)
            self.render(page.removesuffix(".html") + ".svg", "badge.html.j2", "", row=row)
            self.render(
                page,
                "run.html.j2",
                self.page_of(board),
                heading=(safe(row.entry.submission.model), ""),
                row=row,
                board=board,
                board_page=self.page_of(board),
                replies=f"{self.address}/tree/main/runs/{quote(row.run)}" if self.address and row.day else "",
                history=histories[row.of_whom][:HISTORY],
            )


HEADINGS = {
    "index.html": (
        "Leaderboard",
        "How much of a model's tool calling survives deployment noise: the same tasks, clean and perturbed.",
    ),
    "live.html": (
        "Live runs",
        "Agents in worlds that their calls change: a tool fails before or after its effect, and what counts "
        "is the world in the end and what the user was told. Live runs move no place on the board.",
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


NO_MORE: dict[str, Any] = {"older": (), "left_out": (), "progress": ""}
"""What other pages of boards lack of the front page's."""


def _parts(board: Board, lines: Sequence[pages.ShownRow], page: str) -> list[dict[str, Any]]:
    """The pages of a board, each with some of its rows, as `table.html.j2` shows them. `page`: the first."""
    ranked = len(board.ranked)
    fold = ranked >= ENOUGH
    groups = {" with a rank": lines[:ranked], " without a rank": lines[ranked:]} if fold else {"": lines}
    chunks = [(said, at, group) for said, group in groups.items() for at in range(0, len(group), PAGE)]
    names = [page, *(f"{stem(board)}-{number}.html" for number in range(2, len(chunks) + 1))]
    links = {
        name: f"{at + 1:,} to {min(at + PAGE, len(group)):,}{said}"
        for name, (said, at, group) in zip(names, chunks, strict=False)
    }
    choices = [
        (column.name, place, sorted({line.cells[place - 1].text for line in lines}))
        for place, column in enumerate(pages.columns(board), 1)
        if column.choice
    ]
    return [
        {
            "page": name,
            "stem": stem(board),
            "board": board,
            "lines": group[at : at + PAGE],
            "fold": fold,
            "shown": f"{at + 1:,} to {min(at + PAGE, len(group)):,} of {len(group):,}{said}",
            "choices": choices,
            "links": links,
        }
        for name, (said, at, group) in zip(names, chunks or [("", 0, lines)], strict=True)
    ]


# --- templates and styles -------------------------------------------------------------------------------


@cache
def _template(name: str) -> jinja2.Template:
    made = templates.environment(__package__, "templates")
    made.filters["inert"] = safe
    made.globals |= {
        "boards": boards_module,
        "pages": pages,
        "flags": flags,
        "heads": HEADS,
        "types": {one.code: one for one in taxonomy.types()},
        "error_modes": schema.ERROR_MODES,
        "shares": figures.shares,
        "spelled": packs.typeset,
        "live_report": live_report,
        "citation": citation,
        "per_page": PAGE,
        "most_left_out": MOST_LEFT_OUT,
    }
    return made.get_template(name)
