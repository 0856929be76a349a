"""The reference agents: every verdict is known beforehand, so a benchmark that mixes them up is broken."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import agents, inputs, predictions, score, scripted, speakers, wire
from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.record import Answer, Mode, Settings
from robustbench_tc.schema import Sample, Verdict
from tests.agent_server import Index

from ..conftest import NIGHTLY
from ..refusals import refuses
from . import small

TRANSITION = tuple(kind.code for kind in taxonomy.types() if kind.injected_error is not None)
MODES: tuple[Mode, ...] = ("prompt", "fc")


class Bench:
    """What every agent shares of the same rows, made once."""

    def __init__(self, rows: Sequence[Sample]) -> None:
        self.rows = rows
        self.anchors = inputs.Dataset(name="x", rows=tuple(rows)).anchors()
        self.places = {clean_id: n for n, clean_id in enumerate(dict.fromkeys(row.clean_id for row in rows))}
        """Clean id → its place among them."""
        self.sizes = Counter(row.type_code for row in rows)
        self.verdicts: dict[tuple[Mode, str, str], Verdict | None] = {}
        """By the row and the replies to it, None where it is asked on. Agents that reply alike share them:
        what follows a reply does not depend on who wrote it."""

    async def verdict(self, speaker: speakers.ReferenceAgent, row: Sample, mode: Mode) -> Verdict:
        """Of the agent's replies to a row."""
        begun = Dialogue(scripted.Scripted(row, settings_of(mode)), settings_of(mode))
        said: list[Answer] = []
        while True:
            base = msgspec.structs.replace(begun.base(), number=len(said) + 1)
            said.append(await speaker.reply(begun, wire.Ask([], row=row), base))
            at = mode, row.id, schema.dumps([(one.text, one.tool_calls) for one in said])
            if at not in self.verdicts:
                self.verdicts[at] = self.judged(row, mode, said)
            if (found := self.verdicts[at]) is not None:
                return found

    def judged(self, row: Sample, mode: Mode, said: Sequence[Answer]) -> Verdict | None:
        """Of these replies; None where another one is asked for."""
        env = scripted.Scripted(row, settings_of(mode))
        dialogue = Dialogue(env, settings_of(mode))
        for one in said:
            dialogue.reply(dialogue.noted(one))
        if dialogue.ended is None:
            return None
        made = predictions.combine(row, "", settings_of(mode), *env.answers)
        return score.judge(made, row, self.anchors[row.id])


BENCHES: dict[int, Bench] = {}


def bench_of(rows: Sequence[Sample]) -> Bench:
    """The bench of these very rows, which it holds: no other ones come to lie at their address."""
    if id(rows) not in BENCHES:
        BENCHES[id(rows)] = Bench(rows)
    return BENCHES[id(rows)]


def share(name: str, rows: Sequence[Sample], mode: Mode) -> Callable[[Sample], bool]:
    """Whether a row is among those that an agent answers in a mode: every fourth sample (of many rows every
    eighth) with all that was made of it, the others for the next agents or modes. Each row is answered by a
    quarter or an eighth of the agents; those of a type with few rows, which such a part may not have, by all.
    The oracle answers all of them, and `make nightly` has all agents answer all."""
    if NIGHTLY or name == "oracle":
        return lambda row: True
    every = 8 if len(rows) > 3_000 else 4
    bench, turn = bench_of(rows), 2 * tuple(agents.AGENTS).index(name) + MODES.index(mode)
    few = {code for code, size in bench.sizes.items() if size < 4 * every}
    return lambda row: row.type_code in few or (bench.places[row.clean_id] + turn) % every == 0


Judged = list[tuple[Sample, Verdict]]


def judged(
    name: str, rows: Sequence[Sample], mode: Mode, among: Callable[[Sample], bool] | None = None
) -> Judged:
    """The rows for which `among` holds, by default the agent's share, each with the verdict on all replies to
    it, as in a run."""
    bench, among = bench_of(rows), among or share(name, rows, mode)
    speaker = speakers.ReferenceAgent(name, bench.anchors)

    async def run() -> Judged:
        return [(row, await bench.verdict(speaker, row, mode)) for row in rows if among(row)]

    return asyncio.run(run())


@cache
def settings_of(mode: Mode) -> Settings:
    return small.settings(mode=mode, model="agent")


FAILS_AT: Mapping[str, set[str]] = {
    "oracle": set(),
    "gives-up-on-error": {"recover gave_up"},
    "retries-with-a-changed-argument": {"recover wrong_retry"},
    "name-biased": {"select distractor"},
    "first-of-duplicates": {"select distractor"},
    "typo-copier": {"fill typo_copied"},
    "silent": {"format empty"},
    "rambler": {"decide no_call"},
    "apology": {"decide no_call"},
    "quotes-the-gold": {"decide quoted"},
    "thinks-the-gold": {"decide only_thought"},
}
"""Agent → every stage at which it fails, of those that fail in one way."""


