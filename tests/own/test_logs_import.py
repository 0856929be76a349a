"""`rbtc cases import`: what cases logs propose, and what stands in the files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.own import yaml
from robustbench_tc.own.cases_file import read_cases

from ..refusals import refuses
from .shop import CRM, ORDERS
from .test_hostile_files import outcome
from .test_logs_redact import MAKERS


def call(call_id: str | None, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def made(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


LOOP = [
    said("system", "You help. Write to help@shop.example for more."),
    said("user", "Refund 1042 to jane.doe@acme.de"),
    made(call("x1", "get_order", order_id=1042), call("x2", "crm_find", text="jane.doe@acme.de")),
    said("tool", "[]", tool_call_id="x2"),
    said("tool", '{"owner": "Jane.Doe@acme.de"}', tool_call_id="x1"),
    made(call("x3", "refund_order", order_id=1042)),
    said("tool", "done", tool_call_id="x3"),
    said("assistant", "Refunded."),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.json").write_text(json.dumps(ORDERS))
    (tmp_path / "crm.json").write_text(json.dumps(CRM))
    return tmp_path


def imported(folder: Path, *conversations: Any, out: str = "out", **more: Any) -> Path:
    log = folder / "prod.jsonl"
    log.write_text("".join(json.dumps({"messages": one}) + "\n" for one in conversations))
    tools = [folder / "orders.json", folder / "crm.json"]
    api.import_cases([log], folder / out, tools=tools, **more)
    return folder / out / "cases.yaml"


def entries(path: Path) -> list[dict[str, Any]]:
    found = yaml.load(path.read_bytes(), str(path)).data()
    assert isinstance(found, dict)
    return list(found["cases"])


def test_every_batch_of_calls_is_a_case_with_the_messages_before_it(folder: Path) -> None:
    first, second = entries(path := imported(folder, LOOP))
    assert [first["id"], second["id"]] == ["prod-1-1", "prod-1-2"]
    assert [one["role"] for one in first["messages"]] == ["system", "user"]
    assert [one["call"] for one in first["expect"]] == ["get_order", "crm:find"]
    email = "user2@example.com"  # the first one is of the system message
    assert first["expect"][1]["arguments"] == {"text": email}
    assert first["results"] == {"get_order": [{"owner": email}], "crm:find": [[]]}
    assert [one["role"] for one in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assert email in second["messages"][1]["content"]
    assert email in second["messages"][2]["tool_calls"][1]["function"]["arguments"]
    assert [one.get("tool_call_id") for one in second["messages"][3:]] == ["c2", "c1"]
    assert second["results"] == {"refund_order": ["done"]}
    read = read_cases(path)
    assert [case.reviewed for case in read.cases] == [False, False]
    assert not read.left_out


def test_a_conversation_without_calls_proposes_no_call(folder: Path) -> None:
    thanks = [said("user", "Thanks!"), said("assistant", "Welcome.")]
    (case,) = entries(imported(folder, thanks))
    assert case == {"id": "prod-1-1", "proposed_by": "prod:1", "request": "Thanks!", "expect": "no_call"}


def test_what_cannot_be_built_is_kept_and_marked(folder: Path) -> None:
    wrong = call("x", "refund_order")
    wrong["function"]["arguments"] = "{broken"
    path = imported(
        folder,
        [said("user", "Do it."), made(call("x", "fly_to_moon", speed=1))],
        [said("user", "Do it again."), made(wrong)],
        [said("user", "And again."), made(call("x", "refund_order", order_id="1042"))],
        [said("user", "Fine."), made(call("x", "refund_order", order_id=1042))],
    )
    problems = [case.get("problem", "") for case in entries(path)]
    assert "unknown tool 'fly_to_moon'" in problems[0]
    assert "not a JSON object" in problems[1]
    assert "the tool wants integer" in problems[2]
    assert problems[3] == ""
    assert [one["call"] for one in entries(path)[0]["expect"]] == ["fly_to_moon"]
    read = read_cases(path)
    assert [case.id for case in read.cases] == ["prod-4-1"]
    assert [(one.id, one.reason) for one in read.left_out] == [
        (f"prod-{n}-1", "not_buildable") for n in (1, 2, 3)
    ]


def test_what_looks_like_a_matcher_is_the_value_itself(folder: Path) -> None:
    (case,) = entries(
        imported(folder, [said("user", "Find."), made(call("x", "crm_find", text={"any": True}))])
    )
    assert case["expect"][0]["arguments"] == {"text": {"exact": {"any": True}}}


def test_names_do_not_come_into_a_work_tree_unseen(folder: Path) -> None:
    (folder / "tree" / ".git").mkdir(parents=True)
    log = [said("user", "I am Jane Doe of jane.doe@acme.de"), said("assistant", "Hello Jane.")]
    refuses(r"git work tree .*names of people .*--names-ok", imported, folder, log, out="tree/out")
    assert not (folder / "tree" / "out").exists()
    (folder / "names.txt").write_text("(?i)jane( doe)?\n")
    path = imported(folder, log, out="tree/out", redact=folder / "names.txt")
    assert entries(path)[0]["request"] == "I am redacted1 of user1@example.com"
    path = imported(folder, log, out="tree/other", names_ok=True)
    assert entries(path)[0]["request"] == "I am Jane Doe of user1@example.com"
    code, out, _ = outcome("cases", "import", str(folder / "prod.jsonl"), "--out", str(folder / "third"),
                           "--tools", str(folder / "orders.json"))  # fmt: skip
    assert code == 0 and "replaced by reserved values: email 1\n" in out
    assert "Names of people are not removed: they may stand in any of 2 messages.\n" in out


def written_otherwise(rng: random.Random, kind: str, original: str) -> str:
    """The same e-mail, number or key as somebody else writes it."""
    if kind == "email":
        return rng.choice([original.upper(), original.replace("@", "%40"), f"<{original}>", original.title()])
    if kind == "phone":
        return rng.choice(
            [original.replace(" ", "-"), original.replace("+", "00"), original.replace(" ", "")]
        )
    if kind in ("card", "iban"):
        return " ".join(original[at : at + 4] for at in range(0, len(original), 4))
    return original


@pytest.mark.parametrize("seed", range(12))
def test_no_original_is_in_any_byte_of_an_import(seed: int, folder: Path) -> None:
    rng = random.Random(f"import {seed}")
    conversations, originals = [], list[tuple[str, str]]()
    for _ in range(6):
        kind = rng.choice(list(MAKERS))
        original = MAKERS[kind](rng)
        originals.append((kind, original))
        other = written_otherwise(rng, kind, original)
        result = json.dumps({"to": [{original: other}], "log": f"sent to {other}; {original}, ok"})
        conversations.append(
            [
                said("system", f"You speak with {other}."),
                said("user", f"Find {original} for me"),
                made(call("x1", "crm_find", text=original), call(None, "no_such_tool", deep=[[other]])),
                said("tool", result, tool_call_id="x1"),
                said("tool", f"unknown: {other}"),
                made(call("x2", "add_note", customer=other, note=f"({original})")),
                said("tool", "ok", tool_call_id="x2"),
                said("assistant", f"{other} is done."),
                said("user", "Thanks!"),
                made(call("x3", "find", text="a")),
            ]
        )
    path = imported(folder, *conversations)
    text = path.read_text()
    flat = "".join(filter(str.isalnum, text)).lower()
    for kind, original in originals:
        assert original not in text
        if kind != "email":
            assert "".join(filter(str.isalnum, original)).lower() not in flat, (kind, original)
        else:
            assert original.partition("@")[0] not in text.lower()
    assert len(entries(path)) == 18
    first = entries(path)[0]
    named = first["expect"][0]["arguments"]["text"]
    assert first["messages"][1]["content"] == f"Find {named} for me"
    assert first["results"]["crm:find"][0]["to"][0].keys() == {named}


def test_the_tools_of_a_log_are_written_beside_the_cases(tmp_path: Path) -> None:
    log = tmp_path / "prod.jsonl"
    tools = [{"type": "function", "function": one} for one in ORDERS]
    log.write_text(json.dumps({"messages": LOOP[:3], "tools": [*tools, {"type": "web_search"}]}))
    made = json.loads(outcome("cases", "import", str(log), "--out", str(tmp_path / "out"), "--json")[1])
    assert made["files"] == ["tools.json", "cases.yaml"] and made["folder"] == str(tmp_path / "out")
    assert [tool.name for tool in read_cases(tmp_path / "out" / "cases.yaml").tools] == [
        one["name"] for one in ORDERS
    ]


def test_nothing_that_is_there_is_replaced(folder: Path) -> None:
    path = imported(folder, LOOP)
    before = path.read_bytes()
    refuses("is not empty", imported, folder, LOOP[:3])
    assert path.read_bytes() == before


def test_many_cases_are_several_files_that_can_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustbench_tc.own.logs import importing

    monkeypatch.setattr(importing, "BYTES", 2_000)
    conversations = [[said("user", f"Thanks {n} {'x' * 300}!"), said("assistant", "Yes.")] for n in range(12)]
    imported(folder, *conversations)
    files = sorted((folder / "out").glob("cases*.yaml"))
    assert len(files) > 1
    assert all(file.stat().st_size <= 2_000 for file in files)
    found = [case.id for file in files for case in read_cases(file).cases]
    assert sorted(found) == sorted(f"prod-{n}-1" for n in range(1, 13))


def test_a_gold_history_of_a_hand_written_case_still_ends_with_the_user(folder: Path) -> None:
    text = imported(folder, LOOP).read_text()
    (folder / "out" / "mine.yaml").write_text(text.replace('  proposed_by: "prod:1"\n', ""))
    refuses("messages end with the user's message", read_cases, folder / "out" / "mine.yaml")
