"""Golden answers of logs that nobody reviewed: every table says how many, with and without them."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api

from ..own.shop import ORDERS
from ..own.test_hostile_files import outcome
from ..own.test_logs_import import call, made, said

REQUESTS = [
    "Please refund order 1042, it arrived broken.",
    "Where is order 7 at the moment?",
    "Look up 9 for me.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("unreviewed")
    (root / "orders.json").write_text(json.dumps(ORDERS))
    calls: list[dict[str, Any]] = [
        call("x", "refund_order", order_id=1042),
        call("x", "get_order", order_id=7),
        call("x", "get_order", order_id=9),
    ]
    lines = [{"messages": [said("user", one), made(two)]} for one, two in zip(REQUESTS, calls, strict=True)]
    (root / "prod.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    api.import_cases([root / "prod.jsonl"], root / "out", tools=[root / "orders.json"])
    cases = root / "out" / "cases.yaml"
    with cases.open("a") as file:
        file.write("- {id: mine, request: Thanks a lot for everything!, expect: no_call}\n")
    assert outcome("cases", "review", str(cases), "--accept", "prod-1-1", "--drop", "prod-3-1")[0] == 0
    types = ("--types", "same_name_A,same_name_B")
    assert outcome("build", "--cases", str(cases), *types, "--out", str(root / "bench"))[0] == 0
    for agent in ("oracle", "name-biased"):
        done = outcome("eval", str(root / "bench"), "--agent", agent, "--out", str(root / agent))
        assert done[0] == 0, done
        (root / f"{agent}.txt").write_text(done[1])
    return root


LINE = (
    "1 of 3 golden answers was taken from logs and never reviewed: "
    "clean 1.000 with them, 1.000 without; perturbed "
)


def test_the_book_names_the_open_ones_alone(folder: Path) -> None:
    book = json.loads((folder / "bench" / "own.json").read_text())
    assert book["unreviewed"] == ["own__prod-2-1"]
    report = json.loads((folder / "bench" / "build_report.json").read_text())
    assert report["known_issues"] == {"own": {"dropped": 1}}
    for agent in ("oracle", "name-biased"):
        assert json.loads((folder / agent / "run.json").read_text())["unreviewed"] == ["own__prod-2-1"]


def test_eval_and_summary_say_it(folder: Path) -> None:
    assert f"not reviewed: {LINE}" in (folder / "oracle.txt").read_text()
    shown = json.loads(outcome("summary", str(folder / "oracle"), "--json")[1])
    assert shown["unreviewed"]["answers"] == 1
    assert shown["unreviewed"]["lines"]["clean"] == {"over_all": 1.0, "without": 1.0}


def test_the_accuracy_without_them_is_that_of_the_other_rows(folder: Path) -> None:
    from robustbench_tc.eval.stats.runs import align, read
    from robustbench_tc.eval.stats.unreviewed import unreviewed

    run = read(folder / "name-biased")
    [outcomes] = align([run])
    found = unreviewed(run, outcomes)
    assert found is not None
    right = [
        (bool(one), clean_id == "own__prod-2-1")
        for one, clean_id, code in zip(
            run.rows["correct"], run.rows["clean_id"], run.rows["type_code"], strict=True
        )
        if code != "clean"
    ]
    kept = [one for one, is_open in right if not is_open]
    assert found.lines["perturbed"].over_all == sum(one for one, _ in right) / len(right)
    assert found.lines["perturbed"].without == sum(kept) / len(kept)


def test_gate_compare_and_report_say_it(folder: Path) -> None:
    files = ("--markdown", str(folder / "gate.md"), "--junit", str(folder / "gate.xml"))
    shown = outcome("gate", str(folder / "oracle"), *files)[1]
    assert LINE in shown
    assert "never reviewed" in (folder / "gate.md").read_text()
    assert "never reviewed" in (folder / "gate.xml").read_text()
    shown = outcome("compare", str(folder / "oracle"), str(folder / "name-biased"))[1]
    assert shown.count("not reviewed: ") == 2
    words = ("report", str(folder / "oracle"), str(folder / "name-biased"), "--out", str(folder / "report"))
    assert outcome(*words)[0] == 0
    for name in ("report.html", "report.md"):
        assert (folder / "report" / name).read_text().count("never reviewed") >= 2, name


def test_after_the_review_nothing_is_said_and_no_answer_is_asked_again(folder: Path) -> None:
    cases = folder / "out" / "cases.yaml"
    assert outcome("cases", "review", str(cases), "--accept", "prod-2-1")[0] == 0
    types = ("--types", "same_name_A,same_name_B")
    assert outcome("build", "--cases", str(cases), *types, "--out", str(folder / "again"))[0] == 0
    code, _, err = outcome("score", str(folder / "oracle"), "--dataset", str(folder / "again"))
    assert code == 0, err
    assert "never reviewed" not in outcome("summary", str(folder / "oracle"))[1]
    assert "unreviewed" not in json.loads((folder / "oracle" / "run.json").read_text())
