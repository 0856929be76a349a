"""Types beyond the core: audited like any other, and a type that the audit does not know fails by name."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.audits import report
from robustbench_tc.audits.expectations import gx
from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.audits.invariants.base import EQUAL_OFFERS
from robustbench_tc.audits.judgments import make_judges
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.builders.build import BuildSpec, build
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.schema import Sample

from ..builders.perturb.planted import defects_of
from ..conftest import nightly
from . import builds
from .builds import Row

EXTENSIONS = tuple(kind.code for kind in taxonomy.types("extension"))
PASSWORD = "My api_key is sk-" + "Zx8Qw3Er" * 5


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled samples with every type that this package can build by rule or has texts for."""
    folder = tmp_path_factory.mktemp("extended") / "robustbench-tc"
    spec = BuildSpec(profile="bundled", codes=tuple(kind.code for kind in taxonomy.types("all")))
    build(spec, folder, card=benchmark_card)
    return folder


@nightly
def test_a_build_with_every_extension_passes(extended: Path) -> None:
    report = builds.audit(extended)
    assert [(one.id, one.reason, one.failures[:2]) for one in report.blocking] == []
    assert {f"rows.{name}" for name in INVARIANTS} <= {one.id for one in report.checks}
    stated = {one.type_code: one for one in report.identifiability}
    assert stated["CD_AB_pref"].preference_stated == stated["CD_AB_pref"].rows > 0


def planted(rows: list[Row]) -> dict[str, str]:
    """A wrong gold, an empty gold and a password, each in a row of its own: what → the row's id."""
    wrong, empty, leaking = rows[0], rows[1], rows[2]
    if not any(wrong["golden_answers"]):  # nothing to call was right
        wrong["golden_answers"] = [[{"name": wrong["tools"][0]["name"], "parameters": {}}]]
    for call in wrong["golden_answers"][0]:
        call["parameters"] = {name: ["something else"] for name in call["parameters"]} | {"x": ["y"]}
    empty["golden_answers"] = [[]] if any(empty["golden_answers"]) else []
    leaking["messages"][-1]["content"] += f" {PASSWORD}"
    return {"wrong": wrong["id"], "empty": empty["id"], "leaking": leaking["id"]}


def failing(report: AuditReport) -> Callable[[str, str], bool]:
    """Whether a check failed and names that row."""
    found = {one.id: [failure.where for failure in one.failures] for one in report.blocking}
    return lambda check, row: row in found.get(check, [])


GENERAL = 3
"""Rows of a type, at its beginning, that `planted` spoils."""


class Damaged(NamedTuple):
    report: AuditReport
    planted: dict[str, dict[str, str]]
    """Type → what → the row's id."""
    own: dict[str, dict[str, str]]
    """Type → check that has to see the type's own defect → the row's id."""


