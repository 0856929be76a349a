"""`rbtc data amend`: a wrong golden answer becomes an erratum, and every row of its sample follows."""

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import api
from robustbench_tc.api.building import build_release
from robustbench_tc.builders import errata_files
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.errata_files import Erratum
from robustbench_tc.builders.plain import row_dict
from robustbench_tc.builders.rebuild import own_pool, rebuild
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, parquet
from robustbench_tc.release.amend import Amended, amend
from robustbench_tc.release.diff import configs_of
from robustbench_tc.schema import Call, Sample, dumps, record

from .conftest import Done
from .refusals import refuses
from .released import MOMENT, released, report_says, to_spoil

if find_spec("great_expectations") is None:  # only looked for: importing it takes seconds
    pytest.skip("needs the extra audit (make env)", allow_module_level=True)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build") / "robustbench-tc"
    build_release(BuildSpec(profile="bundled", seed=3), folder)
    return folder


@pytest.fixture(scope="module")
def release(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "v1"
    api.release(build, folder, version="1.0.0", created_at=MOMENT, trial=True)
    return folder


@pytest.fixture(scope="module")
def clean(build: Path) -> tuple[Sample, ...]:
    return own_pool(build).samples


def text_value(sample: Sample) -> list[tuple[str, list[Any]]]:
    """Parameters of its first golden call whose first accepted value is a text."""
    accepted = sample.golden_answers[0][0].parameters.items()
    return [(name, values) for name, values in accepted if isinstance(values[0], str) and values[0]]


def with_one_more(sample: Sample) -> errata_files.Answers:
    """Its golden answers, where one more value is right."""
    first = sample.golden_answers[0][0]
    name, values = text_value(sample)[0]
    more = {**first.parameters, name: [*values, f"{values[0]}!"]}
    answer = (msgspec.structs.replace(first, parameters=more), *sample.golden_answers[0][1:])
    return (answer, *sample.golden_answers[1:])


@pytest.fixture(scope="module")
def wrong(clean: tuple[Sample, ...]) -> Sample:
    """A sample whose golden answer turns out wrong."""
    return next(sample for sample in clean if sample.source == "bfcl_v3" and text_value(sample))


@pytest.fixture(scope="module")
def amended(release: Path, wrong: Sample, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Amended]:
    out = tmp_path_factory.mktemp("amended") / "robustbench-tc"
    done = amend(
        release,
        out,
        clean_id=wrong.clean_id,
        answers=with_one_more(wrong),
        reason="An exclamation mark is right too.",
        date="2026-11-21",
    )
    return out, done


def test_every_row_of_the_sample_follows_and_no_other_moves(
    release: Path, amended: tuple[Path, Amended], wrong: Sample
) -> None:
    out, done = amended
    changed = [change for config in done.diff.configs for change in config.changed]
    assert {change.id.split("::")[0] for change in changed} == {wrong.clean_id}
    assert all("golden_answers" in change.fields for change in changed)
    assert not any(config.added or config.removed for config in done.diff.configs)
    rows = {change.id for change in changed}
    everywhere = {
        row.id
        for code in configs_of(out)
        if code not in ("taxonomy", "evidence", "known_issues")
        for row in _samples(out, code)
        if row.clean_id == wrong.clean_id
    }
    assert rows == everywhere and len(rows) > 10
    assert done.diff.step == "minor" and done.next_version == "1.1.0"


def _samples(folder: Path, code: str) -> list[Sample]:
    return [record(row, Sample) for row in parquet.read_rows(parquet.shards(folder / code))]


def test_the_erratum_is_a_file_of_the_build_and_a_rebuild_gives_the_same_bytes(
    amended: tuple[Path, Amended], tmp_path: Path
) -> None:
    out, done = amended
    assert errata_files.read_errata(out / errata_files.NAME) == (done.erratum,)
    named = json.loads((out / "build_report.json").read_text())["files"]
    assert named[errata_files.NAME] == manifest.entry(out / errata_files.NAME).sha256
    rebuild(out, tmp_path / "again", sources=None, card=benchmark_card)
    for path in manifest.files_of(out):
        assert (tmp_path / "again" / path).read_bytes() == (out / path).read_bytes(), path


def test_an_amended_build_passes_the_gate_and_its_card_lists_the_erratum(
    release: Path, amended: tuple[Path, Amended], wrong: Sample, tmp_path: Path
) -> None:
    out, done = amended
    refuses(
        r"so give 1\.1\.0 or more",
        api.release,
        out,
        tmp_path / "x",
        version="1.0.1",
        created_at=MOMENT,
        trial=True,
        previous=str(release),
    )
    frozen = api.release(
        out, tmp_path / "v2", version="1.1.0", created_at=MOMENT, trial=True, previous=str(release)
    )
    assert errata_files.NAME in frozen.files and manifest.problems(tmp_path / "v2") == []
    card = (tmp_path / "v2" / "README.md").read_text()
    assert f"| {wrong.clean_id} | 2026-11-21 | An exclamation mark is right too. |" in card
    assert "its data differ from it by a minor step" in card

    # a second erratum of the same sample comes after the first
    again = amend(
        tmp_path / "v2",
        tmp_path / "third",
        clean_id=wrong.clean_id,
        answers=wrong.golden_answers,
        reason="It was right before.",
        date="2026-11-22",
    )
    assert errata_files.read_errata(tmp_path / "third" / errata_files.NAME) == (done.erratum, again.erratum)
    assert next(iter(_samples(tmp_path / "third", "clean"))).golden_answers is not None
    for path in (release / "clean").glob("*.parquet"):
        assert (tmp_path / "third" / "clean" / path.name).read_bytes() == path.read_bytes()


def test_without_sources_the_releases_own_clean_rows_serve(
    build: Path, wrong: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of another profile, on a machine that has no upstream files."""
    from robustbench_tc.builders.sources import upstream

    copy = Path(shutil.copytree(build, tmp_path / "full"))
    report_says(copy, profile="full")
    released(copy, tmp_path / "v1")
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "none"))
    monkeypatch.setattr(upstream, "resolve_root", _nowhere)
    done = amend(
        tmp_path / "v1",
        tmp_path / "v2",
        clean_id=wrong.clean_id,
        answers=with_one_more(wrong),
        reason="x",
        date="2026-11-21",
    )
    assert {c.id.split("::")[0] for config in done.diff.configs for c in config.changed} == {wrong.clean_id}


def _nowhere(sources: Path | None) -> Path:
    raise UserError("no sources")


def test_the_command_shows_the_diff_and_what_comes_next(
    release: Path, wrong: Sample, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    (tmp_path / "right.json").write_text(dumps(with_one_more(wrong)))
    arguments = [
        *("data", "amend", release, "--clean-id", wrong.clean_id, "--answers", tmp_path / "right.json"),
        *("--reason", "One\nmore\tvalue."),
    ]
    done = rbtc(*arguments, "--out", tmp_path / "a")
    assert done.code == 0 and done.err == ""
    assert "minor step: release it as 1.1.0 or more" in done.out
    assert f"rbtc release {tmp_path / 'a'} --version 1.1.0 --previous {release}" in " ".join(done.out.split())
    plain = json.loads(rbtc(*arguments, "--out", tmp_path / "b", "--json").out)
    assert plain["erratum"]["reason"] == "One more value." and plain["next_version"] == "1.1.0"
    assert plain["other_rows"] == [] and plain["diff"]["step"] == "minor"
    assert "exists" in rbtc(*arguments, "--out", tmp_path / "a").refusal


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (None, "no answers at"),
        ("", "holds no golden answers"),
        ("{}", "holds no golden answers"),
        ('[[{"name": 1}]]', "holds no golden answers"),
        ("[" * 100_000, "holds no golden answers"),
        ("[]", "a golden answer contains no call"),
        ("[[]]", "a golden answer contains no call"),
        ('[[{"name": "rm -rf", "parameters": {}}]]', "the golden tool 'rm -rf' is not listed"),
    ],
)
def test_answers_that_are_none_leave_no_build(
    answers: str | None, said: str, release: Path, wrong: Sample, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    if answers is not None:
        (tmp_path / "a.json").write_text(answers)
    out = tmp_path / "out"
    assert (
        said
        in rbtc(
            *("data", "amend", release, "--clean-id", wrong.clean_id, "--answers", tmp_path / "a.json"),
            *("--reason", "x", "--out", out),
        ).refusal
        and not out.exists()
    )


def test_what_cannot_be_amended_is_one_line(
    release: Path, build: Path, wrong: Sample, tmp_path: Path
) -> None:
    def refused(folder: Path, clean_id: str, answers: errata_files.Answers) -> str:
        found = refuses(
            ".",
            api.amend,
            folder,
            tmp_path / "out",
            clean_id=clean_id,
            answers=answers,
            reason="x",
            date="2026-11-21",
        )
        assert not (tmp_path / "out").exists()
        return found

    right = with_one_more(wrong)
    assert "unknown clean id" in refused(release, "nobody", right)
    assert "it already has these golden answers" in refused(release, wrong.clean_id, wrong.golden_answers)
    assert "it is not a release" in refused(build, wrong.clean_id, right)
    never = ((Call(wrong.golden_answers[0][0].name, {"no_such_parameter": ["x"]}),),)
    assert "its scorer refuses the new answer" in refused(release, wrong.clean_id, never)
    spoilt = to_spoil(release, tmp_path / "spoilt")
    (spoilt / "README.md").write_text("x")
    assert "is not as it was released" in refused(spoilt, wrong.clean_id, right)


def test_an_erratum_meets_its_own_answer_only(wrong: Sample, clean: tuple[Sample, ...]) -> None:
    right = with_one_more(wrong)
    one = Erratum(
        clean_id=wrong.clean_id,
        before=wrong.golden_answers,
        before_tool_index=wrong.gold_tool_index,
        after=right,
        reason="x",
        date="2026-11-21",
    )
    found = errata_files.amended(clean, [one])
    assert [a.clean_id for a in found] == [b.clean_id for b in clean]
    two = msgspec.structs.replace(one, before=right, after=with_one_more(found[clean.index(wrong)]))
    rows, twice = (
        [row_dict(sample) for sample in samples] for samples in (clean, errata_files.amended(found, [two]))
    )
    assert twice != rows and list(errata_files.reverted(twice, [one, two])) == rows
    assert list(errata_files.reverted(twice, [one])) == twice  # not the answer that this erratum gave
    refuses("it corrects other golden answers than the row has", errata_files.amended, found, [one])
    refuses(
        "it corrects other golden answers than the row has",
        errata_files.amended,
        clean,
        [msgspec.structs.replace(one, before_tool_index=7)],
    )
    refuses(
        "there is no clean row with this id",
        errata_files.amended,
        clean,
        [msgspec.structs.replace(one, clean_id="nobody")],
    )


@pytest.mark.parametrize("line", ["", "{}", '{"clean_id": "x"}', "\xff", "[" * 100_000])
def test_a_broken_list_of_errata_names_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / errata_files.NAME
    path.write_bytes(line.encode("latin-1") + b"\n")
    refuses("line 1: ", errata_files.read_errata, path)
