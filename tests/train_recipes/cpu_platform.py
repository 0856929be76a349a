"""`python -m tests.train_recipes.cpu_platform …`: verl's SFT trainer on a machine without an accelerator.

verl 0.9.1 has no CPU platform for training: `trainer.device=cpu` falls back to NCCL. This gives it one, for
tests only, and hands the command line on to verl's own `sft_trainer.main`.
"""

import contextlib
import os
import sys
import types
from collections.abc import Iterator
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


@platform_manager.PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """The smallest answers that verl's interface takes."""

    device_name = property(lambda self: "cpu")
    vendor_name = property(lambda self: "cpu")
    device_module = property(lambda self: _CpuModule("cpu"))

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...

    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CPU_VISIBLE_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> Any:
        return None


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