@pytest.fixture(scope="module")
def damaged(extended: Path, tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    """Defects in rows of every extension at once: one audit for all of them."""
    folder = builds.copy(extended, tmp_path_factory.mktemp("damaged") / "robustbench-tc")
    clean = {row["clean_id"]: msgspec.convert(row, Sample) for row in builds.rows(folder, taxonomy.CLEAN)}
    general: dict[str, dict[str, str]] = {}
    own: dict[str, dict[str, str]] = {}
    for code in filter(lambda code: (folder / code).is_dir(), EXTENSIONS):
        general[code] = builds.edit(folder, code, planted)
        own[code] = builds.edit(folder, code, partial(_own, code, clean))
    with pytest.MonkeyPatch.context() as patch:  # so many at once: show them all
        patch.setattr(report, "SHOWN", 10_000)
        patch.setattr(gx, "SHOWN", 10_000)
        return Damaged(builds.audit_rows(folder), general, own)


def _own(code: str, clean: dict[str, Sample], rows: list[Row]) -> dict[str, str]:
    """Plants each defect of the type in a row of its own, the first that it changes."""
    found: dict[str, str] = {}
    for check, spoil in defects_of(code):
        for row in (row for row in rows[GENERAL:] if row["id"] not in found.values()):
            sample = msgspec.convert(row, Sample)
            made = spoil(clean[sample.clean_id], sample)
            if made != sample:
                row.update(msgspec.to_builtins(made))
                found[check] = row["id"]
                break
    return found


def test_rows_of_extensions_without_a_defect_are_not_accused(damaged: Damaged) -> None:
    """By every check of rows: what a build of all extensions passes by night."""
    assert {f"rows.{name}" for name in INVARIANTS} <= {one.id for one in damaged.report.checks}
    spoilt = {row for rows in (*damaged.planted.values(), *damaged.own.values()) for row in rows.values()}
    of_rows = (one for one in damaged.report.checks if one.id.startswith(("rows.", "hygiene.")))
    assert {failure.where for one in of_rows for failure in one.failures} == spoilt


def test_defects_in_rows_of_an_extension_are_caught(damaged: Damaged, subtests: pytest.Subtests) -> None:
    for code in EXTENSIONS:
        with subtests.test(code):
            if code not in damaged.planted:
                assert taxonomy.get(code).rows.bundled == 0
                continue
            caught, rows = failing(damaged.report), damaged.planted[code]
            kind = taxonomy.get(code)
            if kind.no_call == "right":
                assert caught("rows.gold_is_there", rows["wrong"])
            else:
                # Another right answer is the type's own to check; some scorers read no schema.
                own = kind.ground_truth_changes and not EQUAL_OFFERS(kind)
                assert own or caught("rows.gold_is_the_clean_gold", rows["wrong"])
                assert "bfcl_v3" not in kind.sources or caught("rows.gold_passes_its_scorer", rows["wrong"])
            assert caught("rows.unit_finds_nothing", rows["wrong"])
            assert caught("rows.gold_is_there", rows["empty"])
            assert caught("rows.no_new_credential", rows["leaking"])
            assert len(damaged.own[code]) == len(defects_of(code))
            for check, row in damaged.own[code].items():
                assert caught(f"rows.{check}", row)


class Strangers(NamedTuple):
    report: AuditReport
    planted: dict[str, str]
    """What was planted in rows of the unknown type → the row's id."""
    rows: int


@pytest.fixture(scope="module")
def strangers(extended: Path, tmp_path_factory: pytest.TempPathFactory) -> Strangers:
    """A type that the audit does not know, and a config that is none of ours, in one build: one audit."""
    to = tmp_path_factory.mktemp("strangers") / "robustbench-tc"
    folder = builds.some_configs(extended, to, "clean", "CD_AB_pref", "known_issues")
    builds.copy(folder / "CD_AB_pref", folder / "my_type")
    builds.copy(folder / "known_issues", folder / "notes")

    def strange(rows: list[Row]) -> dict[str, str]:
        for row in rows:
            row["type_code"], row["id"] = "my_type", f"{row['clean_id']}::my_type"
        return planted(rows)

    rows = builds.edit(folder, "my_type", strange)
    return Strangers(builds.audit_rows(folder), rows, len(builds.rows(folder, "my_type")))


def test_a_type_that_the_audit_does_not_know_fails_and_its_rows_are_looked_at(strangers: Strangers) -> None:
    report, rows = strangers.report, strangers.planted
    caught = failing(report)
    assert caught("configs.known", "my_type")
    assert builds.find(report, "rows.type_is_audited").failed == strangers.rows
    assert caught("rows.gold_passes_its_scorer", rows["wrong"])
    assert caught("rows.gold_is_there", rows["empty"])
    assert caught("rows.no_new_credential", rows["leaking"])
    for name in ("unit_finds_nothing", "changes_only_what_its_type_may", "gold_is_the_clean_gold"):
        check = builds.find(report, f"rows.{name}")
        assert check.status == "failed" and "could not be checked" in check.failures[0].what


def test_a_config_that_is_none_of_ours_is_still_read(strangers: Strangers) -> None:
    assert failing(strangers.report)("configs.known", "notes")
    assert builds.find(strangers.report, "rows.decodes").status == "failed"


TRANSLATED = [
    ("Is the city archive open on Sundays?", "Ist das Stadtarchiv sonntags offen?", None, {}),
    (
        "A guide who speaks English would be best for us.",
        "Am besten wäre für uns ein Führer, der English spricht.",
        "Am besten wäre für uns ein Führer, der Englisch spricht.",
        {"English": "Englisch"},
    ),
    (
        "Cancel my appointment C-5521 and tell me which slots dermatology has open on 2027-02-08.",
        "Sag meinen Termin C-5521 ab und nenne mir, was dermatology am 2027-02-08 noch frei hat.",
        "Sag meinen Termin C-5521 ab und nenne mir, was die Hautklinik am 2027-02-08 noch frei hat.",
        {"dermatology": "Hautklinik"},
    ),
    (
        "Make it 19.5 degrees in the nursery.",
        "Stelle die Temperatur im nursery auf 19.5 Grad.",
        "Stelle die Temperatur im Kinderzimmer auf 19.5 Grad.",
        {"nursery": "Kinderzimmer"},
    ),
]


def test_types_of_a_language_that_no_module_states_pass_the_gate(tmp_path: Path) -> None:
    """With texts and judgments of one's own, and a wrong map in a row of theirs is caught."""
    texts, judgments = [], []
    for number, (asked, kept, full, surfaces) in enumerate(TRANSLATED):
        key = {"clean_id": str(number), "lang": "de"}
        texts.append({**key, "input": asked, "partial": kept, "full": full, "value_map": surfaces})
        variants = ("partial", "full") if full else ("partial",)
        judgments += [{**key, "variant": variant, "score": 5} for variant in variants]
    for name, lines in (("translations", texts), ("translation_judgments", judgments)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    types = ("language_de", "language_full_de")
    spec = BuildSpec(
        profile="bundled",
        codes=(*taxonomy.codes(), *types),
        generators=("recorded", *(f"{code}=recorded:{tmp_path}" for code in types)),
        allow_missing=True,
    )
    folder = tmp_path / "robustbench-tc"
    build(spec, folder, card=benchmark_card)
    judge = make_judges(f"recorded:{tmp_path}", tmp_path / "store", None, folder)
    report = builds.audit(folder, judge=judge)
    assert [(one.id, one.reason, one.failures[:2]) for one in report.blocking] == []
    scored = {one.type_code: one.n for one in report.paraphrase if one.type_code in types}
    assert scored == {"language_de": 4, "language_full_de": 2}  # a tool says "English" too

    def spoil(rows: list[Row]) -> str:
        (entry,) = (change for change in rows[0]["changes"] if change["path"] == "/value_map")
        entry["after"] = {"Dublin": next(iter(entry["after"].values()))}
        return str(rows[0]["id"])

    row = builds.edit(folder, "language_full_de", spoil)
    assert failing(builds.audit_rows(folder))("rows.unit_finds_nothing", row)