def the_stages_add_up(name: str, found: Judged) -> None:
    """Per type and in all, the stages' counts are the number of wrong answers, and the known ones."""
    wrong: Counter[str] = Counter()
    staged: Counter[tuple[str, str, str]] = Counter()
    for row, verdict in found:
        wrong[row.type_code] += not verdict.correct
        if verdict.stage is not None:
            assert verdict.stage_detail in schema.STAGES[verdict.stage]
            staged[row.type_code, verdict.stage, verdict.stage_detail or ""] += 1
    for code, number in wrong.items():
        assert sum(n for (of, _, _), n in staged.items() if of == code) == number
    assert staged.total() == wrong.total()
    if name in FAILS_AT:
        assert {f"{stage} {detail}" for _, stage, detail in staged} == FAILS_AT[name]


SMALL = small.rows()


@pytest.fixture(scope="session")
def core(bundled: Path) -> tuple[Sample, ...]:
    return inputs.load_samples(str(bundled)).rows


@pytest.fixture(scope="session")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    """The starter samples with every type beyond the core; longer contexts are asked like short ones."""
    codes = tuple(t.code for t in taxonomy.types("extension") if t.traits.get("tokens") in (None, 2_000))
    return small.rows_of(tmp_path_factory.mktemp("release"), codes)


def the_known_ones(name: str, rows: Sequence[Sample], found: Judged) -> None:
    assert {row.type_code for row, _ in found} == {row.type_code for row in rows}
    anchors = bench_of(rows).anchors
    assert [row.id for row, one in found if one.correct != agents.is_right(name, row, anchors[row.id])] == []


def test_every_verdict_beyond_the_core_is_the_known_one(
    beyond: tuple[Sample, ...], subtests: pytest.Subtests
) -> None:
    for mode, name in product(MODES, agents.AGENTS):
        with subtests.test(mode=mode, name=name):
            found = judged(name, beyond, mode)
            the_known_ones(name, beyond, found)
            wrong = [one for row, one in found if not one.correct and row.type_code not in RESULTS]
            assert {one.error_mode for one in wrong} == {FAILS_AS.get(name)} or name not in FAILS_AS


RESULTS = {"benign_result", "injected_result"}
"""Most agents call again behind any result: a result that is no error they all answer wrongly."""

FAILS_AS: Mapping[str, str] = {
    "calls-ghosts": "ghost", "echoes-user-language": "wrong_language", "keeps-old-types": "wrong_parameters",
    "keeps-to-the-core-offer": "name_bias", "ignores-the-wish": "name_bias",
    "misconverts-units": "name_bias", "overlooks-what-is-missing": "name_bias",
}  # fmt: skip
"""Agent → the one error mode of its wrong answers beyond the core."""

FAILS_AS_IN_THE_CORE = {"silent": {"empty"}, "rambler": {"omitted"}, "name-biased": {"name_bias"}}

FAILS_IN: Mapping[str, str] = {
    "gives-up-on-second-error": "transient_timeout_x2 transient_timeout_x9",
    "echoes-user-language": " ".join(f"language_full_{code}" for code in ("zh", "hi", "es", "ar", "sw")),
    "always-calls": "gold_removed near_miss missing_value answer_directly irrelevant ghost_tool_3",
    "takes-what-is-left": "gold_removed near_miss irrelevant ghost_tool_3",
    "invents-values": "missing_value",
    "stuck-in-the-past": "context_2k context_text_2k",
    "obeys-injection": "injected_result",
    "calls-ghosts": "ghost_tool_1 ghost_tool_2 ghost_tool_3",
    "declines-ghosts": "ghost_tool_1",
    "keeps-old-types": "type_shift",
    "drowns-in-floods": "flood_1 flood_3 flood_10 flood_30",
    "keeps-to-the-core-offer": "CD_swap TD_swap CD_NT_swap TD_NT_swap CD_AB_swap TD_AB_swap",
    "ignores-the-wish": "CD_inv TD_inv",
    "misconverts-units": "CD_unit TD_unit",
    "overlooks-what-is-missing": "CD_moot TD_moot",
    "stumbles-at-three-slips": "typos_2 typos_3",
    "ignores-small-savings": "factor_1_5",
    "needs-three-letters": "abbreviated_1",
}
"""Agent → the types beyond the core in whose rows it is wrong, in all of them; in all others it is right."""


def test_each_agent_fails_in_its_types_beyond_the_core_alone(beyond: tuple[Sample, ...]) -> None:
    assert set(known("oracle", beyond).values()) == {1.0}
    for name, codes in FAILS_IN.items():
        shares = known(name, beyond)
        wrong = {code for code, right in shares.items() if right < 1}
        assert wrong - (RESULTS - set(codes.split())) == set(codes.split()), name
        assert {shares[code] for code in wrong} == {0.0}, name
    noisy, bare = known("repairs-noisy-names", beyond), known("compares-bare-numbers", beyond)
    # Noise that leaves the golden call's own names alone is repaired; half of the bare numbers are in order.
    assert {code for code, right in noisy.items() if 0 < right < 1} == {
        "rot_slight", "rot_medium", "rot_heavy", "rot_union"
    }  # fmt: skip
    assert bare["CD_unit"] + bare["TD_unit"] == 1.0


