"""Who is asked, checked before any work, and how he is opened: a model at its addresses or in this process, a
reference agent, a user's own agent."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from robustbench_tc.compute.parallel import SERIAL, Workers, on_ray
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.llm import (
    Client,
    Endpoint,
    LoadBalancer,
    Stats,
    Transport,
    native_model,
    need_any_llm,
    over_http,
    parse_endpoint,
)
from robustbench_tc.llm.balance import on_actors

from . import agents, defend as defences, models, record
from .callables.agent import AgentSpeaker, Function, OwnAgent, own_agent
from .data import Selection
from .defend.chain import Defence, shown
from .defend.shield import with_rules
from .dialogue import Speaker
from .inputs import Dataset, Names, anchors, names_of
from .live import defended, prompts as live_prompts
from .live.agents import AGENTS as SCRIPTED
from .live.inputs import LiveData
from .prompts import OURS, Prompts, rlla as rlla_prompts
from .request_settings import RequestOptions, RequestSettings, headers as headers_of, settle
from .run import Asked
from .speakers import ModelSpeaker, ReferenceAgent, ScriptedAgent
from .vllm import VLLMTransport, check_takes


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How fast answers come. No answer depends on it."""

    concurrency: int = 32
    """Requests under way at each address."""
    timeout_s: float = 300.0
    max_retries: int = 6
    workers: Workers = SERIAL
    gpus: int = 1


class Opened(NamedTuple):
    """Whoever answers, ready to be asked."""

    speaker: Speaker
    at_once: int
    """Requests under way, at all its addresses."""
    stats: Stats
    """Filled while it is asked."""
    address: str = ""
    """For the run record; never holds a key."""
    requests: RequestSettings = RequestSettings(decoding={})


Opening: TypeAlias = AbstractAsyncContextManager[Opened]


def endpoint(
    addresses: Sequence[Endpoint], requests: RequestSettings, effort: Effort, *, backoff_s: float = 0.5
) -> Opening:
    """A model at its addresses, which share its requests."""
    specs = [one.resolved() for one in addresses]
    at_once = effort.concurrency * len(specs)
    wire = partial(over_http, specs, effort.timeout_s, concurrency=at_once)
    shown = ", ".join(map(str, specs))
    return _client(wire, specs[0], shown, requests, effort, at_once, backoff_s=backoff_s)


def vllm(name: str, requests: RequestSettings, effort: Effort, *, gpus_each: float = 1) -> Opening:
    """vLLM in this process, or on Ray so many engines with so many GPUs each.

    `name` is a folder, a Hub id or a name of the models' table.
    """
    model, batch = models.find(name), effort.concurrency
    weights = (model.weights if model is not None else None) or name
    check_takes(requests)
    known = {} if model is None else {"dtype": model.dtype, "max_model_len": model.max_model_len}
    options = {option: value for option, value in known.items() if value is not None}
    engine = partial(VLLMTransport, weights, batch=batch, **options)
    engines = effort.gpus if effort.workers.engine == "ray" else 1
    names = [f"vllm in process: {weights}"] * engines

    def wire(ray: Any) -> Transport:
        if ray is None:
            return engine()
        return LoadBalancer(on_actors(ray, [engine] * engines, concurrency=2 * batch, gpus=gpus_each), names)

    spec = Endpoint(name, reasoning=False)
    # Twice as many as an engine takes at once: the next batch waits while it is at one.
    return _client(wire, spec, ", ".join(names), requests, effort, batch * engines, waiting=2)


@asynccontextmanager
async def _client(
    wire: Callable[..., Transport],
    spec: Endpoint,
    address: str,
    requests: RequestSettings,
    effort: Effort,
    at_once: int,
    *,
    waiting: int = 1,
    backoff_s: float = 0.5,
) -> AsyncIterator[Opened]:
    """A model behind what `wire` opens, which gets the module `ray` or None; `waiting`: times `at_once`
    requests are sent."""
    with on_ray(effort.workers) as ray:
        async with Client(
            spec,
            wire=wire(ray=ray),
            concurrency=waiting * at_once,
            max_retries=effort.max_retries,
            backoff_s=backoff_s,
            max_cost=requests.max_cost,
            price=requests.price,
            system_as_user=requests.system_as_user,
        ) as client:
            yield Opened(ModelSpeaker(client, requests), at_once, client.stats, address, requests)


