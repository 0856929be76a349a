"""Validation by component and `data.sampling`: verl imports what VERL_USE_EXTERNAL_MODULES names."""

from verl.trainer.ppo.v1 import PPOTrainer, trainer_base

from .verl_sampling import wrap
from .verl_validation import install

install(PPOTrainer)
trainer_base.create_rl_sampler = wrap(trainer_base.create_rl_sampler)
