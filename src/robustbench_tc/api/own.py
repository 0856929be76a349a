"""`api` for a user's own tools and cases: what composes readers, builders, scorers and cards."""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .. import taxonomy
from ..errors import UserError, unknown

if TYPE_CHECKING:
    from ..builders.build import BuildSpec
    from ..builders.report import BuildReport
    from ..dataset_cards.facts import Release
    from ..own.book import Book
    from ..own.cases import CaseFile
    from ..own.drafting import Drafted
    from ..own.linted import Linted
    from ..own.logs.importing import Imported
    from ..own.mcp_tools import Server

BY_RULE = ("none", "realistic_typos=rule")
"""The generators of own cases, unless somebody is named: typing errors by rule, no other text."""

NO_LICENCE = b"""The tools and requests of this dataset are their maker's. Whoever published it says
what may be done with them; robustbench-tc, which the rows were made with, gives no licence for them.
"""
"""LICENSE of a release of own tools."""


def build_own(
    cases: Path,
    spec: "BuildSpec",
    out: Path,
    server: "Server | None" = None,
    *,
    generator: Sequence[str],
    force: bool,
    discard_changes: bool,
    progress: Callable[[str], None],
) -> "BuildReport":
    """`build` of a cases file. `generator` as named by the user. Raises UserError.

    `server`: its tools come after those of `tools:`, and are kept beside the cases (`keep_tools`).
    """
    from ..builders.build import build
    from ..builders.own.book import book
    from ..builders.own.rows import pool
    from ..builders.sources import OWN_CASES
    from ..dataset_cards.own import own_card
    from ..eval.matchers import example
    from ..eval.validate import self_check, taken
    from ..own.book import NAME, File

    read = _read_with_server(cases, server, progress)
    if not read.cases:
        raise UserError(
            f"{cases}: every case of it was dropped in its review, or cannot be built as it stands"
        )
    found = pool(read, example)
    for sample in found.samples:
        if reason := self_check(sample):
            case = sample.clean_id.partition("__")[2]
            line = next(one.line for one in read.cases if one.id in (case, case.rpartition(".")[0]))
            raise UserError(f"{cases}:{line}: case {case}: its golden answer is not right: {reason}")
    files = tuple(
        File(name=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest()) for path in read.files
    )
    beside = book(read, files)
    spec = msgspec.structs.replace(spec, profile=OWN_CASES, generators=(*BY_RULE, *generator))
    return build(
        spec,
        out,
        card=partial(own_card, book=beside),
        accept=self_check,
        taken=taken,
        force=force,
        discard_changes=discard_changes,
        progress=progress,
        pool=found,
        beside={NAME: beside.json()},
    )


def init(folder: Path | str, framework: str | None = None) -> tuple[str, ...]:
    """`rbtc init`: writes the example of own tools and cases into a new or empty folder; its files' names.

    `framework`: langgraph, openai-agents or pydantic-ai, for an agent of it beside the plain one. Raises
    UserError where something is there already; then, and where a file cannot be written, nothing is.
    """
    from ..io.folders import write_new
    from ..own import desk as example

    files = example.desk()
    if framework is not None:
        if framework not in example.FRAMEWORKS:
            raise unknown("framework", framework, set(example.FRAMEWORKS))
        files |= example.framework(framework)
    write_new(Path(folder), files)
    return tuple(files)


def lint(
    files: "Sequence[Path | str]", server: "Server | None" = None, save: Path | str | None = None
) -> "Linted":
    """`rbtc lint`: what of these tools would break before any model is asked; `exit_code` is the command's.

    `files`: tool files, or a cases file for the tools that it names. `server`: a live MCP server, which is
    started or asked for its tools; `save`: a new file for them. Raises UserError for what cannot be read.

    >>> lint(["orders.json"]).exit_code()  # doctest: +SKIP
    """
    from ..own.linted import lint_files

    if server is None:
        if save is not None:
            raise UserError("--save keeps the tools of a live server: name one with --tools-from-mcp")
        return lint_files(map(Path, files))
    from ..io.files import check_file
    from ..own.mcp_tools import list_tools

    if save is not None and not Path(save).is_file():
        check_file(Path(save))
    listed = list_tools(server)
    tools = listed.tools(server.title)
    if save is not None:
        keep_tools(Path(save), listed.json(), server.title)
    return lint_files(map(Path, files), tools, server.title)


def keep_tools(path: Path, data: bytes, title: str) -> None:
    """Writes what a server listed as a tools file; one that is there already has to say the same.

    Raises UserError where it does not: what a dataset is made of never changes unseen.
    """
    from ..io.files import atomic_file

    if path.is_file() and path.read_bytes() == data:
        return
    if path.is_file():
        raise UserError(
            f"{path}: {title} lists other tools today: move the file away to take them, or leave "
            "--tools-from-mcp out and name the file in tools:"
        )
    with atomic_file(path) as beside:
        beside.write_bytes(data)


