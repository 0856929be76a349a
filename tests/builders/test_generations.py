"""`generations.jsonl`: everything a generator said is kept, and a build can be made again from it alone."""

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.api.building import build_release
from robustbench_tc.builders import generations
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.generate import Settings
from robustbench_tc.builders.generations import Recording, replay
from robustbench_tc.builders.generators.base import Answering, Refuse, check
from robustbench_tc.builders.perturb import Text, TextRequest, refuse_text
from robustbench_tc.builders.rebuild import rebuild
from robustbench_tc.dataset_cards.render import benchmark_card

from ..loopback import Fault, LoopbackServer, error_body
from ..refusals import refuses
from ..trees import Tree, tree
from .test_generate import obedient

TEXTS = ("query_paraphrase", "redundant")


def again(folder: Path, out: Path, sources: Path | None = None) -> Tree:
    rebuild(folder, out, sources=sources, card=benchmark_card)
    return tree(out)


def kept(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "generations.jsonl").read_text().splitlines()]


# --- whole builds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        BuildSpec(profile="bundled"),
        BuildSpec(profile="bundled", seed=3, codes=("redundant", "CD_AB_pref")),
        BuildSpec(profile="bundled", codes=("TD",)),
        BuildSpec(profile="bundled", generators=("none",)),
        BuildSpec(profile="bundled", generators=("recorded", "redundant=none")),
    ],
    ids=["all", "extension", "rules", "none", "one-none"],
)
def test_a_build_is_made_again_byte_for_byte_without_a_generator(spec: BuildSpec, tmp_path: Path) -> None:
    build_release(spec, tmp_path / "one")
    assert again(tmp_path / "one", tmp_path / "two") == tree(tmp_path / "one")


def test_so_is_the_real_one_from_its_sources_or_from_its_own_clean_rows(shared: Path, tmp_path: Path) -> None:
    codes = ("query_paraphrase", "redundant", "CD")
    build_release(BuildSpec(sources=shared / "sources", seed=5, codes=codes), tmp_path / "one")
    found = tree(tmp_path / "one")
    assert again(tmp_path / "one", tmp_path / "two", shared / "sources") == found
    assert again(tmp_path / "one", tmp_path / "three") == found


def moody(key: str) -> Any:
    """A model that refuses to copy values at first, fails for some texts, and repeats its caller's key."""
    seen: dict[str, int] = {}

    def answer(body: dict[str, Any]) -> Any:
        mark = re.search(r"TEXT-\w+", json.dumps(body["messages"]))
        assert mark is not None
        seen[mark.group()] = tries = seen.get(mark.group(), 0) + 1
        fate = int(mark.group()[-1], 16) % 4
        if fate == 0 and tries == 2:
            return Fault(400, error_body("no more"))
        if fate == 1 or (fate in (0, 2) and tries == 1):
            return f"No.\nI would rather not say. {key}"
        return obedient({"messages": body["messages"][:2]})

    return answer


def test_refused_answers_are_kept_with_their_reason_and_no_key_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-planted-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with LoopbackServer(moody(key)) as server:
        spec = BuildSpec(
            profile="bundled",
            codes=TEXTS,
            generators=(f"openai:tiny@{server.url}",),
            settings=Settings(store=tmp_path / "store.jsonl", timeout_s=5.0, max_retries=0),
            allow_missing=True,
        )
        report = build_release(spec, tmp_path / "one")
    lines = kept(tmp_path / "one")
    for kind in TEXTS:
        said = report.generators[kind]
        mine = [line for line in lines if line["kind"] == kind]
        assert [line["statistics"] for line in mine if "statistics" in line] == [said]
        refused = [line for line in mine if "refused" in line]
        assert len(refused) == sum(said["refused"].values()) and said["retried"] > 0
        assert all(line["output"] and line["refused"] for line in refused)
        assert len([line for line in mine if "output" in line]) == said["answered"] + len(refused)
    assert any(line.get("missing") == "no_answer" and "input" in line for line in lines), "after a refusal"
    assert not any(key.encode() in data for _, data in tree(tmp_path / "one").values())
    assert again(tmp_path / "one", tmp_path / "two") == tree(tmp_path / "one")


def test_a_builds_answers_serve_another_build(bundled: Path, tmp_path: Path) -> None:
    """`recorded:BUILD` gives the texts of that build, with the names of who wrote them."""
    for place in (bundled, bundled / "generations.jsonl"):
        spec = BuildSpec(profile="bundled", generators=(f"recorded:{place}",))
        build_release(spec, tmp_path / "two", force=True)
        one, two = tree(bundled), tree(tmp_path / "two")
        assert {n: b for n, b in one.items() if n.endswith(".parquet")} == {
            n: b for n, b in two.items() if n.endswith(".parquet")
        }
        assert not [line for line in kept(tmp_path / "two") if "refused" in line]


