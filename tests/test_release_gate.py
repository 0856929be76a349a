"""`rbtc release` behind the real gate: it audits what it releases, and nobody's report but its own counts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import api
from robustbench_tc.api import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, marker
from robustbench_tc.release import sign
from robustbench_tc.release.verify import verify
from robustbench_tc.schema import dumps, loads

from .conftest import Done
from .released import MOMENT
from .test_verify import make_key, no_warning

pytest.importorskip("great_expectations", reason="needs the extra audit (make env)")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build") / "robustbench-tc"
    build_release(BuildSpec(profile="bundled"), folder)
    return folder


@pytest.fixture(scope="module")
def release(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    api.release(build, folder / "v1", version="1.0.0", created_at=MOMENT, trial=True)
    return folder / "v1"


@pytest.fixture
def copy(build: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(build, tmp_path / "robustbench-tc"))


def plant_a_wrong_answer(folder: Path) -> str:
    """A gold off by one in a clean row, in the report's checksums too: nothing but the checks can see it."""
    path = next((folder / "CD_AB").glob("*.parquet"))
    table = pq.read_table(path)
    rows = table.to_pylist()
    row = next(row for row in rows if loads(row["golden_answers"])[0][0]["parameters"])
    answers = loads(row["golden_answers"])
    answers[0][0]["name"] = "another_tool"
    row["golden_answers"] = dumps(answers)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    report = msgspec.json.decode((folder / marker.BUILD).read_bytes(), type=BuildReport)
    named = marker.hashes(folder, but=marker.BUILD)
    (folder / marker.BUILD).write_bytes(msgspec.structs.replace(report, files=named).json())
    return str(row["id"])


def test_the_audit_of_a_release_is_the_one_that_it_made(build: Path, release: Path) -> None:
    assert not (build / "audit_report.json").exists()  # nobody audited the build before
    frozen = manifest.read(release)
    report = json.loads((release / "audit_report.json").read_bytes())
    assert report["passed"] is True and report["name"] == "robustbench-tc"
    assert report["build"] == frozen.data_sha256
    assert frozen.gate is not None and frozen.gate.checks == len(report["checks"]) > 50
    assert (release / "audit_report.html").is_file()
    assert verify(release).intact


