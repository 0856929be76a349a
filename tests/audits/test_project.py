"""What lies under `audit/`: a Great Expectations project that runs, data docs that need no network."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import pytest

from robustbench_tc.audits import gate
from robustbench_tc.audits.checks import Rule
from robustbench_tc.audits.expectations import gx
from robustbench_tc.audits.expectations.project import files, pages
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.report import AuditReport

from .. import trees
from ..pages import Page
from ..refusals import refuses
from . import builds, defects
from .conftest import Written, written

SUITES = ("benchmark_columns", "benchmark_configs", "benchmark_rows", "benchmark_texts")


def named(files: Mapping[str, bytes]) -> dict[str, str]:
    """What a report says about `files`."""
    return {f"audit/{name}": hashlib.sha256(data).hexdigest() for name, data in files.items()}


@pytest.fixture(scope="module")
def broken(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A build with defects, so that the docs have something to show."""
    folder = builds.copy(bundled, tmp_path_factory.mktemp("broken") / "robustbench-tc")
    defects.plant_rows(folder, ("a lost digit", "a swapped price", "a duplicate id"))
    return written(folder)


def test_every_file_is_named_with_its_hash_and_is_no_part_of_the_build(sound: Written, bundled: Path) -> None:
    found = {
        path.relative_to(sound.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sound.audit.rglob("*")
        if path.is_file()
    }
    assert found == json.loads((sound.folder / "audit_report.json").read_bytes())["files"]
    assert sound.report.build == Folder(bundled).digest()
    assert {name.split("/")[1] for name in found} == {"judgments.jsonl", "gx", "data_docs"}


def test_the_same_audit_gives_the_same_bytes_whatever_the_folder_is_called(
    sound: Written, audited: AuditReport, bundled: Path
) -> None:
    again: dict[str, bytes] = {}
    report = builds.audit(bundled, files=again)
    assert again == sound.files and report.files == sound.report.files
    assert msgspec.structs.replace(report, files={}).json() == audited.json()
    for name, data in again.items():
        assert str(sound.folder).encode() not in data and b"/tmp/" not in data, name
        assert not re.search(rb"20\d\d-?\d\d-?\d\dT\d\d|\d\d:\d\d:\d\d\.\d", data), name
        assert not re.search(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]", data), (
            f"{name} has a random name"
        )


def test_a_suite_is_loaded_from_its_json_and_run_by_great_expectations(broken: Written) -> None:
    import pandas as pd

    great = gx.quiet()
    from great_expectations.core import ExpectationSuite

    checks = {one.id: one for one in broken.report.checks}
    ran = 0
    for name in SUITES:
        suite = ExpectationSuite(
            **json.loads((broken.audit / "gx" / "expectations" / f"{name}.json").read_bytes())
        )
        table = pd.read_csv(
            broken.audit / "gx" / "data" / f"{name}.csv.gz", keep_default_na=False, na_values=[""]
        )
        context = great.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False, "metric_calculations": False}
        asset = context.data_sources.add_pandas("mine").add_dataframe_asset(name)
        batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": table})
        for result in batch.validate(suite).results:
            check = checks[result.expectation_config.meta["check"]]
            if check.status in ("passed", "failed"):
                assert result.success == (check.status == "passed"), check.id
            ran += 1
    assert ran == sum(
        one.id.split(".")[0] in ("columns", "configs", "rows", "hygiene", "texts", "tables")
        for one in broken.report.checks
    )