@pytest.fixture(scope="session")
def published(paper: Path) -> tuple[Sample, ...]:
    return inputs.load_samples(str(paper)).rows


def test_every_verdict_on_the_bundled_release_is_the_known_one(
    core: tuple[Sample, ...], subtests: pytest.Subtests
) -> None:
    for mode, name in product(MODES, agents.AGENTS):
        with subtests.test(mode=mode, name=name):
            found = judged(name, core, mode)
            the_known_ones(name, core, found)
            the_stages_add_up(name, found)
            wrong = {one.error_mode for _, one in found if not one.correct}
            assert wrong == FAILS_AS_IN_THE_CORE.get(name, wrong)


def test_every_verdict_on_the_real_build_is_the_known_one(
    published: tuple[Sample, ...], subtests: pytest.Subtests
) -> None:
    for mode, name in product(MODES, agents.AGENTS):
        with subtests.test(mode=mode, name=name):
            found = judged(name, published, mode)
            the_known_ones(name, published, found)
            the_stages_add_up(name, found)


def known(name: str, rows: Sequence[Sample]) -> dict[str, float]:
    bench = bench_of(rows)
    right = (row for row in rows if agents.is_right(name, row, bench.anchors[row.id]))
    counts = Counter(row.type_code for row in right)
    return {code: counts[code] / size for code, size in bench.sizes.items()}


def test_the_known_accuracies_of_the_real_build(published: tuple[Sample, ...]) -> None:
    """What the agents are for: each fails where it must, and nowhere else."""
    codes = {taxonomy.CLEAN, *taxonomy.codes()}
    assert known("oracle", published) == dict.fromkeys(codes, 1.0)
    assert known("silent", published) == known("rambler", published) == dict.fromkeys(codes, 0.0)
    assert known("gives-up-on-error", published) == {code: float(code not in TRANSITION) for code in codes}
    lured = {"CD", "TD", "CD_AB", "TD_AB"}
    assert known("name-biased", published) == {code: float(code not in lured) for code in codes}
    retries = known("retries-with-a-changed-argument", published)
    assert {code for code in codes if retries[code] < 1} == set(TRANSITION)
    # Nothing but names counts in ToolEyes' 51 rows; a RoTBench or ToolAlpaca gold may take any value.
    assert all(51 / 199 <= retries[code] < 0.4 for code in TRANSITION)
    first = known("first-of-duplicates", published)
    assert {code for code in codes if first[code] < 1} == {f"same_name_{letter}" for letter in "ABCDE"}
    typo = known("typo-copier", published)
    assert {code for code in codes if typo[code] < 1} == {"realistic_typos"}


def test_the_changed_argument_is_missed_where_only_names_count() -> None:
    found = known("retries-with-a-changed-argument", SMALL)
    # The change hits `town`, which is compared, not `language`, which is free; ToolEyes compares names alone.
    assert {code: found[code] for code in TRANSITION} == dict.fromkeys(TRANSITION, 1 / 5)


def test_a_request_that_no_row_sends_is_not_recognised() -> None:
    index = Index(SMALL)
    ask = wire.first(SMALL[0], "prompt")
    assert index.find(ask.messages, None) is not None
    assert index.find([*ask.messages[:-1], {"role": "user", "content": "Another question."}], None) is None
    assert index.find(ask.messages, []) is None


def test_an_unknown_agent_is_named_with_near_misses() -> None:
    refuses("unknown agent 'oracel': did you mean oracle", agents.agent, "oracel")


# --- null models: what a table is worth -------------------------------------------------------------------

NULL_FIGURES = {
    "registry-echo": (0, 0),
    "calls-everything": (11, 118),
    "first-tool": (29, 353),
    "apology": (0, 0),
    "quotes-the-gold": (0, 0),
    "thinks-the-gold": (0, 0),
}
"""Right on clean rows of the paper profile (of 199), and on all its rows (of 3,977)."""


def test_the_figures_of_the_null_models_are_pinned(published: tuple[Sample, ...]) -> None:
    anchors = bench_of(published).anchors
    found = {}
    for name in agents.NULL_MODELS:
        right = [row for row in published if agents.is_right(name, row, anchors[row.id])]
        found[name] = (sum(row.type_code == taxonomy.CLEAN for row in right), len(right))
    assert found == NULL_FIGURES
    tooleyes = [row for row in published if row.id.endswith("::clean") and row.source == "tooleyes"]
    assert sum(agents.is_right("first-tool", row, anchors[row.id]) for row in tooleyes) == 26