def test_a_green_report_of_somebodys_own_lets_nothing_through(
    copy: Path, release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    plant_a_wrong_answer(copy)
    for name in ("audit_report.json", "audit_report.html"):
        shutil.copyfile(release / name, copy / name)
    files = {path: manifest.entry(copy / path) for path in manifest.files_of(copy)}
    forged = json.loads((copy / "audit_report.json").read_text())
    forged["build"] = manifest.digest(manifest.data_files(files, "robustbench-tc"))
    (copy / "audit_report.json").write_text(json.dumps(forged))
    out = tmp_path / "out"
    code, said, err = rbtc("release", copy, "--version", "1.0.0", "--out", out, "--trial")
    assert code == 1 and said == "" and err.count("\n") == 1
    assert err.startswith(f"rbtc: the gate of {copy} is red (") and "partial" not in err
    assert not out.exists()


def test_a_red_report_of_somebodys_own_stops_nothing(copy: Path, release: Path, tmp_path: Path) -> None:
    forged = json.loads((release / "audit_report.json").read_text())
    (copy / "audit_report.json").write_text(json.dumps({**forged, "passed": False, "checks": []}))
    frozen = api.release(copy, tmp_path / "out", version="1.0.0", created_at=MOMENT, trial=True)
    ours, theirs = manifest.read(release), frozen
    assert ours.files == theirs.files


def test_a_text_that_nobody_judged_refuses_the_release_and_names_it(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robustbench_tc.builders.generators import recorded

    known = recorded.load_judgments()
    left_out = next(address for address, judged in known.items() if judged.judge == "hand-written")
    monkeypatch.setattr(
        recorded, "load_judgments", lambda path=None: {a: j for a, j in known.items() if a != left_out}
    )
    with pytest.raises(UserError) as refused:
        api.release(build, tmp_path / "out", version="1.0.0", created_at=MOMENT, trial=True)
    said = str(refused.value)
    assert f"nobody judged {known[left_out].kind} " in said and f"`rbtc audit {build} --judge" in said
    assert len(said.splitlines()) == 1 and not (tmp_path / "out").exists()


def test_the_starter_samples_are_never_published(
    build: Path, release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    code, _, err = rbtc("release", build, "--version", "1.0.0", "--out", tmp_path / "out")
    assert code == 1 and "starter samples, which are never published as the benchmark" in err
    code, _, err = rbtc("publish", release, "acme/robustbench-tc", "--dry-run")
    assert code == 1 and "starter samples, which are never published as the benchmark" in err


def test_a_release_says_where_it_goes_and_is_signed(
    build: Path, release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    key = make_key(tmp_path, "ours")
    out = tmp_path / "v2"
    done = rbtc(
        *("release", build, "--version", "v1.0.1", "--out", out, "--trial", "--json"),
        *("--previous", release, "--sign", key, "--repo", "acme/rtc", "--doi", "10.57967/hf/1234"),
    )
    assert done.code == 0 and done.err == ""
    frozen = manifest.read(out)
    assert json.loads(done.out)["version"] == "1.0.1" and frozen.repo == "acme/rtc"
    assert frozen.previous == manifest.Previous("1.0.0", manifest.read(release).data_sha256, "none")
    found = verify(out, key=key.with_suffix(".pub"))
    assert found.intact and found.witness == "key"
    card, metadata = (out / "README.md").read_text(), json.loads((out / "croissant.json").read_text())
    for fact in (
        "  version = {1.0.1},",
        "  doi     = {10.57967/hf/1234},",
        "  url     = {https://huggingface.co/datasets/acme/rtc}",
        'load_dataset("acme/rtc", "CD_AB", split="test", revision="v1.0.1")',
        "This version follows 1.0.0; its data differ from that by nothing.",
    ):
        assert fact in card
    assert metadata["url"] == "https://huggingface.co/datasets/acme/rtc"
    assert metadata["sameAs"] == "https://doi.org/10.57967/hf/1234"
    assert metadata["citeAs"].startswith("@misc{robustbench_tc_1_0_1,")
    code, _, err = rbtc("publish", out, "acme/elsewhere", "--dry-run")
    assert code == 1 and "starter samples" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--repo", "rtc"), "--repo 'rtc' is no name on the Hub"),
        (("--doi", "https://doi.org/10.1/x"), "is not a DOI"),
        (("--version", "1.0.0-.."), "is no semantic version"),
        (("--sign", "nowhere"), "no key at nowhere"),
        (("--previous", "nowhere"), "no dataset at nowhere"),
        (("--kind", "benchmark"), "unknown kind"),
    ],
)
def test_an_option_that_says_nothing_is_one_line_before_any_work(
    arguments: tuple[str, str], said: str, build: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    out = tmp_path / "out"
    more = () if arguments[0] == "--version" else ("--version", "1.0.0")
    code, text, err = rbtc("release", build, "--out", out, "--trial", *more, *arguments)
    assert code == 1 and text == "" and said in err and err.count("\n") == 1 and not out.exists()


def test_a_version_that_says_too_little_is_refused(
    build: Path, release: Path, copy: Path, tmp_path: Path
) -> None:
    def refused(folder: Path, version: str) -> str:
        with pytest.raises(UserError) as found:
            api.release(
                folder,
                tmp_path / "out",
                version=version,
                created_at=MOMENT,
                trial=True,
                previous=str(release),
            )
        return str(found.value)

    assert refused(build, "1.0.0") == "--version 1.0.0 does not follow 1.0.0: give 1.0.1"
    assert "does not follow 1.0.0" in refused(build, "0.9.0")
    plant_a_wrong_answer(copy)
    assert "the data changed by a minor step since 1.0.0, so give 1.1.0 or more" in refused(copy, "1.0.1")
    shutil.rmtree(copy / "CD_AB")
    assert "by a major step since 1.0.0, so give 2.0.0 or more" in refused(copy, "1.1.0")
    with pytest.raises(UserError, match="it is no release"):
        api.release(
            build, tmp_path / "x", version="1.0.1", created_at=MOMENT, trial=True, previous=str(build)
        )


def test_a_key_that_others_can_read_warns(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rbtc: Callable[..., Done]
) -> None:
    key = make_key(tmp_path, "open")
    key.chmod(0o644)
    monkeypatch.setattr(api, "release", lambda *a, **k: (_ for _ in ()).throw(UserError("stop here")))
    code, _, err = rbtc("release", build, "--version", "1.0.0", "--out", tmp_path / "out", "--sign", key)
    assert code == 1 and f"warning: others can read {key}: chmod 600 {key}" in " ".join(err.split())
    assert sign.private_key(make_key(tmp_path, "closed"), warn=no_warning)
