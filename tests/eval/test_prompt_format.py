"""Asking in ToolRL's words: the bytes of its training prompts, from words that lie with the user."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import api
from robustbench_tc.builders.sources import rlla as source
from robustbench_tc.eval import inputs, models, read_reply, record, wire
from robustbench_tc.eval.journal import answer
from robustbench_tc.eval.prompts import rlla
from robustbench_tc.eval.prompts.rlla_form import CALL_THOUGHT, HISTORY, REPLY_THOUGHT, parse_system
from robustbench_tc.schema import Message, asked_hash

from ..builders import rlla_rows as made
from ..conftest import Rbtc
from ..loopback import LoopbackServer, reply
from ..refusals import refuses
from . import small

pytestmark = pytest.mark.usefixtures("new_folder")

WORDS = rlla.RllaPrompts(made.HEAD, made.TAIL)


def training(folder: Path, *systems: str, config: str = "full") -> Path:
    """Training data with these system texts, one row each."""
    rows = [
        {"prompt": [{"role": "system", "content": text}, {"role": "user", "content": made.user("Hello?")}]}
        for text in systems
    ]
    (folder / config).mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / config / "train-00000-of-00001.parquet")
    return folder


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return training(tmp_path / "words", made.system(made.FERRY), made.system(made.MUSHROOM, made.LIBRARY))


# --- the bytes ----------------------------------------------------------------------------------------


def test_toolrls_own_rows_are_asked_in_their_own_bytes(shared: Path) -> None:
    """User texts all; system texts where upstream wrote the parameters as the training data writes new ones.

    The others differ in the parameters alone: a schema does not say how upstream spelt a type.
    """
    rows = [
        row
        for row in source.read_rows(source.find_files(shared / "sources"))
        if isinstance(row, source.RllaRow)
    ]
    words = rlla.read_prompts(str(shared / "sources" / "toolrl"))
    assert {(row.registry.head, row.registry.tail) for row in rows} == {(words.head, words.tail)}
    same = 0
    for row in rows:
        system, user = words.messages(row.sample)
        assert (system["role"], user["role"]) == ("system", "user")
        assert user["content"] == row.sample.messages[0].content
        same += system["content"] == row.system
        found = parse_system(system["content"])
        assert (found.head, found.tail) == (row.registry.head, row.registry.tail)
        assert [(one.name, one.description) for one in found.tools] == [
            (one.name, one.description) for one in row.registry.tools
        ]
    assert (len(rows), same) == (480, 253)


def test_every_row_lists_its_registry_in_order_with_its_duplicates() -> None:
    for row in small.rows():
        system, user = WORDS.messages(row)
        found = parse_system(system["content"])
        assert (found.head, found.tail) == WORDS
        assert [(one.name, one.description) for one in found.tools] == [
            (one.name, one.description) for one in row.tools
        ]
        assert [list(one.properties) for one in found.tools] == [list(one.properties) for one in row.tools]
        said = row.messages[-1].content
        written = f"**Dialogue Records History**\n<user> {said} </user>"
        assert user["content"] == {"apibank": said}.get(row.source, written)


def test_a_system_text_in_full() -> None:
    system, _ = WORDS.messages(small.clean_rows()[0])
    assert system["content"] == (
        made.HEAD + "1. Name: geo_map.distance\nDescription: Distance between two towns in kilometres.\n"
        'Parameters: {"start": {"description": "The start.", "type": "string", "default": ""}, '
        '"stop": {"description": "The stop.", "type": "string", "default": ""}}\n'
        "2. Name: summit.height\nDescription: Height of a mountain.\n"
        'Parameters: {"mountain": {"description": "", "type": "string", "default": ""}, '
        '"unit": {"description": "", "type": "string", "default": ""}}' + made.TAIL
    )


def test_a_dialogue_of_several_messages_is_a_record_as_in_training() -> None:
    """Word for word the transcript of a made-up training row, the thought before the reply excepted."""
    _, wanted, _ = made.dialogue_row()
    call = '{"name":"findFerryTimes","parameters":{"harbour":"Naantali"}}'
    text = rlla.dialogue(
        [
            Message("user", "Which boats leave from Naantali this fine evening?"),
            Message("assistant", f"<tool_call>\n{call}\n</tool_call>"),
            Message("tool", '{"name": "findFerryTimes is a line"}'),
            Message("assistant", "findFerryTimes said so."),
            Message("user", "And which ones leave from Turku after eight in the morning?"),
        ]
    )
    wanted = wanted.replace("<think> x </think>", REPLY_THOUGHT)
    left, right = (one.replace(": ", ":").replace(", ", ",") for one in (text, wanted))
    assert left == right


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ([Message("tool", "12"), Message("user", "Hm?")], "<obs> 12 </obs>\n\n<user> Hm? </user>"),
        ([Message("user", "A"), Message("tool", "1"), Message("tool", "2")], "A </user>\n<obs> 1\n2 </obs>"),
        ([Message("assistant", "<tool_call>\nnot JSON\n</tool_call>")], "</tool_call> </response>"),
    ],
    ids=["a result first", "results of no call", "a call that is none"],
)
def test_dialogues_that_training_has_not(said: list[Message], end: str) -> None:
    text = rlla.dialogue(said)
    assert text.startswith(HISTORY) and text.endswith(end)


def test_a_reply_in_toolrls_form_is_read_alike_for_every_source() -> None:
    call = '{"name": "summit.height", "parameters": {"mountain": "Galdhoppen"}}'
    texts = {
        f"{CALL_THOUGHT}\n<tool_call>\n{call}\n{call}\n</tool_call>": 2,
        f"<think> summit.height(mountain='x') may do </think>\n<tool_call>\n{call}\n</tool_call>": 1,
        f"{REPLY_THOUGHT}\n<response> I cannot know how high it is. </response>": 0,
        "<response> Would you like summit.height or geo_map.distance? </response>": 0,
    }
    for row in small.clean_rows():
        for text, number in texts.items():
            found = read_reply.read_reply(
                text, None, source=row.source, tools=[small.HEIGHT, small.MAP], model="m", mode="prompt"
            )
            assert [one.name for one in found.calls] == ["summit.height"] * number, (row.source, text)


# --- a run --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["oracle", "gives-up-on-error", "first-tool"])
def test_reference_agents_get_their_known_verdicts(
    rbtc: Rbtc, release: Path, words: Path, agent: str
) -> None:
    """Each row is recognised by its prompt alone, and a transition error arrives as `<obs>`."""
    said = rbtc("eval", release, "--agent", agent, "--prompt-format", "rlla", "--rlla", words, "--no-score")
    assert said.code == 0, said.err
    folder = record.open_run(Path("runs", f"agent-{agent}-prompt-rlla"))
    assert folder.record.settings.prompt_version == WORDS.version
    done = api.evaluate(release, agent=agent, prompt_format="rlla", rlla=words)
    assert done.unexpected == [] and done.folder.path == folder.path


def test_what_is_sent_and_what_a_run_keeps(rbtc: Rbtc, release: Path, words: Path) -> None:
    call = '<tool_call>\n{"name": "summit.height", "parameters": {"mountain": "Galdhoppen"}}\n</tool_call>'
    row = "bfcl_v3__made_1::transient_rate_limit"
    options = ("--model", "m", "--prompt-format", "rlla", "--ids", row, "--out", "run")
    with LoopbackServer(lambda body: reply(call)) as server:
        asked = ("eval", release, "--no-probe", *options, "--base-url", server.url)
        assert rbtc(*asked, "--rlla", words).code == 0
        first, second = server.bodies
        again = rbtc(*asked, "--rlla", words)  # nothing is left to ask
        assert again.code == 0 and len(server.bodies) == 2
        other = training(Path("other"), made.system(made.FERRY).replace("Mind", "Heed"))
        refused = rbtc(*asked, "--rlla", other)
        ours = ("eval", release, "--no-probe", "--model", "m", "--mode", "prompt", "--ids", row)
        plain = rbtc(*ours, "--out", "run", "--base-url", server.url)
    sample = next(one for one in inputs.load_samples(str(release)).rows if one.id == row)
    assert first["messages"] == WORDS.messages(sample)
    assert "tools" not in first and "tools" not in second
    assert second["messages"][2:] == [
        {"role": "assistant", "content": call},
        {"role": "user", "content": f"<obs> {sample.injected_error} </obs>"},
    ]
    folder = record.open_run(Path("run"))
    settings = folder.record.settings
    assert settings.mode == "prompt" and settings.prompt_version.startswith("rlla-1-")
    kept = "".join(path.read_text("utf-8") for path in Path("run").glob("*.json*"))
    assert made.HEAD.split("\n")[0] not in kept and "Mind the goal" not in kept
    with folder.journal() as journal:
        assert answer(journal, settings.key(asked_hash(sample), 0, 2)) is not None
    for said, there, here in ((refused, "rlla-1-", "rlla-1-"), (plain, "rlla-1-", "2-d6")):
        (line,) = said.err.strip().splitlines()[-1:]
        assert said.code == 1 and "run holds a run with other settings: prompt_version:" in line
        assert there in line and f'"{here}' in line
    shown = rbtc("show", "run", f"{row.partition('::')[0]}::transient_rate_limit")
    assert shown.code == 0 and f"asked in other words than this package's ({WORDS.version})" in shown.out
    assert "asked (system)" not in shown.out


def test_a_model_of_the_table_that_calls_natively_is_asked_in_words(release: Path, words: Path) -> None:
    """Not in the mode that the table has for it: the words are those of prompt mode."""
    name = next(one for one, entry in models.models().items() if entry.mode == "fc")
    with LoopbackServer(lambda body: reply("none")) as server:
        done = api.evaluate(
            release, model=name, base_url=server.url, ids="bfcl_v3__made_1::clean", prompt_format="rlla",
            rlla=words, out=words.parent / "table", probe=False,
        )  # fmt: skip
    assert done.folder.record.settings.mode == "prompt"
    assert server.bodies[0]["messages"][0]["content"].startswith(made.HEAD)


def test_native_requests_are_what_they_were() -> None:
    """The words of prompt mode change nothing in fc mode."""
    for row in small.rows():
        assert wire.first(row, "fc", WORDS) == wire.first(row, "fc")


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--prompt-format", "rlla"), "name training data that holds them with --rlla"),
        (("--rlla", "words"), "--rlla words: add --prompt-format rlla, or leave it out"),
        (("--prompt-format", "rlla", "--rlla", "words", "--mode", "fc"), "leave --mode fc out"),
        (("--prompt-format", "rlla", "--rlla", "words", "--mode", "api"), "leave --mode api out"),
        (("--prompt-format", "toolrl", "--rlla", "words"), 'Invalid value "toolrl" for --prompt-format'),
        (("--prompt-format", "rlla", "--rlla", "none"), "no dataset at none: give a release folder"),
        (("--prompt-format", "rlla", "--rlla", "empty"), "--rlla empty: no training rows there"),
    ],
)
def test_options_that_do_not_go_together(
    rbtc: Rbtc, release: Path, words: Path, options: tuple[str, ...], line: str
) -> None:
    Path("empty").mkdir()
    said = rbtc("eval", release, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", *options)
    assert said.code == (2 if "toolrl" in options else 1) and line in said.err.splitlines()[-1], said.err
    assert "Traceback" not in said.err and not Path("runs").exists()


def test_an_agent_of_ones_own_is_not_asked_in_words(rbtc: Rbtc, release: Path, words: Path) -> None:
    said = rbtc("eval", release, "--command", "cat", "--prompt-format", "rlla", "--rlla", words)
    assert (
        said.code == 1
        and said.err.strip() == "rbtc: --command already names what to evaluate: leave --prompt-format out"
    )


def test_a_benchmark_release_is_no_training_data(release: Path) -> None:
    refuses(r"no training rows there \(parquet with the column prompt\)", rlla.read_prompts, str(release))


def test_rows_that_disagree_or_are_of_another_form(tmp_path: Path) -> None:
    good = made.system(made.FERRY)
    for name in ("no system text", "no Parquet"):
        (tmp_path / name).mkdir()
    alone = pa.Table.from_pylist([{"prompt": [{"role": "user", "content": "Hello"}]}])
    pq.write_table(alone, tmp_path / "no system text" / "train.parquet")
    (tmp_path / "no Parquet" / "x.parquet").write_bytes(b"PAR1")
    deep = good.replace('"default": ""', '"default": ' + "[" * 100_000)
    for folder, line in (
        (
            training(tmp_path / "other words", good, good.replace("Decide", "Pick")),
            r"other words around the tools in .*row 2 than in .*row 1",
        ),
        (
            training(tmp_path / "no tools", good, "You are helpful."),
            "row 2: its system text does not list tools in ToolRL's form",
        ),
        (training(tmp_path / "deep", deep), "does not list tools in ToolRL's form"),
        (tmp_path / "no system text", "its prompt does not begin with a system text"),
        (tmp_path / "no Parquet", "not a readable Parquet file"),
    ):
        refuses(line, rlla.read_prompts, str(folder))


def test_several_configs_of_one_build_agree(tmp_path: Path) -> None:
    folder = training(tmp_path / "both", made.system(made.FERRY))
    training(tmp_path / "more", made.system(made.LIBRARY), config="retry")
    (tmp_path / "more" / "retry").rename(folder / "retry")
    assert rlla.read_prompts(str(folder)) == WORDS
