"""The page of a live run: its figures are the scores', hostile text stays text, its size is bounded."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import schema
from robustbench_tc.api import evaluate, report, score
from robustbench_tc.eval.live.score import read_scores
from robustbench_tc.eval.live.show import Shown, show_episode
from robustbench_tc.eval.report import content, page, samples as drawing

from ...conftest import Done
from ...refusals import refuses
from .. import small
from . import purses

WORLDS = [str(purses.FILE)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("live")
    purses.write(root / "purses", purses.rows())
    evaluate(root / "purses", agent="blind-retrier", worlds=WORLDS, out=root / "run")
    return root / "run"


@pytest.fixture(scope="module")
def shown(run: Path) -> Shown:
    return show_episode(run, "purse_1::clean", worlds=WORLDS)


def test_a_run_that_is_not_scored_is_refused_in_a_line(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "scores.parquet").unlink()
    refuses(r"has no scores\.parquet: run `rbtc score", report, [copy], tmp_path / "out", worlds=WORLDS)
    assert not (tmp_path / "out").exists()


def test_the_page_shows_what_the_scores_say(run: Path, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    scores = read_scores(run)
    done = rbtc("report", run, "--out", tmp_path / "out", "--worlds", purses.FILE)
    assert done.code == 0, done.err
    html = (tmp_path / "out" / "report.html").read_text()
    [made] = schema.loads((tmp_path / "out" / "report.json").read_bytes())["models"]
    wrong = sum(one.success is False for one in scores)
    assert len(re.findall(r'class="mark (?:wrong|silent)"', html)) == wrong > 0
    assert html.count("<details id=") == len(scores)
    assert made["answer"]["sentence"] in html
    clean = [one.success for one in scores if one.type_code == "clean"]
    assert made["packs"][0]["rows"][0][:2] == ["clean", f"{sum(map(bool, clean))} / {len(clean)}"]
    assert {line["name"] for line in made["faults"]} >= {"all", "explicit", "implicit"}
    assert "Content-Security-Policy" in html and "https:" not in html


def test_live_runs_and_others_have_reports_of_their_own(run: Path, tmp_path: Path) -> None:
    release = small.write(tmp_path / "release", small.rows("CD"))
    rows = small.scored_run(tmp_path / "rows", release, "m", lambda row: {})
    for both in ([rows, run], [run, rows]):
        refuses("are runs of different datasets .*: report them apart", report, both)


def test_what_models_write_stays_text(run: Path, shown: Shown) -> None:
    one = msgspec.structs.replace(shown, model="<script>alert(1)</script>", error="<img src=x onerror=1>")
    hostile = "</style><script>alert(1)</script>"
    html = page.html(_named(run, hostile), drawing.Embedded(episodes={hostile: (one,)}))
    assert "<script>alert" not in html and "<img" not in html
    assert html.count("</style>") == 3


def test_what_steers_a_terminal_or_turns_a_line_is_shown(run: Path, shown: Shown, tmp_path: Path) -> None:
    evil = "a\x1b[2Jb\x07c\x9b31md\u202ee\u2066f"
    seen = r"a\x1b[2Jb\x07c\x9b31md\u202ee\u2066f"
    made = {"name": evil, "text": evil, "true_text": f"{evil}!", "arguments": {evil: evil}}
    replies = tuple(
        msgspec.structs.replace(
            reply, text=evil, steps=tuple(msgspec.structs.replace(call, **made) for call in reply.steps)
        )
        for reply in shown.replies
    )
    one = msgspec.structs.replace(shown, replies=replies, error=evil)
    page.write(_named(run, evil), tmp_path / "out", drawing.Embedded(notes=(evil,), episodes={evil: (one,)}))
    obeyed = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    for name in ("report.html", "report.json", "report.md"):
        assert not obeyed.search((tmp_path / "out" / name).read_text(encoding="utf-8")), name
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    calls = sum(len(reply.steps) for reply in replies)
    assert html.count(seen) >= 7 + len(replies) + 5 * calls and calls
    assert schema.loads((tmp_path / "out" / "report.json").read_bytes())["models"][0]["model"] == evil


def _named(run: Path, name: str) -> content.Report:
    """The report of the run under another name."""
    made = report([run])
    model = msgspec.structs.replace(made.models[0], label=name, model=name, run=name, card={name: name})
    return msgspec.structs.replace(made, models=(model,))


def test_of_many_episodes_wrong_and_faulted_ones_are_drawn_first() -> None:
    from tests.sql.live_runs import live_scores

    scores = [one for one in live_scores(3, tasks=40) if one.success is not None]
    episodes = [
        schema.Episode(
            id=one.id, clean_id=one.clean_id, type_code=one.type_code, world="orders", model="m", mode="fc",
            row_hash="", ended="done", replies=(),
        )
        for one in scores
    ]  # fmt: skip
    chosen = drawing.chosen(episodes, scores, 20)
    right = {one.id: one.success for one in scores}
    assert len(chosen) == 20
    assert not any(right[one.id] for one in chosen)
    assert [one.id for one in chosen] == [one.id for one in episodes if one in chosen]
    assert drawing.chosen(episodes, scores, 400) == episodes


def test_a_folder_of_someone_else_stays(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    refuses(".", report, [run], tmp_path, worlds=WORLDS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_in_a_notebook_they_work_too(run: Path, tmp_path: Path) -> None:
    import asyncio

    async def cell() -> None:
        assert score(run, worlds=WORLDS).folder.scores_path.is_file()
        assert show_episode(run, "purse_1::clean", worlds=WORLDS).scores.success
        assert report([run], tmp_path / "out", worlds=WORLDS)

    asyncio.run(cell())
