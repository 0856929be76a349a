"""Validation by component, and `data.noisy`.

verl imports what VERL_USE_EXTERNAL_MODULES names.
"""

from verl.trainer.ppo.v1 import PPOTrainer, trainer_base

from . import verl_noisy
from .verl_validation import install

install(PPOTrainer)
verl_noisy.install(trainer_base)
