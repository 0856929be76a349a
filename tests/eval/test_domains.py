"""Drops by domain, and train × test: learners that know one domain and not another, with figures by hand."""

import json
from pathlib import Path

import pytest

from robustbench_tc import api, shown, taxonomy
from robustbench_tc.eval.agents import is_right
from robustbench_tc.eval.inputs import load_live, load_samples
from robustbench_tc.eval.report import content, page
from robustbench_tc.eval.stats import domains, evidence, runs
from robustbench_tc.train_recipes import recipe, rows as training

from ..conftest import Rbtc
from ..refusals import refuses
from . import small
from .live.playing import scores
from .live.test_live_stats import live
from .synthetic_runs import Verdict, clean_ids, coin, counted, pairs, write_run


def knows(*sources: str) -> Verdict:
    """A learner of one rule: whatever disturbs a row, it is right in the domains that it saw."""
    return lambda clean_id, code: code == taxonomy.CLEAN or clean_id.partition("__")[0] in sources


SOURCES = ("apibank", "bfcl_v3", "rotbench", "toolalpaca", "tooleyes")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("runs")
    return [
        str(write_run(root / "all", knows(*SOURCES), model="all")),
        str(write_run(root / "without=bfcl", knows("apibank", *SOURCES[2:]), model="some")),
        str(write_run(root / "coin", coin(3), model="coin")),
    ]


def test_a_learner_loses_where_it_was_not_trained_and_holds_elsewhere(folders: list[str]) -> None:
    named = [f"{folders[1]}/=bfcl_v3", "all=tooleyes"]
    read = [*map(runs.read_run, folders)]
    made = content.build(read, by="domain", held_out=named)
    whole, part, _ = (
        next(one for one in made.models if one.label == name) for name in ("all", "some", "coin")
    )
    assert (whole.held_out, part.held_out) == ("tooleyes", "bfcl_v3")
    assert [*part.domains] == [*whole.domains] == [*SOURCES]
    assert {name: one.drop.value for name, one in part.domains.items()} == {
        name: float(name == "bfcl_v3") for name in SOURCES
    }
    words = {"apibank": "holds", "tooleyes": "holds", "bfcl_v3": "loses"}
    few = dict.fromkeys(("rotbench", "toolalpaca"), "cannot tell")  # 21 samples bound no drop below 15 %
    assert {name: one.word for name, one in part.domains.items()} == words | few
    assert part.domains["bfcl_v3"].cases == 32 and part.domains["bfcl_v3"].drop.n == 32 * 22
    assert part.domains["tooleyes"].drop.n == 51 * 11  # it has no rows of same names and of prices

    long, matrix = made.domain_tables
    assert len(long.rows) == 3 * len(SOURCES) and matrix.columns == ("run", "trained without", *SOURCES)
    lines = {line[0]: line[1:] for line in matrix.rows}
    assert (lines["some"][0], lines["all"][0], lines["coin"][0]) == ("bfcl_v3", "tooleyes", domains.NOT_SAID)
    assert lines["some"][2] == part.domains["bfcl_v3"].drop
    assert [line[1] for line in long.rows if line[0] == "some"][1] == "bfcl_v3 (held out)"


def test_a_domain_says_what_a_run_of_its_rows_alone_says(folders: list[str], tmp_path: Path) -> None:
    run = runs.read_run(folders[2])
    found = domains.by_domain(run, counted(run))
    every = evidence.answer(run, counted(run)).lines["perturbed"]
    assert sum(one.cases for one in found.values()) == every.cases
    assert sum(one.drop.n for one in found.values()) == every.drop.n
    for name, one in found.items():
        mine = [pair for pair in pairs(clean_ids()) if pair[0].startswith(f"{name}__")]
        alone = runs.read_run(write_run(tmp_path / name, coin(3), mine))
        line = evidence.answer(alone, counted(alone)).lines["perturbed"]
        for field in ("cases", "right", "before", "after", "keeps"):
            assert getattr(one, field) == getattr(line, field), (name, field)
        ends = (one.drop.low, one.drop.value, one.drop.high)
        assert ends == pytest.approx((line.drop.low, line.drop.value, line.drop.high))
        assert line.drop.p is not None and line.drop.p <= one.p_holm <= min(1, 5 * line.drop.p)
        assert one.before - one.after == pytest.approx(one.drop.value) and one.why == ""