# --- the file -----------------------------------------------------------------------------------------


class Scripted(Answering):
    """A generator that answers from a script: per input the refused answers, then the outcome."""

    def __init__(self, script: dict[str, tuple[list[Any], Text | str]]) -> None:
        super().__init__("scripted@v1")
        self._script = script

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        refused, outcome = self._script[request.input]
        for answer in refused:
            self._statistics.refuse(request, answer, check(request, answer, refuse) or "it was too long")
        return outcome


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
"""NaN, infinities and lone surrogates among them: a model may say anything."""

outcomes = st.one_of(
    st.builds(Text, st.text("abc é\n", min_size=1).filter(str.strip), st.sampled_from(["a@v1", "recorded"])),
    st.sampled_from(["no_answer", "not_generated", "refused: unchanged", "refused: it was too long"]),
)


@given(st.dictionaries(st.text("xyz ", min_size=1), st.tuples(st.lists(json_values, max_size=3), outcomes)))
def test_what_was_kept_says_the_same_again(script: dict[str, tuple[list[Any], Any]]) -> None:
    asked = {r.key: r for text in script if (r := TextRequest(kind="query_paraphrase", input=text))}
    requests = list(asked.values())
    recording = Recording("query_paraphrase", Scripted(script))
    # Whether an accepted answer passes its check is the generator's matter; here everything does.
    answers = asyncio.run(recording.generate(requests, lambda request, answer: None))
    lines = list(recording.lines())
    path = Path(generations.NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda self: b"".join(lines))
        found = replay(path)["query_paraphrase"]
    second = Recording("query_paraphrase", found)
    assert asyncio.run(second.generate(requests, lambda request, answer: None)) == answers
    assert list(second.lines()) == lines
    assert second.statistics() == recording.statistics()


def test_a_text_is_asked_for_once() -> None:
    asked = TextRequest(kind="query_paraphrase", input="Any ferry?")
    recording = Recording("query_paraphrase", Scripted({"Any ferry?": ([], Text("A ferry?", "a@v1"))}))
    one, two = (asyncio.run(recording.generate([asked], refuse_text)) for _ in range(2))
    assert one == two and recording.statistics()["asked"] == 1


ANSWER = '{"kind":"query_paraphrase","input":"Any ferry?","output":"A ferry?","generator":"a@v1"}'
HEAD = '{"kind":"query_paraphrase","generator":"a@v1","statistics":{"asked":1},"missing":"no_answer"}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ANSWER, "line 1: not an answer for None"),
        (f"{HEAD}\n{HEAD}", "line 2: 'query_paraphrase' is not a type that begins here"),
        (HEAD.replace("query_paraphrase", "TD"), "line 1: 'TD' is not a type"),
        (f"{HEAD}\n{ANSWER.replace('query_', 'x_')}", "line 2: not an answer for 'query_paraphrase'"),
        (f"{HEAD}\n{ANSWER.replace('input', 'inputs')}", "line 2: Object contains unknown field"),
        (f"{HEAD}\n[", "line 2: "),
        ("[" * 100_000, "line 1: "),
        ("\xff", "line 1: "),
    ],
)
def test_a_line_that_does_not_fit_is_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "generations.jsonl"
    path.write_bytes(text.encode("latin-1"))
    refuses(re.escape(said), replay, path)


def test_an_accepted_answer_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "generations.jsonl"
    path.write_text(f"{HEAD}\n{ANSWER.replace('Any ferry?', 'Any ferry at 9?')}\n")
    asked = TextRequest(kind="query_paraphrase", input="Any ferry at 9?")
    refuses(
        "fails its check: lost digits 9",
        asyncio.run,
        replay(path)["query_paraphrase"].generate([asked], refuse_text),
    )


def test_a_build_without_its_answers_is_not_made_again(bundled: Path, tmp_path: Path) -> None:
    shutil.copytree(bundled, tmp_path / "one")
    (tmp_path / "one" / "generations.jsonl").write_text("")
    refuses("says nothing about realistic_typos", again, tmp_path / "one", tmp_path / "two")
    (tmp_path / "one" / "generations.jsonl").unlink()
    refuses(r"generations\.jsonl: No such file", again, tmp_path / "one", tmp_path / "two")
    assert not (tmp_path / "two").exists()
