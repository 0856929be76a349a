"""A task of lm-eval over the rows of one component: one request a row, sent as `rbtc eval` sends it.

lm-eval finds it through the YAML files beside it. Which dataset is said with `--metadata`.
"""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import datasets
import msgspec
from lm_eval.api.task import ConfigurableTask

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import wire
from robustbench_tc.eval.adapters.bench import KEY, Bench, asked_once
from robustbench_tc.eval.models import DEFAULT_DECODING
from robustbench_tc.eval.stats.values import codes_of
from robustbench_tc.schema import Sample, dumps

METRIC = "correct"

log = logging.getLogger(__name__)


@lru_cache(1)
def _bench(asked: str) -> Bench:
    given: dict[str, Any] = msgspec.json.decode(asked)
    return Bench(given.pop("dataset"), **given)


class RobustBench(ConfigurableTask):
    """`rbtc_clean`, `rbtc_observation`, `rbtc_action` and `rbtc_reward`."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        given = dict(config or {})
        given.pop("class", None)
        metadata: dict[str, Any] = given.setdefault("metadata", {})
        said = {
            name: metadata[name] for name in ("revision", "types", "sources", "samples") if name in metadata
        }
        try:
            self._bench = _bench(dumps({"dataset": metadata.get("dataset", "robustbench-tc"), **said}))
            self._rows = self._chosen(str(given["task"]).removeprefix("rbtc_"))
        except UserError as error:
            raise SystemExit(f"rbtc: {error}") from None
        metadata[KEY] = msgspec.to_builtins(self._bench.origin)
        model = metadata.get("model") or metadata.get("pretrained") or "unnamed"
        self._settings = self._bench.settings(str(model))
        given |= {
            "output_type": "generate_until",
            "test_split": "test",
            "doc_to_text": "{{id}}",  # the messages are in fewshot_context
            "doc_to_target": "{{gold}}",
            "generation_kwargs": {
                "until": [],
                "do_sample": False,
                "temperature": DEFAULT_DECODING["temperature"],
                "max_gen_toks": DEFAULT_DECODING["max_tokens"],
            },
            "metric_list": [{"metric": METRIC, "aggregation": "mean", "higher_is_better": True}],
            "process_results": self._judged,
        }
        super().__init__(config=given)

    def _chosen(self, component: str) -> dict[str, Sample]:
        """The rows of the task, with a line for those of its dataset that lm-eval cannot ask."""
        codes = (taxonomy.CLEAN,) if component == taxonomy.CLEAN else codes_of(component)
        fitting = [row for row in self._bench.rows if row.type_code in codes]
        found = {row.id: row for row in fitting if asked_once(row)}
        if component == taxonomy.CLEAN:
            shown = {code for name in (taxonomy.CLEAN, *taxonomy.COMPONENTS[:3]) for code in codes_of(name)}
            rows = self._bench.rows
            left = sum(row.type_code not in shown or not asked_once(row) for row in rows)
            if left:
                log.warning(
                    "%d of %d rows are left out: lm-eval has one request a row and asks clean rows and the "
                    "core's static types (transition types and packs: rbtc eval, or inspect_ai)",
                    left,
                    len(rows),
                )
        if not found:
            raise UserError(f"no row for rbtc_{component} is among those chosen: leave it out of --tasks")
        return found

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """The rows as lm-eval's documents: what they are called, without their texts."""
        rows = [
            {"id": row.id, **self._bench.identity(row), "gold": _gold(row)} for row in self._rows.values()
        ]
        self.dataset = datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)})

    def fewshot_context(
        self,
        doc: dict[str, Any],
        num_fewshot: int = 0,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[..., Any] | None = None,
        gen_prefix: str | None = None,
    ) -> Any:
        """The messages as they are, through the model's chat template (of an endpoint: none)."""
        if chat_template is None:
            raise SystemExit("rbtc: add --apply_chat_template: the rows are conversations")
        if num_fewshot or system_instruction or gen_prefix:
            raise SystemExit("rbtc: rows are asked as they are: no --num_fewshot, no --system_instruction")
        return chat_template([dict(m) for m in wire.first(self._rows[doc["id"]], "prompt").messages])

    def _judged(self, doc: dict[str, Any], results: list[str | None]) -> dict[str, float]:
        """Our scorer's verdict; the log's copy of the document gets it whole."""
        row = self._rows[doc["id"]]
        dialogue = self._bench.begin(row.id, self._settings.model)
        dialogue.reply(dialogue.noted(msgspec.structs.replace(dialogue.base(), text=results[0] or "")))
        prediction = self._bench.prediction(dialogue)
        verdict = self._bench.verdict(prediction)
        doc["prediction"], doc["verdict"] = msgspec.to_builtins(prediction), msgspec.to_builtins(verdict)
        return {METRIC: float(verdict.correct)}


def _gold(row: Sample) -> str:
    return " | ".join(
        "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer) for answer in row.golden_answers
    )