def test_missing_rows_let_no_domain_hold_and_a_domain_without_a_pair_is_left_out(tmp_path: Path) -> None:
    right = knows(*SOURCES)
    lost = write_run(
        tmp_path / "lost", lambda c, t: None if c == "apibank__level1_20" or c[:3] == "rot" else right(c, t)
    )
    run = runs.read_run(lost)
    found = domains.by_domain(run, counted(run))
    assert [*found] == ["apibank", "bfcl_v3", "toolalpaca", "tooleyes"]
    assert (found["apibank"].word, found["tooleyes"].word) == ("cannot tell", "holds")
    bare = write_run(tmp_path / "bare", right, [(one, "clean") for one in clean_ids()], model="bare")
    assert content.build([runs.read_run(bare)], by="domain").domain_tables == ()
    *_, matrix = content.build([run, runs.read_run(bare)], by="domain", allow_missing=True).domain_tables
    assert {line[0]: line[2:] for line in matrix.rows}["bare"] == (None,) * len(found)  # and is not left out


def test_the_tables_are_on_the_page_where_they_are_asked_for_and_words_are_held_to_the_runs(
    tmp_path: Path,
) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 2, "apibank": 2}))
    both = [write_run(tmp_path / name, knows("apibank"), rows, model=name) for name in ("a=b", "other")]
    made = api.report(both, by="domain", held_out=["a=b=bfcl_v3"])
    assert [one.held_out for one in made.models] == ["bfcl_v3", None]
    for text in (page.html(made), page.markdown(made), shown.plain(made.shown())):
        assert "Train × test" in text and "(held out)" in text and domains.NOT_SAID in text
    read = [*map(runs.read_run, both)]
    assert [table.name for table in content.build(read[:1], by="domain").domain_tables] == ["domains"]
    plain = content.build(read)
    assert plain.domain_tables == () and "By domain" not in page.markdown(plain)
    refuses("--held-out is for the tables of --by domain", content.build, read, held_out=["other=bfcl_v3"])
    for words, line in (
        (["bfcl_v3"], "'bfcl_v3': write RUN=DOMAIN"),
        (["other=bfcl"], r"domain of these runs 'bfcl'.*did you mean bfcl_v3"),
        (["othr=bfcl_v3"], r"held-out among these runs 'othr'.*did you mean other"),
        (["other=bfcl_v3", "other=apibank"], "names two domains of other"),
    ):
        refuses(line, content.build, read, by="domain", held_out=words)


def test_a_learner_of_worlds_knows_what_its_recipe_left_in(live_build: Path, tmp_path: Path) -> None:
    """Rows as `hold_out` chooses them are all that it learns from; its episodes are played in the worlds."""
    rows = {row.id: row for row in load_live(str(live_build)).rows}
    tasks = [
        one.clean_id
        for name in ("orders", "calendar")
        for one in rows.values()
        if one.world == name and one.clean
    ]
    few = [*tasks[:7], *tasks[-7:]]
    asked = [rows[f"{task}::{code}"] for task in few for code in ("clean", "live_transient_timeout")]
    for held_out, other in (("orders", "calendar"), ("calendar", "orders")):
        asks = recipe.read_recipe("grpo", ["data=live", f"hold_out={held_out}"])[0]
        seen = {training.parts(row)[0] for row in training.choose(str(live_build), asks).train}
        assert seen == {other}
        played = [
            one
            for agent, known in (("truthful", True), ("gives-up", False))
            for one in scores([row for row in asked if (row.world in seen) is known], agent)
        ]
        run = runs.read_run(live(tmp_path / held_out, played, model=held_out))
        (model,) = content.build([run], by="domain", held_out=[f"{held_out}={held_out}"]).models
        assert model.held_out == held_out and {*model.domains} == {held_out, other}
        assert model.domains[held_out].drop.value == 1 and model.domains[held_out].word == "loses"
        assert model.domains[other].drop.value == 0 and model.domains[other].word == "cannot tell"


def test_the_command_says_the_domains_of_bundled_rows(rbtc: Rbtc, tmp_path: Path) -> None:
    """What the agent has right is known from the gold alone (`is_right`)."""
    small.rows_of(tmp_path, ["CD", "transient_timeout"])
    release = str(tmp_path / "robustbench-tc")
    assert rbtc("eval", release, "--agent", "name-biased", "--out", tmp_path / "run").code == 0
    done = rbtc("report", tmp_path / "run", "--by", "domain", "--no-browser", "--out", tmp_path / "out")
    assert done.code == 0 and "By domain" in done.out and "Train × test" not in done.out
    [model] = json.loads((tmp_path / "out" / "report.json").read_bytes())["models"]
    rows = load_samples(release).rows
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    for source, found in model["domains"].items():
        mine = [row for row in rows if row.source == source and row.type_code != taxonomy.CLEAN]
        right = [is_right("name-biased", row, clean[row.clean_id]) for row in mine]
        assert (found["drop"]["n"], found["before"]) == (len(mine), 1.0)
        assert found["after"] == pytest.approx(sum(right) / len(mine))
        assert found["drop"]["value"] == pytest.approx(1 - found["after"])
    assert {*model["domains"]} == {row.source for row in rows} and model["held_out"] is None
