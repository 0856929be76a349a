"""Options that several verbs have: each is declared here once and means the same in all of them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .. import taxonomy
from ..errors import UserError
from ..option import Option, listed

if TYPE_CHECKING:
    from ..compute.parallel import Workers
    from ..schema import Json


def _urls(words: Sequence[str]) -> tuple[str, ...]:
    """Addresses, comma-separated or given several times."""
    return tuple(url for word in words for url in re.split(r",(?=https?://)", word))


def _ids(words: Sequence[str]) -> tuple[str, ...]:
    """The ids, those of files for every @FILE. Raises UserError."""
    found: list[str] = []
    for word in words:
        if not word.startswith("@"):
            found.append(word)
            continue
        try:
            found += [line for line in Path(word[1:]).read_text("utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{word}: {error}") from None
    return tuple(found)


def _price(words: Sequence[str]) -> tuple[float, float]:
    """`IN,OUT`. Raises UserError."""
    try:
        asked, answered = (float(part) for part in ",".join(words).split(","))
    except ValueError:
        raise UserError("write IN,OUT, two numbers per million tokens, as in 0.15,0.6") from None
    return asked, answered


def _pairs(words: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` each. Raises UserError, which shows no value."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not name.isprintable() or " " in name:
            raise UserError("write NAME=VALUE" + (" (not NAME: VALUE, as for curl)" if ":" in name else ""))
        if name in found:
            raise UserError(f"{name} is given twice")
        found[name] = value
    return found


def _template(words: Sequence[str]) -> "dict[str, Json]":
    """`NAME=VALUE` each, a value in JSON or as text. Raises UserError."""
    import msgspec

    found: dict[str, Json] = {}
    for name, value in _pairs(words).items():
        try:  # Python's names of the two: a text "False" would be true in a template
            found[name] = msgspec.json.decode({"True": "true", "False": "false"}.get(value, value))
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            found[name] = value
    return found


def _body(words: Sequence[str]) -> "dict[str, Json]":
    """A JSON object. Raises UserError."""
    import msgspec

    found: dict[str, Json] = {}
    for word in words:
        try:
            found |= msgspec.json.decode(word, type=dict)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise UserError(f"not a JSON object: {error}") from None
    return found


def _text(words: Sequence[str]) -> str:
    """The text of the last file that is named. Raises UserError."""
    try:
        return Path(words[-1]).expanduser().read_text("utf-8")
    except OSError as error:
        raise UserError(f"{words[-1]}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{words[-1]}: not a text in UTF-8") from None


def workers_of(
    num_proc: int = 1, engine: Literal["local", "ray"] = "local", address: str | None = None
) -> "Workers":
    """Who does the work, of `--num-proc`, `--engine` and `--address`. Raises UserError."""
    from ..compute.parallel import Workers

    if address is not None and engine != "ray":
        raise UserError("--address names a Ray cluster: add --engine ray")
    return Workers(num_proc=num_proc, engine=engine, address=address)


MODEL_PANEL, ROWS, SAMPLING, COST, PLACE = "Model", "Rows", "Sampling", "Cost and speed", "Run folder"
"""Headings of `rbtc eval --help`, which the options of requests stand under in every verb."""

ACCOUNT = Option(help="Your name or account, for the record.")
ADDRESS = Option(help="Ray cluster to join; default: start one here with --num-proc CPUs.", panel=COST)
AGAINST = Option(
    help="The run, baseline or commit on the Hub (org/name@version) to compare with.",
    typed=str | None,
    dashed=True,
)
AGENT = Option(
    help="Evaluate a reference or scripted agent (oracle, …) instead of a model; known verdicts are "
    "compared.",
    panel=MODEL_PANEL,
)
ALLOW_MISSING = Option(help="Continue even if some rows have no answer or no text.")
ALLOW_WRITES = Option(help="Allow faults to replace results of tools that write.")
ASKED = Option(help="A dataset's folder, or its name on the Hub.", typed=str)
BACKEND = Option(
    help="openai; vllm: in this process, in batches; anthropic, gemini: their own API (extra `providers`).",
    panel=MODEL_PANEL,
)
BASE_URL = Option(
    help="URL of an OpenAI-compatible server; default OPENAI_BASE_URL, else OpenAI. Repeatable: requests "
    "are spread.",
    panel=MODEL_PANEL,
    read=_urls,
)
BENCHMARK = Option(
    help="For training data: the benchmark whose rows they must not contain.", typed=Path | None
)
CHAT_TEMPLATE_ARG = Option(
    name="chat-template-arg",
    help="NAME=VALUE for the chat template; a value may be JSON. Repeatable.",
    panel=SAMPLING,
    read=_template,
)
COMMAND = Option(
    help="'PROGRAM ARG…': your own agent. `eval` sends it a request on standard input, `proxy run` "
    "starts it once per row.",
    panel=MODEL_PANEL,
    typed=str | None,
    dashed=True,
)
CONCURRENCY = Option(
    help="Concurrent requests per address, concurrent programs, or the largest batch.", panel=COST, at_least=1
)
DATASET = Option(
    help="Location of the run's dataset, if it was moved; for `export hub` on the Hub, ORG/NAME[@REVISION].",
    typed=str | None,
)
DEFEND = Option(
    help="NAME[,NAME]: defences to put between rows and model, in this order (`rbtc list defences`).",
    panel=MODEL_PANEL,
    read=listed,
)
DISCARD_CHANGES = Option(
    help="Replace a folder even if files were changed after rbtc wrote them.", panel=PLACE, typed_only=True
)
DRY_RUN = Option(help="Check everything and print what would be done; send and change nothing.")
ENGINE = Option(help="ray: run tasks on a cluster (extra `scale`).", panel=COST)
EXTRA_BODY = Option(
    help="JSON: additional fields of every request; null removes a field.", panel=SAMPLING, read=_body
)
FORCE = Option(
    help="Replace a folder that rbtc wrote, if nothing else is in it.", panel=PLACE, typed_only=True
)
FRESH = Option(help="Discard the run in the folder and start over.", panel=PLACE, typed_only=True)
FULL = Option(help="Print everything: all tables, warnings and rows.")
GENERATOR = Option(
    help="Generator of texts: recorded[:PATH], openai:MODEL[@BASE_URL[,BASE_URL…]], rule (typos) or none; "
    "TYPE=… for one type. Repeatable.",
    read=tuple,
)
HEADER = Option(
    name="header",
    help="NAME=VALUE: a header of every request; the value is never stored. Repeatable.",
    panel=MODEL_PANEL,
    read=_pairs,
)
IDS = Option(
    help="Ids of rows, clean samples or tasks, or @FILE with one per line. Repeatable.", panel=ROWS, read=_ids
)
JOURNAL = Option(help="File to which a door appends one line per exchange.", typed=Path)
KIND = Option(help="Content of a folder or Hub repository; checkpoint: a model.")
LIMIT = Option(help="Maximum number of rows.", panel=ROWS, at_least=1)
LOG_KEY = Option(
    name="log-key",
    help="For a log of another task than ours: clean_id=KEY, type=KEY (in a sample's metadata), "
    "score=NAME. Repeatable.",
    read=tuple,
)
LOGPROBS = Option(help="Request and store log probabilities.", panel=SAMPLING)
MAX_COST = Option(help="Stop before this cost, in the currency of --price.", panel=COST)
MAX_REQUESTS = Option(help="Stop after this many requests to endpoints.", panel=COST, at_least=0)
MAX_RETRIES = Option(help="Retries after 429, 5xx, a timeout or no completion.", panel=COST, at_least=0)
MAX_TOKENS = Option(help="Default: the models' table, else 1024.", panel=SAMPLING, at_least=1)
MCP_ENV = Option(
    help="Environment variables to pass to the MCP server's command (after --), besides HOME, PATH and "
    "the like.",
    read=listed,
)
MCP_TIMEOUT = Option(help="Timeout of the MCP server, in seconds.", at_least=0.1)
MCP_URL = Option(help="URL of an MCP server (streamable HTTP), instead of a command after --.")
MODE = Option(
    help="fc (alias: api) or prompt. Default: fc; for the paper's models, the mode they were trained in.",
    panel=MODEL_PANEL,
)
MODEL = Option(
    help="Model id as the endpoint knows it; for requests also MODEL@BASE_URL, anthropic:MODEL, "
    "gemini:MODEL.",
    panel=MODEL_PANEL,
)
NUM_PROC = Option(
    help="Number of processes; the output is the same, byte for byte, for any number.", panel=COST, at_least=1
)
ORG = Option(help="Owner of the model: your account (default) or one of your organisations.")
OUT = Option(
    help="The folder or file to write; a run in the folder is resumed.",
    panel=PLACE,
    typed=Path | None,
    dashed=True,
)
OWN_DATA = Option(name="i-own-this-data", help="Confirm that a dataset of your own tools may be passed on.")
PORT = Option(help="Port on 127.0.0.1; 0: a free one.", at_least=0)
PRICE = Option(help="IN,OUT: price per million prompt and completion tokens.", panel=COST, read=_price)
PROFILE = Option(
    help="paper: the 199 samples; full: the whole pools; bundled: what ships with the package; lite: BFCL's "
    "base tasks with one fault each."
)
REASONING_EFFORT = Option(help="As the endpoint calls it: low, medium, high, …", panel=SAMPLING)
REPEAT = Option(help="How many times to ask, or copy, each row.", panel=ROWS, at_least=1)
RESULTS = Option(name="results", help="Results repository: ORG/NAME on the Hub, or a folder.")
REVISION = Option(help="Tag, branch or commit of a Hub dataset.", panel=ROWS)
RLLA = Option(
    help="Data in ToolRL's wording: its own files, or training data (for `eval` also on the Hub).",
    panel=MODEL_PANEL,
    typed=Path | None,
)
RUN = Option(help="A run folder.", typed=Path)
RUN_OR_JOURNAL = Option(name="run|journal", help="A run folder, or the journal of `rbtc proxy`.", typed=Path)
SAMPLES = Option(
    help="Maximum number of samples, each with all its rows, drawn by source.", panel=ROWS, at_least=1
)
SCORE = Option(help="Score at the end; otherwise run `rbtc score` later.", panel=PLACE)
SEED = Option(
    help="Seed of random draws; `eval` sends it to the endpoint, as seed + n for repeat n.", panel=SAMPLING
)
SOURCE = Option(
    name="source", help="Benchmark sources; comma-separated, repeatable.", panel=ROWS, read=listed
)
SOURCES = Option(
    help="Folder of upstream files (default: RBTC_SOURCES, else the fetched ones).", typed=Path | None
)
STOP = Option(help="Stop sequence. Repeatable.", panel=SAMPLING, read=tuple)
SESSION = Option(help="<case>.<repeat>; by default each new client gets the next session.")
STORE = Option(
    help="Cache of endpoints' answers: each request is sent once and replayed afterwards.",
    panel=COST,
    typed=Path,
)
SUBSET = Option(
    help="all; paper: the kinds of rows in the paper's release; verified: rows whose answer can be inferred."
)
SYSTEM = Option(
    help="FILE: text to prepend to every system message, or to send as one.",
    panel=SAMPLING,
    read=_text,
    is_file=True,
)
SYSTEM_AS_USER = Option(help="Put the system text before the first user message instead.", panel=SAMPLING)
TEMPERATURE = Option(help="Default: the models' table, else 0.", panel=SAMPLING, at_least=0)
TIMEOUT = Option(
    name="timeout", help="Timeout of one attempt or answer, in seconds.", panel=COST, at_least=0.1
)
TOP_K = Option(help="1 or more; 0 or -1: all.", panel=SAMPLING)
TOP_P = Option(help="Above 0, at most 1.", panel=SAMPLING)
TYPE = Option(name="type", help="Only this type (code, the paper's name, or label), or clean.", panel=ROWS)
TYPES = Option(
    help="Types (code, name or label), components, packs, levels or kinds of faults, or clean; "
    "comma-separated, repeatable.",
    panel=ROWS,
    read=taxonomy.split,
)
UPSTREAM = Option(help="Base URL of the model's server, up to /v1.", dashed=True)
WORLDS = Option(
    help="orders, calendar, bfcl, or the Python file of your own world; comma-separated, repeatable.",
    read=listed,
)
WORLD_PYTHON = Option(help="Python interpreter that has BFCL's classes (default: that of `make env-live`).")
