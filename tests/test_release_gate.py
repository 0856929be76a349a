"""`rbtc release` behind the real gate: it audits what it releases, and nobody's report but its own counts."""

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.api.building import build_release
from robustbench_tc.audits import audit_files
from robustbench_tc.audits.outcomes import Audited
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.generators.recorded import HAND_WRITTEN
from robustbench_tc.io import manifest
from robustbench_tc.release import sign
from robustbench_tc.release.verify import verify
from robustbench_tc.shown import plain

from .audits import builds
from .conftest import Done, nightly
from .loopback import LoopbackServer
from .refusals import refuses
from .released import MOMENT, report_says
from .test_verify import make_key, no_warning
from .trees import write

if find_spec("great_expectations") is None:  # only looked for: importing it takes seconds
    pytest.skip("needs the extra audit (make env)", allow_module_level=True)


@pytest.fixture
def copy(bundled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundled, tmp_path / "robustbench-tc"))


def plant_a_wrong_answer(folder: Path) -> None:
    """A gold off by one in a clean row, in the report's checksums too: nothing but the checks can see it."""

    def change(rows: list[builds.Row]) -> None:
        row = next(row for row in rows if row["golden_answers"][0][0]["parameters"])
        row["golden_answers"][0][0]["name"] = "another_tool"

    builds.edit(folder, "CD_AB", change)
    report_says(folder)


def test_the_audit_of_a_release_is_the_one_that_it_made(bundled: Path, trial: Path) -> None:
    assert not (bundled / "audit_report.json").exists()  # nobody audited the build before
    frozen = manifest.read_manifest(trial)
    report = json.loads((trial / "audit_report.json").read_bytes())
    assert report["passed"] is True and report["name"] == "robustbench-tc"
    assert report["build"] == frozen.data_sha256
    assert frozen.gate is not None and frozen.gate.checks == len(report["checks"]) > 50
    assert (trial / "audit_report.html").is_file()
    assert verify(trial).intact


