"""What defences do by construction, counted over profile paper: the figures of docs/defences.md."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from benchmarks.defences import line

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import defend, inputs, record, scripted
from robustbench_tc.eval.defend.chain import Chain, Request, Said, Scene, budget, reply, shown

from . import small

FREE = (
    "dedupe", "namespace", "namespace:prefix", "namespace:first", "offers", "hint", "clarify", "spotlight",
)  # fmt: skip
"""Defences that ask no further request and refuse no row."""

ASKING = ("namespace:error", "schema", "retry", "vote:3")
CHAINS = 2_000


def driven(chain: Chain, scene: Scene, answers: Iterable[record.Answer]) -> tuple[Said, list[Request]]:
    """A pass with these replies of a model, in order: what it ends with, and the requests that it took."""
    steps, given, requests = reply(chain, scene), iter(answers), list[Request]()
    try:
        requests.append(next(steps))
        while True:
            requests.append(steps.send(next(given)))
    except StopIteration as end:
        return end.value, requests


def kept_gold(data: inputs.Dataset) -> tuple[Counter[str], Counter[str]]:
    """By type: rows in which gold's tool is what `dedupe`, or `offers`, leaves of its kind; and rows."""
    kept, rows = Counter[str](), Counter[str]()
    dedupe, offers = defend.parse(["dedupe"]), defend.parse(["offers"])
    anchors = data.anchors()
    for row in data.rows:
        code = row.type_code
        if code.startswith("same_name_") and row.gold_tool_index is not None:
            gold = row.tools[row.gold_tool_index]
            rows[code] += 1
            kept[code] += [tool for tool in shown(dedupe, row).tools if tool.name == gold.name] == [gold]
        elif row.component == "reward":
            left = shown(offers, row).tools
            golden = {call.name for answer in row.golden_answers for call in answer}
            rows[code] += 1
            names = {tool.name for tool in left}
            kept[code] += golden <= names and len(left) == len(anchors[row.id].tools)
    return kept, rows


def figures(release: Path) -> Iterator[str]:
    """A line for each of the known facts."""
    data = inputs.load_samples(str(release))
    kept, rows = kept_gold(data)
    for code in rows:
        name = "dedupe" if code.startswith("same_name_") else "offers"
        yield f"{name}: gold is what is left in {kept[code]} of {rows[code]} rows of {code}"
    clean_rows = tuple(row for row in data.rows if row.type_code == taxonomy.CLEAN)
    for kind in (one for one in taxonomy.types() if one.component == "transition"):
        some = tuple(row for row in data.rows if row.type_code == kind.code)
        one = line(inputs.Dataset(name="", rows=clean_rows + some), "gives-up-on-error", "retry")
        right, count = one.right["transition"], one.rows["transition"]
        yield f"retry: the agent that gives up is right in {right} of {count} rows of {kind.code}"
    clean = inputs.Dataset(name="", rows=clean_rows)
    for words in FREE:
        one = line(clean, "oracle", words)
        right = one.right[taxonomy.CLEAN]
        yield f"{words}: the oracle is right in {right} of {one.rows[taxonomy.CLEAN]} clean rows"
    within, composed = _chains(data)
    yield f"budgets: {within} of {CHAINS} random chains on random rows stay within theirs"
    yield f"chains: {composed} of {CHAINS} show what their defences show one after the other"


def _chains(data: inputs.Dataset) -> tuple[int, int]:
    """Of so many random chains over random rows, with replies of every kind: those within their budget, and
    those that are their composition."""
    rng = random.Random(0)
    within = composed = 0
    for _ in range(CHAINS):
        words = list({word.partition(":")[0]: word for word in rng.sample(FREE + ASKING, 3)}.values())
        row, chain = rng.choice(data.rows), defend.parse(words)
        one_by_one = row
        for one in chain:
            one_by_one = one.before(one_by_one, one.way)
        composed += shown(chain, row) == one_by_one
        within += _requests(row, chain, rng) <= budget(chain) <= defend.MOST
    return within, composed


def _requests(row: schema.Sample, chain: Chain, rng: random.Random) -> int:
    settings = small.settings(defend=defend.names(chain))
    texts = ("", "no", "[nothing()]", *(f"[{tool.name}()]" for tool in row.tools[:3]))
    answers = (
        record.Answer(id=row.id, repeat=0, number=1, status="ok", text=rng.choice(texts)) for _ in count()
    )
    return len(driven(chain, scripted.Scripted(row, settings).scene(), answers)[1])