# --- who ---------------------------------------------------------------------------------------------

Engine: TypeAlias = Literal["openai", "vllm", "anthropic", "gemini"]
"""Who answers: an OpenAI-compatible server, vLLM in this process, or a provider over its own API."""

PromptFormat: TypeAlias = Literal["benchmark", "rlla"]
"""The words of prompt mode: the benchmark's, or ToolRL's, in which its checkpoints were trained."""


@dataclass(frozen=True, kw_only=True)
class Who:
    """Who is asked and how."""

    name: str
    """In the run's record, the usual name of its folder, and reports."""
    mode: record.Mode
    backend: str
    settings: RequestSettings
    checkpoint: str | None = None
    """What the endpoint is asked for, where that is not `name`."""
    endpoints: Sequence[Endpoint] = ()
    """The addresses of a model; none of an agent of the user's."""
    agent: str | None = None
    """A reference agent, or a scripted one where rows are live."""
    own: OwnAgent | None = None
    asked: Asked | None = None
    """Whose first replies may stop the run; None for a reference agent."""
    words: Prompts = OURS
    chain: Sequence[Defence] = ()
    suffix: str = ""
    """Of the run folder's usual name."""
    share: bool = True
    """Whether equal requests are asked once at temperature 0."""
    notes: Sequence[str] = ()

    def identity(self, data: Dataset | LiveData, selection: Selection, repeat: int) -> record.Settings:
        """What the answers of a run depend on."""
        return record.Settings(
            fingerprint=data.fingerprint(),
            model=self.name,
            mode=self.mode,
            backend=self.backend,
            prompt_version=live_prompts.version() if isinstance(data, LiveData) else self.words.version,
            selection=selection,
            repeat=repeat,
            defend=defences.names(self.chain),
            share=self.share,
            checkpoint=self.checkpoint,
            decoding=self.settings.decoding,
            system=self.settings.system,
            headers=tuple(name.lower() for name, _ in self.settings.headers),
        )

    def opening(self, data: Dataset | LiveData, effort: Effort) -> Opening:
        """How whoever answers is opened."""
        if self.own is not None:
            at_once = effort.concurrency if self.own.in_parallel else 1
            speaker = AgentSpeaker(self.own, at_once, effort.timeout_s)
            address = f"{self.backend} {self.own.name}"
            return nullcontext(Opened(speaker, at_once, speaker.stats, address, self.settings))
        if self.backend == "vllm":
            return vllm(self.checkpoint or self.name, self.settings, effort)
        if self.agent is None:
            return endpoint(self.endpoints, self.settings, effort)
        if isinstance(data, LiveData):
            return nullcontext(Opened(ScriptedAgent(self.agent, data.clean()), effort.concurrency, Stats()))
        # It knows the rows as defences show them.
        rows = [shown(self.chain, row) for row in data.rows] if self.chain else data.rows
        reference = ReferenceAgent(self.agent, anchors(rows), self.words)
        return nullcontext(Opened(reference, effort.concurrency, Stats()))


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, as it was named; the fields are options of `rbtc eval`."""

    model: str | None = None
    name: str | None = None
    base_url: Names = ()
    agent: str | None = None
    callable: Function | None = None
    command: str | Sequence[str] | None = None
    mode: str | None = None
    backend: Engine = "openai"
    prompt_format: PromptFormat = "benchmark"
    rlla: str | Path | None = None
    defend: Names = ()
    early_stop: bool = True
    share: bool = True

    def checked(self, options: RequestOptions, *, live: bool = False) -> Who:
        """Who is meant, for rows that are `live` or not. Raises UserError for names that are wrong or do not
        go together."""
        words = _prompts(self.prompt_format, self.rlla, self.mode)
        mode = self.mode if words is OURS else "prompt"
        is_own = self.callable is not None or self.command is not None
        if live and (is_own or words is not OURS or self.backend == "vllm"):
            raise UserError(
                "live rows are played by a model behind a server or by a scripted agent, in their own words: "
                "leave --callable, --command, --prompt-format and --backend vllm out"
            )
        who = self._own(mode, options) if is_own else self._model(mode, options, live)
        named = tuple(with_rules(names_of(self.defend)))
        if live:
            return replace(who, chain=defended.parse(named, who.mode))
        suffix = "" if words is OURS else f"-{self.prompt_format}"
        chain = defences.parse(named, who.mode)
        return replace(who, words=words, chain=chain, suffix=suffix)

    def _own(self, mode: str | None, options: RequestOptions) -> Who:
        others = {
            "--agent": self.agent,
            "--base-url": self.base_url,
            "--backend": self.backend != "openai",
            "--prompt-format": self.prompt_format != "benchmark",
            "--defend": self.defend,
        }
        which = "--callable" if self.command is None else "--command"
        if clash := [option for option, value in others.items() if value]:
            raise UserError(f"{which} already names what to evaluate: leave {clash[0]} out")
        own = own_agent(self.callable, self.command, options)
        return Who(
            name=self.name or self.model or own.name,
            mode=record.mode_of(mode or "fc"),
            backend=own.backend,
            settings=own.settings,
            own=own,
            asked="own agent",
            share=self.share,
        )

    def _model(self, mode: str | None, options: RequestOptions, live: bool) -> Who:
        """A model, or an agent of ours, with the settings of the models' table."""
        if self.agent is not None and live and self.agent not in SCRIPTED:
            raise unknown("scripted agent", self.agent, SCRIPTED)
        if self.agent is not None and not live:
            agents.agent(self.agent)
        found = endpoints(self.model, self.base_url, self.agent, self.backend, options)
        name = found[0].model
        entry = models.find(name)
        if self.name is not None and (self.agent or entry or models.find(self.name)):
            raise UserError(f"--name {self.name}: it is for a path or a checkpoint; {name} keeps its name")
        notes: list[str] = []
        if mode is None and entry is not None:
            notes = [f"{name} is asked in {entry.mode} mode, as it was trained; --mode changes it"]
        return Who(
            name=self.name or name,
            checkpoint=name if self.name else None,
            mode=record.mode_of(mode or models.mode_of(name)),
            backend="agent" if live and self.agent else found[0].provider,
            settings=settle(entry, options, self.agent),
            endpoints=found,
            agent=self.agent,
            asked="model" if self.early_stop and self.agent is None and not live else None,
            share=self.share,
            notes=notes,
        )


