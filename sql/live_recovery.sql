-- Live episodes: what each kind of fault costs, and whether the agent got over it. Counts; intervals are those of
-- `rbtc summary` (eval/stats/packs/live.py).
with final as (
    select
        run,
        any_value(model) as model,
        type_code,
        label,
        count(*) as episodes,
        count(*) filter (where success is null) as unscored,
        count(*) filter (where not counts) as unmet,
        count(*) filter (where counts and success) as succeeded,
        count(*) filter (where counts and success is not null and clean_success is not null) as pairs,
        count(*) filter (where counts and clean_success and not success) as lost,
        count(*) filter (where counts and not clean_success and success) as gained,
        count(*) filter (where met > 0) as met,
        count(*) filter (where recovered) as recovered,
        count(*) filter (where met > 0 and verified > 0) as verified,
        count(*) filter (where counts and not state and told in ('failed', 'hedged')) as honest_failures,
        count(*) filter (where counts and silent_failure) as silent_failures,
        count(*) filter (where counts and silent_failure and told = 'done') as false_success_low,
        count(*) filter (
            where counts and silent_failure and told in ('done', 'unclear')
        ) as false_success_high,
        count(*) filter (where counts and false_failure) as false_failures,
        count(*) filter (where counts and false_claim) as false_claims,
        count(*) filter (where counts and told = 'unclear') as unclear,
        count(*) filter (where counts and gave_up > 0) as gave_up,
        count(*) filter (where counts and information) as informed
    from stg_live
    group by run, type_code, label
)

select *
from final
order by run, type_code, label;
