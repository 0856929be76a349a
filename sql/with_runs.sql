-- Puts the run folders of the variable `runs` in, and the paper's counts out.
.read sql/stg_runs.sql
.read sql/stg_predictions.sql
.read sql/no_paper.sql
