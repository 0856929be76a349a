"""A small release of our own: one clean row per source, what the rule types make of it, and runs over it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from robustbench_tc import schema, seeding, taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.builders import build, perturb
from robustbench_tc.builders.plain import published
from robustbench_tc.eval import inputs, predictions, record, verdicts
from robustbench_tc.schema import ANY, OMIT, Call, Message, Prediction, Sample, Tool

from ..known import OUTPUT_FORMATS


def tool(name: str, description: str, **parameters: str) -> Tool:
    """A tool whose parameters are all required, given as name=type."""
    properties = {key: {"type": kind, "description": f"The {key}."} for key, kind in parameters.items()}
    return Tool(name, description, {"type": "object", "properties": properties, "required": list(parameters)})


def clean_row(source: str, number: int, query: str, tools: Iterable[Tool], *answers: list[Call]) -> Sample:
    clean_id = f"{source}__{'level1_' if source == 'apibank' else 'made_'}{number}"
    listed = tuple(tools)
    return Sample(
        id=f"{clean_id}::clean",
        clean_id=clean_id,
        type_code="clean",
        source=source,
        category={"bfcl_v3": "multiple", "apibank": "level1"}.get(source, "made"),
        messages=(Message("user", query),),
        tools=listed,
        golden_answers=tuple(tuple(answer) for answer in answers),
        output_format=OUTPUT_FORMATS[source],
        gold_tool_index=[t.name for t in listed].index(answers[0][0].name),
    )


ASK = tool("ask_to_user", "Asks the user something.", question="string")
FINISH = tool("finish", "Ends the conversation.", answer="string")
MAP = tool("geo_map.distance", "Distance between two towns in kilometres.", start="string", stop="string")
HEIGHT = Tool(
    "summit.height",
    "Height of a mountain.",
    {
        "type": "object",
        "properties": {"mountain": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["mountain"],
    },
)
NOTE = tool("AddReminder", "Adds a reminder.", content="str", time="str")
CLOCK = tool("QueryCalendar", "Reads the calendar.", day="str")


def clean_rows() -> list[Sample]:
    return [
        clean_row(
            "bfcl_v3",
            1,
            "How high is the mountain Galdhoppen, if you please?",
            [MAP, HEIGHT],
            [Call("summit.height", {"mountain": ["Galdhoppen"], "unit": ["m", OMIT]})],
        ),
        clean_row(
            "apibank",
            1,
            "**Dialogue Records History**\n<user>Please remind me that I should water the plants "
            "at 2031-04-01 09:00.</user>\n<user> With this in mind, answer with one tool call.</user>\n",
            [NOTE, CLOCK],
            [Call("AddReminder", {"content": ["water the plants"], "time": ["2031-04-01 09:00"]})],
        ),
        clean_row(
            "rotbench",
            1,
            "Which country does the town of Bodo belong to these days?",
            [
                tool("find_country", "Country of a town.", town="string", language="string"),
                tool("find_river", "Rivers of a valley.", valley="string"),
                ASK,
                FINISH,
            ],
            [Call("find_country", {"town": ["Bodo"], "language": [ANY]})],
            [Call("ask_to_user", {"question": [ANY]})],
        ),
        clean_row(
            "toolalpaca",
            1,
            "Can you get me a picture of a sleepy cat, three hundred wide?",
            [
                tool("randomPicture", "A picture.", tag="string", width="integer"),
                tool("stampList", "Stamps of a land.", prefix="string"),
            ],
            [Call("randomPicture", {"tag": ["sleepy"], "width": [300]})],
        ),
        clean_row(
            "tooleyes",
            1,
            "What is the weather like in Molde, and what time is it there?",
            [
                tool("weather_now", "Weather of a place.", place="string"),
                tool("local_time", "Time at a place.", place="string"),
                ASK,
                FINISH,
            ],
            [Call("weather_now", {"place": [ANY]}), Call("local_time", {"place": [ANY]})],
        ),
    ]


def rows(*codes: str) -> list[Sample]:
    """Clean rows, then those of the rule types named (default: all of them) where they apply."""
    clean = clean_rows()
    donors = {row.source: row.tools for row in clean}
    found = list(clean)
    for code in codes or [t.code for t in taxonomy.types() if t.method != "llm"]:
        for row in clean:
            try:
                draw = seeding.rng(0, code, row.clean_id)
                found.append(perturb.REGISTRY[code].perturb(row, draw, perturb.Context(donors=donors)))
            except perturb.NotApplicable:
                continue
    return found


ASKED = ("id", "clean_id", "type_code", "component", "source", "category")
"""What an answer repeats of its row."""


def prediction(row: Sample, **fields: Any) -> Prediction:
    """An answer to this row; in the mode `prompt`, of the model `m`, unless `fields` say otherwise."""
    plain: dict[str, Any] = {"model": "m", "mode": "prompt", "sample_hash": "0", "status": "ok"}
    return Prediction(**{name: getattr(row, name) for name in ASKED}, **{**plain, **fields})


def settings(**changes: Any) -> record.Settings:
    """What a run's answers depend on, of the model `m` in prompt mode unless `changes` say otherwise."""
    plain: dict[str, Any] = {"fingerprint": "f", "model": "m", "mode": "prompt", "backend": "openai"}
    return record.Settings(**(plain | {"decoding": {}, "prompt_version": "1"} | changes))


def write(folder: Path, found: Iterable[Sample]) -> Path:
    """A release folder with these rows."""
    by_type: dict[str, list[Sample]] = {}
    for row in found:
        by_type.setdefault(row.type_code, []).append(row)
    for code, group in by_type.items():
        path = folder / code / "test-00000-of-00001.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(schema.arrow_table(map(published, group), schema.PublishedSample), path)
    (folder / "build_report.json").write_text("{}")
    return folder


def rows_of(folder: Path, codes: Sequence[str], **spec: Any) -> tuple[Sample, ...]:
    """The rows of a build of these types, over the starter samples unless `spec` says otherwise."""
    out = folder / "robustbench-tc"
    build_release(build.BuildSpec(**{"profile": "bundled", "codes": tuple(codes), **spec}), out)
    return inputs.load_samples(str(out)).rows


def scored_run(
    path: Path, release: Path, model: str, reply: Callable[[Sample], Mapping[str, Any]], **changes: Any
) -> Path:
    """A scored run folder over a release, written by the harness; `reply`: fields of a row's prediction."""
    data = inputs.load_samples(str(release))
    given = {"fingerprint": data.fingerprint(), "model": model, "backend": "import"} | changes
    folder = record.start(path, data, settings(**given), len(data.rows))
    hashes = data.hashes
    found = [
        prediction(row, **{"model": model, "sample_hash": hashes[row.id], **reply(row)}) for row in data.rows
    ]
    predictions.write(folder.answers_path, found)
    verdicts.score_file(folder, data)
    folder.save()
    return folder.path