def test_the_project_opens_as_a_file_context_and_its_checkpoint_runs(
    broken: Written, sound: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    great = gx.quiet()
    for one, failing in ((broken, {"benchmark_rows", "benchmark_texts"}), (sound, {"benchmark_texts"})):
        monkeypatch.chdir(builds.copy(one.audit, tmp_path / one.folder.name))
        result = great.get_context(mode="file").checkpoints.get("gate").run()
        found = {run.suite_name: run.success for run in result.run_results.values()}
        assert {name for name, success in found.items() if not success} == failing and set(found) == set(
            SUITES
        )


def html_pages(folder: Path) -> Iterator[tuple[Path, Page]]:
    for path in sorted(folder.rglob("*.html")):
        yield path, Page(path.read_text("utf-8"))


def test_the_pages_need_no_network_and_every_link_leads_somewhere(broken: Written) -> None:
    found = dict(html_pages(broken.audit / "data_docs"))
    assert len(found) == 1 + 2 * len(SUITES)
    for path, page in found.items():
        assert not page.tags & {"script", "img", "iframe", "form", "object", "embed", "style", "base"}, path
        assert not page.inline, path
        for link in (*page.links, *page.loads):
            target, _, anchor = link.partition("#")
            assert not re.match(r"[a-z]+:|//", link), link
            if target:
                assert (path.parent / target).resolve().is_relative_to(broken.audit.resolve())
                assert (path.parent / target).is_file(), f"{path.name}: {link}"
            else:
                assert anchor in page.ids, f"{path.name}: {link}"
    css = (broken.audit / "data_docs" / "static" / "data_docs.css").read_text()
    assert "url(" not in css and "@import" not in css and "http" not in css


def test_the_docs_say_what_every_check_protects_and_what_failed(broken: Written) -> None:
    found = {path.stem: page.text for path, page in html_pages(broken.audit / "data_docs" / "validations")}
    assert "Status" in found["benchmark_rows"] and "Failed" in found["benchmark_rows"]
    for check in broken.report.checks:
        if check.id.startswith(("rows.", "hygiene.")):
            assert check.protects in found["benchmark_rows"], check.id
    (lost,) = (one.failures[0].what for one in broken.report.checks if one.id == "rows.digits_kept")
    assert lost in found["benchmark_rows"]
    index = Page((broken.audit / "data_docs" / "index.html").read_text())
    assert "✗ failed" in index.text and "profile bundled, fingerprint" in index.text


def test_what_hostile_rows_say_is_text_on_the_pages(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)> $x ${y} {{ 7*7 }} </td> \"'>&lt;b&gt;"
    data: dict[str, list[Any]] = {"id": ["<i>1</i>", "2"], "says": ["", evil], "config": [evil, evil]}
    known: dict[str, Any] = {"arguments": {"column": "config", "value_set": ["a"]}}
    rules = (
        Rule("benchmark_rows", "rows.says", "A sentence <b>with</b> marks."),
        Rule("benchmark_rows", "rows.known", "Known.", **known),
    )
    with gx.collected() as validated:
        checks = gx.run("benchmark_rows", data, rules)
    assert [check.status for check in checks] == ["failed"] * 2 and checks[0].failures[0].what == evil
    for name, made in pages(validated, f"<b>{evil}</b>").items():
        if name.endswith(".html"):
            page = Page(made.decode())
            assert not page.tags & {"script", "img"} and not page.inline, name
    shown = Page(pages(validated, "t")["validations/benchmark_rows.html"].decode()).text
    assert shown.count(evil) >= 2, "its own verdict, and the value of a column"
    assert files(validated, "t")["gx/data/benchmark_rows.csv.gz"]


def test_a_second_audit_replaces_its_own_files_and_touches_no_other(sound: Written, tmp_path: Path) -> None:
    folder = builds.copy(sound.folder, tmp_path / "robustbench-tc")
    fewer = {name: data for name, data in sound.files.items() if not name.startswith("data_docs")}
    gate.write(msgspec.structs.replace(sound.report, files=named(fewer)), folder, fewer)
    left = {path.relative_to(folder / "audit").as_posix() for path in (folder / "audit").rglob("*")}
    folders = {parent.as_posix() for name in fewer for parent in PurePosixPath(name).parents} - {"."}
    assert left == {*fewer, *folders}, "no empty folder stays behind"
    mine = folder / "audit" / "notes.txt"
    mine.write_text("mine")
    refuses("notes.txt was not written by rbtc", gate.write, sound.report, folder, sound.files)
    assert mine.read_text() == "mine"
    mine.unlink()
    gate.write(sound.report, folder, sound.files)
    assert (folder / "audit" / "data_docs" / "index.html").is_file()


def test_a_file_of_an_audit_that_was_edited_is_kept(sound: Written, tmp_path: Path) -> None:
    folder = builds.copy(sound.folder, tmp_path / "robustbench-tc")
    edited = folder / "audit" / "gx" / "checkpoints" / "gate.json"
    edited.write_text("edited by hand")
    before = trees.tree(folder)
    refuses(
        r"gate\.json was not written by rbtc or changed since", gate.write, sound.report, folder, sound.files
    )
    assert trees.tree(folder) == before


@pytest.mark.parametrize("name", ["judgments.jsonl", "gx", "data_docs/index.html"])
def test_a_file_under_a_name_of_an_audit_is_kept(name: str, sound: Written, tmp_path: Path) -> None:
    mine = tmp_path / "audit" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    before = trees.tree(tmp_path)
    refuses(name.split("/")[0], gate.write, sound.report, tmp_path, sound.files)
    assert trees.tree(tmp_path) == before


def test_a_link_or_a_file_called_audit_is_left_alone(sound: Written, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "audit").symlink_to(elsewhere)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "audit").write_text("mine")
    (tmp_path / "c" / "audit").mkdir(parents=True)
    (tmp_path / "c" / "audit" / "gx").symlink_to(elsewhere)
    for folder in (tmp_path / "a", tmp_path / "b", tmp_path / "c"):
        refuses("audit.* was not written by rbtc", gate.write, sound.report, folder, sound.files)
        assert not (folder / "audit_report.json").exists()
    assert not list(elsewhere.iterdir()) and (tmp_path / "b" / "audit").read_text() == "mine"


def test_a_report_cannot_name_files_outside_for_removal(sound: Written, tmp_path: Path) -> None:
    outside = tmp_path / "thesis.txt"
    outside.write_text("years of work")
    folder = tmp_path / "build"
    (folder / "audit").mkdir(parents=True)
    outward = {
        name: hashlib.sha256(b"years of work").hexdigest()
        for name in (
            "../thesis.txt",
            "audit/../../thesis.txt",
            str(outside),
        )
    }
    report = msgspec.structs.replace(sound.report, files=outward)
    (folder / "audit_report.json").write_text(json.dumps({"files": outward}))
    refuses("is not a marker of rbtc", gate.write, sound.report, folder, {})
    (folder / "audit_report.json").write_bytes(report.json())
    gate.write(sound.report, folder, {})
    assert outside.read_text() == "years of work"


def test_training_data_get_a_project_too(training: Path) -> None:
    found: dict[str, bytes] = {}
    builds.audit(training, files=found)
    assert {"gx/expectations/training_rows.json", "data_docs/validations/training_rows.html"} <= set(found)
    assert "judgments.jsonl" not in found
