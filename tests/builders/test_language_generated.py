"""Another language through an endpoint: generated, accepted or refused with a reason, stored and replayed."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.builders.rebuild import rebuild
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.eval import inputs
from robustbench_tc.io import marker
from robustbench_tc.languages import value_map
from robustbench_tc.schema import Json

from ..loopback import LoopbackServer
from ..refusals import refuses

TYPES = ("language_de", "language_full_de")
STUBBORN = "Is the city archive open on Sundays?"
"""The model gives this request back unchanged, however often it is asked."""


def german(body: dict[str, Any]) -> str:
    """A model that puts words of its own before the text, and gives each value in words a form of its own."""
    system, asked = body["messages"][0]["content"], body["messages"][1]["content"]
    match = re.search(r"<(TEXT-\w+)>\n(.*)\n</\1>", asked, re.DOTALL)
    assert match is not None and "in German" in system
    text = match.group(2)
    said = text if text == STUBBORN else f"Bitte: {text}"
    if "Valdorf" in text and len(body["messages"]) <= 2:  # asked again, after a refusal, it answers
        said = ""
    if '"value_map"' not in system:
        return said
    values = [v for v in re.findall(r"^- (.*)$", asked.partition("<TEXT-")[0], re.M) if v.isalpha()]
    surfaces = {value: f"{value[::-1]}ung" for value in values if value not in "".join(set(values) - {value})}
    for value, surface in surfaces.items():
        said = said.replace(value, surface)
    found: dict[str, Json] = {
        "text": said,
        "value_map": {v: s for v, s in surfaces.items() if s in said},
        "unmapped": [],
    }
    return f"```json\n{json.dumps(found)}\n```"


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("german")
    asked = []
    with LoopbackServer(german) as server:
        named = [f"{code}=openai:tiny@{server.url}" for code in TYPES]
        options: dict[str, Any] = {
            "profile": "bundled",
            "types": TYPES,
            "generator": named,
            "store": place / "store.jsonl",
        }
        for name in ("one", "two"):
            api.build(place / name, **options)
            asked.append(server.count)
    assert asked[0] == asked[1] > 73, "the second build asks nothing: its answers are in the store"
    return place


def test_texts_are_accepted_or_refused_with_a_reason(built: Path) -> None:
    said: dict[str, Json] = msgspec.json.decode((built / "one" / marker.BUILD).read_bytes())
    kept, full = (said["generators"][code] for code in TYPES)
    assert kept["generator"] == full["generator"] == "tiny@v1"
    assert (kept["asked"], kept["answered"], kept["missing"]) == (73, 72, {"refused: unchanged": 1})
    assert kept["refused"] == {"unchanged": 3, "empty": 1} and kept["retried"] == 3
    assert (full["asked"], full["answered"], full["missing"]) == (43, 42, {"refused: lost value": 1})
    assert full["refused"] == {"lost value": 3, "not a JSON object with `text` and `value_map`": 1}
    skips = Counter((skip["type_code"], skip["reason"]) for skip in said["skipped"])
    assert skips["language_de", "refused: unchanged"] == 1
    assert skips["language_full_de", "refused: lost value 'bean'"] == 1
    assert skips["language_full_de", "no_value_to_translate"] == 46
    rows = {code: sum(said["rows"][code].values()) for code in TYPES}
    assert rows["language_de"] == 72
    assert rows["language_full_de"] + sum(n for (c, _), n in skips.items() if c == "language_full_de") == 73


def test_the_build_is_made_again_from_its_own_answers(built: Path, tmp_path: Path) -> None:
    rebuild(built / "one", tmp_path / "again", sources=None, card=benchmark_card)
    same = files(tmp_path / "again")
    for name, data in files(built / "one").items():
        if name.endswith((".parquet", ".jsonl")):
            assert same[name] == data, name


def test_every_reader_finds_the_configs_by_their_names(built: Path) -> None:
    data = inputs.load_samples(str(built / "one"))
    found = Counter(row.type_code for row in data.rows)
    assert set(found) == {"clean", *TYPES}
    assert all(value_map(row) for row in data.rows if row.type_code == "language_full_de")
    table = (built / "one" / "README.md").read_text()
    assert "German-Kept" in table or "language_de" in table
    assert [kind.code for kind in taxonomy.among(found)] == list(TYPES)


@pytest.mark.parametrize(
    ("types", "generator", "line"),
    [
        (["language_qq"], [], "unknown language 'qq'"),
        (["language_de"], ["language_qq=none"], "unknown model-written type 'language_qq'"),
        (["language_de"], [], "language_de: no answer for 73 of 73 texts"),
        (["language_de"], ["CD=none"], "CD is made by rule"),
    ],
)
def test_what_cannot_be_is_one_line(
    tmp_path: Path, types: list[str], generator: list[str], line: str
) -> None:
    refuses(line, api.build, tmp_path / "x", profile="bundled", types=types, generator=generator)


def test_nobody_writes_a_language_that_none_is_named_for(tmp_path: Path) -> None:
    found = api.build(tmp_path / "x", profile="bundled", types=TYPES, generator=["none"])
    assert Counter((skip.type_code, skip.reason) for skip in found.skipped) == {
        ("language_de", "not_generated"): 73,
        ("language_full_de", "not_generated"): 43,
        ("language_full_de", "no_value_to_translate"): 30,
    }
