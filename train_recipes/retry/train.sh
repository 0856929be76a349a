#!/usr/bin/env bash
# GRPO with transition errors inside the rollout: train.sh [--dataset DIR|ORG/NAME@REVISION] [overrides …]
#
#   train_recipes/retry/train.sh --dataset toolrl-dr actor_rollout_ref.model.path=merged/toolrl-dr-full
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dataset=toolrl-dr
if [ "${1:-}" = --dataset ]; then dataset=$2; shift 2; fi
files=$(python -m robustbench_tc.train_recipes.dataset "$dataset" retry)
{ read -r train; read -r validation; } <<<"$files"
# Validation by component: accuracy, what each component costs, how much of it training has closed.
export VERL_USE_EXTERNAL_MODULES="${VERL_USE_EXTERNAL_MODULES:+$VERL_USE_EXTERNAL_MODULES,}robustbench_tc.train_recipes.verl_plugin"
set -x
exec python -m verl.trainer.main_ppo \
  --config-path "$here" --config-name grpo_retry \
  data.train_files="$train" data.val_files="$validation" \
  actor_rollout_ref.rollout.agent.agent_loop_config_path="$here/agent_loop.yaml" "$@"
