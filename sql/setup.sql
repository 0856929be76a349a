-- For the duckdb shell, from the repository's root:
--
--     duckdb -init sql/setup.sql
--     .read sql/table2.sql                          -- the paper's counts
--     set variable runs = ['runs/qwen3-8b-fc'];     -- folders that `rbtc score` has finished
--     .read sql/with_runs.sql
--     .read sql/flips.sql
--     set variable release = 'robustbench-tc';
--     .read sql/stg_release.sql
--     .read sql/hardest.sql
--     set variable live_runs = ['runs/live/qwen3-8b-fc'];   -- folders that `rbtc score` has finished
--     .read sql/stg_live.sql
--     .read sql/live_recovery.sql
.read sql/stg_types.sql
.read sql/macro_in_subset.sql
.read sql/stg_paper_cells.sql
.read sql/no_runs.sql
.read sql/no_release.sql
.read sql/no_live.sql
.read sql/int_answers.sql
.read sql/int_cells.sql
.read sql/int_components.sql
.read sql/int_pairs.sql
