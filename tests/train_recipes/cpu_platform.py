"""`python -m tests.train_recipes.cpu_platform …`: verl's SFT trainer on a machine without an accelerator.

verl 0.9.1 has no CPU platform for training: `trainer.device=cpu` falls back to NCCL. This gives it one, for
tests only, and hands the command line on to verl's own `sft_trainer.main`.
"""

import contextlib
import os
import sys
import types
from typing import Any

import torch
from verl.plugin.platform import platform_manager
from verl.plugin.platform.platform_base import PlatformBase


class _CpuModule(types.ModuleType):
    """torch.cpu; whatever else verl asks a device (memory, caches) is answered with 0."""

    def __getattr__(self, name: str) -> Any:
        if name == "mem_get_info":
            return lambda *_: (1, 1)
        if name == "get_device_name":
            return lambda *_: "CPU"
        return getattr(torch.cpu, name, lambda *_, **__: 0)


ANSWERS = {
    "is_available": True,
    "current_device": torch.device("cpu"),
    "device_count": 1,
    "set_device": None,
    "synchronize": None,
    "set_allocator_settings": None,
    "empty_cache": None,
    "get_device_capability": (None, None),
    "communication_backend_name": "gloo",
    "visible_devices_envvar": "CPU_VISIBLE_DEVICES",
    "nvtx_range": contextlib.nullcontext(),
    "profiler_start": None,
    "profiler_stop": None,
    "ray_resource_name": "CPU",
    "ray_noset_envvars": [],
    "is_ipc_supported": False,
    "cudart": None,
}
"""The smallest answers that verl's interface takes: method → what it always gives."""


def _always(answer: Any) -> Any:
    return lambda *_, **__: answer


def _seed(self: Any, seed: int) -> None:
    torch.manual_seed(seed)


METHODS = {name: _always(answer) for name, answer in ANSWERS.items()}
METHODS |= {"manual_seed": _seed, "manual_seed_all": _seed}
METHODS |= {"device_name": "cpu", "vendor_name": "cpu", "device_module": property(_always(_CpuModule("cpu")))}
CpuPlatform = type("CpuPlatform", (PlatformBase,), METHODS)
platform_manager.PlatformRegistry.register(platform="cpu")(CpuPlatform)


def _gloo(timeout_second: int = 600) -> tuple[int, int, int]:
    torch.distributed.init_process_group(backend="gloo")
    return 0, 0, 1


def main() -> None:
    os.environ |= {"VERL_PLATFORM": "cpu", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29571")
    # Only now: these modules ask for the platform while they are imported.
    import verl.trainer.sft_trainer as sft_trainer
    import verl.utils.distributed as verl_distributed
    from verl.workers.engine.base import EngineRegistry
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    register = EngineRegistry.register(
        model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu", vendor="cpu"
    )
    register(FSDPEngineWithLMHead)
    verl_distributed.initialize_global_process_group = _gloo
    sys.argv[0] = sft_trainer.__file__
    sft_trainer.main()


if __name__ == "__main__":
    main()
