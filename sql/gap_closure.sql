-- The share of a baseline's Δ that a model closes, per component: (Δ baseline - Δ model) / Δ baseline. The
-- baseline is a model or run on the same dataset; null where the baseline has no gap to close. A share of two
-- differences: how sure it is, and whether it can be said at all, stands in `rbtc compare` (Fieller's set).
with deltas as (
    select dataset, run, model, component, delta
    from int_components
    where component not in ('clean', 'perturbed')
),

baseline as (
    select *
    from deltas
    where coalesce(getvariable('baseline'), 'ToolRL-Qwen2.5-3B') in (model, run)
),

final as (
    select
        deltas.dataset,
        baseline.run as baseline,
        deltas.run,
        deltas.model,
        deltas.component,
        baseline.delta as baseline_delta,
        deltas.delta,
        case when baseline.delta > 0 then (baseline.delta - deltas.delta) / baseline.delta end as closed
    from deltas
    inner join baseline
        on deltas.dataset = baseline.dataset
        and deltas.component = baseline.component
        and deltas.run <> baseline.run
)

select *
from final
order by dataset, baseline, run, component;
