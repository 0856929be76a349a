-- Table 2: clean, perturbed and the four Δ (clean minus component, positive is worse), and retention.
with values_by_component as (
    select
        dataset,
        run,
        model,
        mode,
        max(n) filter (where component = 'clean') as n_clean,
        max(n) filter (where component = 'perturbed') as n_perturbed,
        max(accuracy) filter (where component = 'clean') as clean,
        max(accuracy) filter (where component = 'perturbed') as perturbed,
        max(delta) filter (where component = 'observation') as delta_observation,
        max(delta) filter (where component = 'action') as delta_action,
        max(delta) filter (where component = 'reward') as delta_reward,
        max(delta) filter (where component = 'transition') as delta_transition,
        max(accuracy) filter (where component = 'observation') as observation,
        max(accuracy) filter (where component = 'action') as action,
        max(accuracy) filter (where component = 'reward') as reward,
        max(accuracy) filter (where component = 'transition') as transition,
        sum(missing) filter (where component in ('clean', 'perturbed'))::bigint as missing,
        sum(types_missing) filter (where component in ('clean', 'perturbed'))::bigint as types_missing,
        max(never_made) as never_made
    from int_components
    group by dataset, run, model, mode
),

final as (
    select
        found.dataset,
        found.run,
        found.model,
        found.mode,
        found.n_clean,
        found.n_perturbed,
        found.clean,
        found.perturbed,
        found.delta_observation,
        found.delta_action,
        found.delta_reward,
        found.delta_transition,
        -- 1 - mean(Δ observation, Δ action, Δ reward) / clean
        (found.observation + found.action + found.reward) / 3 / nullif(found.clean, 0) as retention,
        -- the same with Δ transition among the four
        (found.observation + found.action + found.reward + found.transition) / 4 / nullif(found.clean, 0)
            as retention_with_transition,
        nullif(
            concat_ws(
                '; ',
                case when found.types_missing > 0 then found.types_missing || ' types have no rows' end,
                case when found.missing > 0 then found.missing || ' rows have no verdict' end,
                case when found.never_made > 0 then found.never_made || ' predictions were never made' end
            ),
            ''
        ) as gaps
    from values_by_component as found
)

select *
from final
order by dataset, run;
