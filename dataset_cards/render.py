"""Dataset cards: YAML front matter that `datasets` reads, and prose with the release's own numbers.

The reports are taken as they are and the rest is counted in the release's files (`facts.py`), so that a card
can never say another number than its data hold.
"""

from importlib.resources import files
from typing import Any, Protocol

import jinja2
import msgspec

from robustbench_tc import __version__, taxonomy

from .facts import Release
from .how_made import FLAGS, HOW_MADE, PAPER_ROWS

BIBTEX = """\
@article{zhou2026simulation,
  title   = {When Simulation Lies: A Sim-to-Real Benchmark and Domain-Randomized RL Recipe
             for Tool-Use Agents},
  author  = {Zhou, Xiaolin and Yuan, Aojie and Luo, Zheng and Ling, Zipeng and Pan, Xixiao and Gao, Yicheng
             and Zhang, Haiyue and Li, Jiate and Jiang, Shuli and Wang, Prince Zizhuang and Zhu, Zixuan
             and Liu, Jinbo and Rossi, Ryan A. and Wei, Hua and Hu, Xiyang},
  journal = {arXiv preprint arXiv:2605.11928},
  year    = {2026}
}"""


class Report(Protocol):
    """What a card needs of a build report (`builders.report.BuildReport`)."""

    @property
    def dataset_version(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def configs(self) -> tuple[str, ...]: ...
    @property
    def rows(self) -> dict[str, dict[str, int]]: ...
    @property
    def checksums(self) -> dict[str, str]: ...
    @property
    def total(self) -> int: ...
    @property
    def skipped(self) -> tuple[Any, ...]: ...
    @property
    def flags(self) -> dict[str, dict[str, int]]: ...
    @property
    def generators(self) -> dict[str, Any]: ...
    @property
    def known_issues(self) -> dict[str, dict[str, int]]: ...
    @property
    def pins(self) -> tuple[dict[str, Any], ...]: ...


def benchmark_card(report: Report, release: Release | None = None) -> str:
    """`README.md` of the benchmark: of a build, or with `release` of a release, which says more."""
    count = {code: sum(by_source.values()) for code, by_source in report.rows.items()}
    types = [t for t in taxonomy.types("all") if count.get(t.code)]
    return template("robustbench_tc.md.j2").render(
        report=report,
        release=release,
        types=types,
        count=count,
        transition_rows=sum(count[t.code] for t in types if t.component == "transition"),
        skips=_skips(report),
        how_made=HOW_MADE,
        flags=FLAGS,
        paper_rows=PAPER_ROWS,
        bibtex=BIBTEX,
        package_version=__version__,
    )


def _skips(report: Report) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for skip in report.skipped:
        key = (skip.type_code, skip.reason)
        counts[key] = counts.get(key, 0) + 1
    return counts


def template(name: str) -> jinja2.Template:
    """A template of this room. An unknown name in it is an error, never an empty place in a card."""
    folder = files("robustbench_tc.dataset_cards")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, of our own text and our own numbers
    )
    environment.filters |= {
        "cell": lambda value: " ".join(str(value).replace("|", "\\|").split()),
        "code": lambda text: f"`{text}`",
        "number": lambda value, places: "" if value is None else f"{value:.{places}f}",
        "percent": lambda value: "" if value is None else f"{100 * value:.1f} %",
        "size_category": size_category,
        "yaml": lambda value: msgspec.json.encode(value).decode(),  # JSON is YAML
    }
    return environment.get_template(name)


def size_category(rows: int) -> str:
    """The Hub's word for a number of rows: `1K<n<10K`."""
    borders = (("n<1K", 10**3), ("1K<n<10K", 10**4), ("10K<n<100K", 10**5), ("100K<n<1M", 10**6))
    return next((word for word, border in borders if rows < border), "1M<n<10M")