def test_a_green_report_of_somebodys_own_lets_nothing_through(
    copy: Path, trial: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    plant_a_wrong_answer(copy)
    for name in ("audit_report.json", "audit_report.html"):
        shutil.copyfile(trial / name, copy / name)
    files = {path: manifest.entry(copy / path) for path in manifest.files_of(copy)}
    forged = json.loads((copy / "audit_report.json").read_text())
    forged["build"] = manifest.digest(manifest.data_files(files, "robustbench-tc"))
    (copy / "audit_report.json").write_text(json.dumps(forged))
    out = tmp_path / "out"
    code, said, err = rbtc("release", copy, "--version", "1.0.0", "--out", out, "--trial")
    assert code == 1 and said == "" and err.count("\n") == 1
    assert err.startswith(f"rbtc: the gate of {copy} is red (") and "partial" not in err
    assert not out.exists()


def test_a_red_report_of_somebodys_own_stops_nothing(copy: Path, trial: Path, tmp_path: Path) -> None:
    forged = json.loads((trial / "audit_report.json").read_text())
    (copy / "audit_report.json").write_text(json.dumps({**forged, "passed": False, "checks": []}))
    frozen = api.release(copy, tmp_path / "out", version="1.0.0", created_at=MOMENT, trial=True)
    ours, theirs = manifest.read_manifest(trial), frozen
    assert ours.files == theirs.files


def test_a_text_that_nobody_judged_refuses_the_release_and_names_it(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robustbench_tc.builders.generators import recorded

    known = recorded.load_judgments()
    left_out = next(address for address, judged in known.items() if judged.judge == "hand-written")
    monkeypatch.setattr(
        recorded, "load_judgments", lambda path=None: {a: j for a, j in known.items() if a != left_out}
    )
    said = refuses(
        ".", api.release, bundled, tmp_path / "out", version="1.0.0", created_at=MOMENT, trial=True
    )
    assert f"nobody judged {known[left_out].kind} " in said and f"`rbtc audit {bundled} --judge" in said
    assert len(said.splitlines()) == 1 and not (tmp_path / "out").exists()


BOTH = "query_paraphrase (1), redundant (2)"
"""A reworded text, and both new tools of the sample of which one is reworded: they were judged together."""


KEY = "sk-of-the-test-0123456789"


def answers_by_sample() -> Iterator[dict[str, Any]]:
    """The hand-written answers; new tools once for every sample that they were judged for."""
    judged: dict[tuple[str, str], list[str]] = {}
    for line in map(json.loads, (HAND_WRITTEN / "redundant_judgments.jsonl").read_bytes().splitlines()):
        judged.setdefault((line["tool"], line["description"]), []).append(line["clean_id"])
    for line in map(json.loads, (HAND_WRITTEN / "generations.jsonl").read_bytes().splitlines()):
        if line["kind"] != "redundant":
            yield line
            continue
        new = [(tool["name"], tool["description"]) for tool in line["output"]]
        for clean_id in dict.fromkeys(one for tool in new for one in judged.get(tool, ())):
            yield line | {"clean_id": clean_id, "output": [dict(tool) for tool in line["output"]]}


class Reworded:
    """A build with a text and new tools that the package has no judgment of, and a model that does."""

    def __init__(self, folder: Path, answers: Path) -> None:
        lines = list(answers_by_sample())
        text = next(line for line in lines if line["kind"] == "query_paraphrase")
        text["output"] = f"Hello! {text['output']}"
        tools = next(line for line in lines if line["kind"] == "redundant")
        tools["output"][0]["description"] += " It needs no account."
        self.pair = (text["input"], text["output"])
        self.tools = [tool["description"] for tool in tools["output"]]
        write(answers, {"generations.jsonl": "".join(f"{json.dumps(line)}\n" for line in lines)})
        build_release(BuildSpec(profile="bundled", generators=(f"recorded:{answers}",)), folder)
        self.folder = folder

    def judge(self, body: dict[str, Any]) -> str:
        asked = json.loads(body["messages"][-1]["content"])
        if "request" in asked:
            return json.dumps({"reason": "", "could_answer": asked["tool"]["description"] not in self.tools})
        equal = (asked["first"], asked["second"]) == self.pair
        return json.dumps({"reason": "", "score": 5 if equal else 1})


@pytest.fixture(scope="module")
def reworded(tmp_path_factory: pytest.TempPathFactory) -> Reworded:
    """Nobody judged it."""
    folder = tmp_path_factory.mktemp("reworded")
    return Reworded(folder / "robustbench-tc", folder / "answers")


@pytest.fixture(scope="module")
def judged_once(reworded: Reworded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same build, audited by the model from the command line."""
    place = tmp_path_factory.mktemp("judged")
    folder = Path(shutil.copytree(reworded.folder, place / "robustbench-tc"))
    with pytest.MonkeyPatch.context() as patch, LoopbackServer(reworded.judge) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        done = api.audit(folder, judge=f"tiny@{server.url}", store=place / "store.jsonl", full=True)
    assert isinstance(done, Audited) and done.exit_code == 0
    assert "(1 judgments are not pinned)" in plain(done.shown())
    return folder


@pytest.fixture
def judgments(judged_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of judgments in a copy of the judged build, in which files can be changed."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return Path(shutil.copytree(judged_once, tmp_path / "robustbench-tc")) / audit_files.JUDGMENTS


def test_a_release_replays_what_a_model_judged(
    reworded: Reworded, judgments: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    release = ("--version", "1.0.0", "--trial", "--out", tmp_path / "v1")
    done = rbtc("release", reworded.folder, *release)
    assert done.code == 1 and done.err.count("\n") == 1 and not (tmp_path / "v1").exists()
    assert f"{reworded.folder}: nobody judged {BOTH}: run `rbtc audit" in done.err
    shutil.rmtree(judgments.parent / "gx")  # a release makes what lies beside them by itself
    done = rbtc("release", judgments.parents[1], *release)
    assert done.code == 0
    count = len([path for path in (tmp_path / "v1").rglob("*") if path.is_file()])
    assert f": {count} files in " in done.out and f"all {count} files" in rbtc("verify", tmp_path / "v1").out
    assert (tmp_path / "v1" / audit_files.JUDGMENTS).read_bytes() == judgments.read_bytes()
    report = json.loads((tmp_path / "v1" / "audit_report.json").read_bytes())
    assert {name: manifest.entry(tmp_path / "v1" / name).sha256 for name in report["files"]} == report[
        "files"
    ]
    assert report["redundant"]["pinned"] == report["redundant"]["asked"] - 2
    card = (tmp_path / "v1" / "README.md").read_text()
    for code, count in (("query_paraphrase", 1), ("redundant", 2)):
        assert f"- Not pinned: {count} of the judgments of {code} (by hand-written+tiny)." in card


def without(judgments: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    lines = [line for line in judgments.read_text().splitlines() if not wanted(json.loads(line))]
    assert len(lines) < len(judgments.read_text().splitlines())
    judgments.write_text("".join(f"{line}\n" for line in lines))


def edit(judgments: Path, wanted: Callable[[dict[str, Any]], object], **change: object) -> None:
    lines = [json.loads(line) for line in judgments.read_text().splitlines()]
    chosen = [line for line in lines if wanted(line)]
    assert chosen
    for line in chosen:
        line |= change
    judgments.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def of_the_model(line: dict[str, Any]) -> bool:
    return line["judge"] == "tiny" and not line.get("canary")


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda path: without(path, of_the_model), f"nobody judged {BOTH}"),
        # What else can be edited test_paraphrase.py plants by day.
        pytest.param(
            lambda path: edit(path, of_the_model, pinned=True), f"nobody judged {BOTH}", marks=nightly
        ),
        pytest.param(
            lambda path: edit(path, of_the_model, judge="recorded"),
            "nobody judged query_paraphrase (1)",
            marks=nightly,
        ),
        pytest.param(
            lambda path: without(path, lambda line: line.get("canary", False)),
            "red (paraphrase.canaries",
            marks=nightly,
        ),
        (
            lambda path: edit(path, lambda line: line.get("pinned") and line["kind"] != "redundant", score=3),
            "paraphrase.stored_judgments",
        ),
        (lambda path: edit(path, of_the_model, judge="<b>tiny</b>"), "it is not one judgment"),
        (lambda path: path.write_text("[]"), "line 1: "),
        pytest.param(lambda path: path.unlink(), f"nobody judged {BOTH}", marks=nightly),
    ],
    ids=[
        "left out",
        "called pinned",
        "called recorded",
        "no canaries",
        "contradicting",
        "a name with HTML",
        "damaged",
        "gone",
    ],
)
def test_judgments_that_somebody_edited_let_nothing_through(
    tamper: Callable[[Path], object], said: str, judgments: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    tamper(judgments)
    assert (
        said
        in rbtc(
            "release", judgments.parents[1], "--version", "1.0.0", "--trial", "--out", tmp_path / "v1"
        ).refusal
    )
    assert not (tmp_path / "v1").exists()


def test_a_release_says_where_it_goes_and_is_signed(
    bundled: Path, trial: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    key = make_key(tmp_path, "ours")
    out = tmp_path / "v2"
    done = rbtc(
        *("release", bundled, "--version", "v1.0.1", "--out", out, "--trial", "--json"),
        *("--previous", trial, "--sign", key, "--repo", "acme/rtc", "--doi", "10.57967/hf/1234"),
    )
    assert done.code == 0 and done.err == ""
    frozen = manifest.read_manifest(out)
    assert json.loads(done.out)["version"] == "1.0.1" and frozen.repo == "acme/rtc"
    assert frozen.previous == manifest.Previous("1.0.0", manifest.read_manifest(trial).data_sha256, "none")
    found = verify(out, key=key.with_suffix(".pub"))
    assert found.intact and found.witness == "key"
    card, metadata = (out / "README.md").read_text(), json.loads((out / "croissant.json").read_text())
    for fact in (
        "  version = {1.0.1},",
        "  doi     = {10.57967/hf/1234},",
        "  url     = {https://huggingface.co/datasets/acme/rtc}",
        'load_dataset("acme/rtc", "CD_AB", split="test", revision="v1.0.1")',
        "This version follows 1.0.0; its data differ from it by nothing.",
    ):
        assert fact in card
    assert metadata["url"] == "https://huggingface.co/datasets/acme/rtc"
    assert metadata["sameAs"] == "https://doi.org/10.57967/hf/1234"
    assert metadata["citeAs"].startswith("@misc{robustbench_tc_1_0_1,")
    assert "starter samples" in rbtc("publish", out, "acme/elsewhere", "--dry-run").refusal


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--repo", "rtc"), "--repo 'rtc' is not a name on the Hub"),
        (("--doi", "https://doi.org/10.1/x"), "is not a DOI"),
        (("--version", "1.0.0-.."), "is not a semantic version"),
        (("--sign", "nowhere"), "no key at nowhere"),
        (("--previous", "nowhere"), "no dataset at nowhere"),
    ],
)
def test_an_option_that_says_nothing_is_one_line_before_any_work(
    arguments: tuple[str, str], said: str, bundled: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    out = tmp_path / "out"
    more = () if arguments[0] == "--version" else ("--version", "1.0.0")
    assert (
        said in rbtc("release", bundled, "--out", out, "--trial", *more, *arguments).refusal
        and not out.exists()
    )


def test_a_version_that_says_too_little_is_refused(
    bundled: Path, trial: Path, copy: Path, tmp_path: Path
) -> None:
    def refused(folder: Path, version: str) -> str:
        return refuses(
            ".",
            api.release,
            folder,
            tmp_path / "out",
            version=version,
            created_at=MOMENT,
            trial=True,
            previous=str(trial),
        )

    assert refused(bundled, "1.0.0") == "--version 1.0.0 does not follow 1.0.0: give 1.0.1"
    assert "does not follow 1.0.0" in refused(bundled, "0.9.0")
    plant_a_wrong_answer(copy)
    assert "the data changed by a minor step since 1.0.0, so give 1.1.0 or more" in refused(copy, "1.0.1")
    shutil.rmtree(copy / "CD_AB")
    assert "by a major step since 1.0.0, so give 2.0.0 or more" in refused(copy, "1.1.0")
    refuses(
        "it is not a release",
        api.release,
        bundled,
        tmp_path / "x",
        version="1.0.1",
        created_at=MOMENT,
        trial=True,
        previous=str(bundled),
    )


def test_a_key_that_others_can_read_warns(bundled: Path, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    key = make_key(tmp_path, "open")
    key.chmod(0o644)
    code, _, err = rbtc("release", bundled, "--version", "1.0.0", "--out", tmp_path / "out", "--sign", key)
    assert code == 1 and f"warning: others can read {key}: chmod 600 {key}" in " ".join(err.split())
    assert sign.private_key(make_key(tmp_path, "closed"), warn=no_warning)
