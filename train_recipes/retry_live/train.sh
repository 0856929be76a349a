#!/usr/bin/env bash
# GRPO in the bundled worlds: train.sh [--dataset DIR] [overrides …]
#
#   train_recipes/retry_live/train.sh --dataset live-training actor_rollout_ref.model.path=merged/toolrl-dr-full
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dataset=live-training
if [ "${1:-}" = --dataset ]; then dataset=$2; shift 2; fi
files=$(python -m robustbench_tc.train_recipes.dataset "$dataset" retry_live)
{ read -r train; read -r validation; } <<<"$files"
set -x
exec python -m verl.trainer.main_ppo \
  --config-path "$here" --config-name grpo_live \
  data.train_files="$train" data.val_files="$validation" \
  actor_rollout_ref.rollout.agent.agent_loop_config_path="$here/agent_loop.yaml" "$@"