def _prompts(prompt_format: str, rlla: str | Path | None, mode: str | None) -> Prompts:
    """The words of prompt mode. Raises UserError for options that do not go together."""
    if prompt_format == "benchmark":
        if rlla is not None:
            raise UserError(f"--rlla {rlla}: add --prompt-format rlla, or leave it out")
        return OURS
    if rlla is None:
        raise UserError(
            "--prompt-format rlla asks in ToolRL's own words: name training data that holds them with --rlla"
        )
    if mode is not None and record.mode_of(mode) != "prompt":
        raise UserError(f"--prompt-format rlla is a form of prompt mode: leave --mode {mode} out")
    return rlla_prompts.read_prompts(str(rlla))


def endpoints(
    model: str | None, base_url: Names, agent: str | None, backend: Engine, options: RequestOptions
) -> list[Endpoint]:
    """The addresses that are asked. Raises UserError."""
    headers = headers_of(options)
    base_urls = (base_url,) if isinstance(base_url, str) else base_url
    if agent is not None:
        if (model, [*base_urls], backend) != (None, [], "openai"):
            raise UserError("--agent answers in this process: leave --model, --base-url and --backend out")
        return [Endpoint(f"agent-{agent}")]
    if model is None:
        raise UserError("no model: name one with --model, or an agent of ours with --agent")
    named = native_model(model)
    if named is not None and backend not in ("openai", named[0]):
        raise UserError(f"--model {model} and --backend {backend} disagree: leave one of them out")
    if backend == "vllm":
        return [Endpoint(model, provider=backend)]
    provider, name = named or (backend, model)
    if provider != "openai":
        need_any_llm()
        if len(base_urls) > 1:  # each keeps the signatures of its own replies
            raise UserError(f"--base-url: {provider} is asked at one address")
    else:
        at = parse_endpoint(model)
        name, base_urls = at.model, [at.base_url] if at.base_url else base_urls
    urls: Sequence[str | None] = base_urls or [None]
    return [Endpoint(name, url, headers=headers, provider=provider).resolved() for url in urls]