def _read_with_server(cases: Path, server: "Server | None", progress: Callable[[str], None]) -> "CaseFile":
    """The cases and their tools. What a server lists is kept beside the cases, as PREFIX.json."""
    from ..own.read import read_cases

    progress(f"reading {cases.name}")
    if server is None:
        return read_cases(cases)
    from ..own.mcp_tools import list_tools

    progress(f"asking {server.title} for its tools")
    listed = list_tools(server)
    kept = cases.parent / f"{listed.prefix}.json"
    read = read_cases(cases, listed.tools(server.title))
    if kept in read.files:  # what it lists is what the file says
        return read
    keep_tools(kept, listed.json(), server.title)
    return msgspec.structs.replace(read, files=(*read.files, kept))


def card_of(folder: Path, report: "BuildReport", release: "Release") -> str:
    """The card of a release of the benchmark, or of own tools. Raises UserError."""
    from ..builders.sources import OWN_CASES
    from ..dataset_cards.own import own_card
    from ..dataset_cards.render import benchmark_card
    from ..own.book import read

    if report.profile != OWN_CASES:
        return benchmark_card(report, release)
    return own_card(report, _book(read(folder)), release)


def _book(found: "Book | None") -> "Book":
    from ..own.book import NAME

    if found is None:
        raise UserError(f"{NAME} is missing: build the dataset again")
    return found


def rebuild_own(folder: Path, out: Path) -> None:
    """Builds into `out` what `folder` says it is, from its own clean rows and its book. Raises UserError."""
    from ..builders.rebuild import rebuild
    from ..dataset_cards.own import own_card
    from ..eval.validate import self_check, taken
    from ..own.book import NAME, read

    beside = _book(read(folder))
    card = partial(own_card, book=beside)
    files = {NAME: beside.json()}
    rebuild(folder, out, sources=None, card=card, accept=self_check, taken=taken, beside=files)


def import_cases(
    logs: "Sequence[Path | str]",
    out: Path | str,
    *,
    tools: "Sequence[Path | str]" = (),
    redact: Path | str | None = None,
    names_ok: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> "Imported":
    """`rbtc cases import`: cases that logs propose, in a new or an empty folder, without personal data.

    `redact`: a file of patterns of what is to be replaced too. Names of people are not found, so without
    it a folder in a git work tree is refused, unless `names_ok`. Raises UserError.
    """
    from ..io.folders import check_new, real, write_new
    from ..own.logs.importing import make

    folder = real(Path(out))
    check_new(folder)
    tree = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if tree is not None and redact is None and not names_ok:
        raise UserError(
            f"{folder} lies in the git work tree {tree}, and names of people are not removed from logs: say "
            "--names-ok, give their patterns with --redact FILE, or name another --out"
        )
    patterns = None if redact is None else Path(redact)
    made, files = make(list(map(Path, logs)), list(map(Path, tools)), folder, patterns, progress)
    write_new(folder, files)
    return made


def draft_cases(
    tools: "Sequence[Path | str]", out: Path | str, *, model: str | None = None, base_url: str | None = None
) -> "Drafted":
    """`rbtc cases draft`: cases that tools files propose, unreviewed, in a new or an empty folder.

    `model`: writes the requests, at `base_url` or OpenAI's own address; without one they are made of the
    tools' descriptions and sample values. Raises UserError.
    """
    from ..io.folders import check_new, real, write_new
    from ..own.drafting import make
    from ..own.tools import read_tools

    folder, paths = real(Path(out)), list(map(Path, tools))
    check_new(folder)
    if base_url is not None and model is None:
        raise UserError("--base-url says where a model is: name it with --model")
    names = [Path(os.path.relpath(path.resolve(), folder)).as_posix() for path in paths]
    listed = [tool for path in paths for tool in read_tools(path)]
    drafted, files = make(listed, names, folder, model, base_url)
    write_new(folder, files)
    return drafted


def few_cases(build: Path, report: "BuildReport") -> dict[str, int]:
    """Components of a build of own cases that have too few cases for the gate to pass, with how many."""
    from ..eval.score.category import case_of
    from ..eval.stats.gate import ENOUGH
    from ..io.parquet import read_rows, shards

    skipped = {(skip.clean_id, skip.type_code) for skip in report.skipped}
    rows = list(read_rows(shards(build / taxonomy.CLEAN), ["clean_id", "category"]))
    found = dict[str, int]()
    for component in taxonomy.COMPONENTS:
        codes = [code for code in report.types if taxonomy.get(code).component == component]
        cases = {
            case_of(row["clean_id"], row["category"])
            for row in rows
            if any((row["clean_id"], code) not in skipped for code in codes)
        }
        if 0 < len(cases) < ENOUGH:
            found[component] = len(cases)
    return found
