-- What a run has and lacks: rows per type, those without a verdict, those the release has and the run has not.
with asked as (
    select
        run,
        any_value(model) as model,
        type_code,
        max(repeat) + 1 as repeats,
        count(*) as predictions,
        count(correct) as verdicts,
        count(*) filter (where status = 'request_error') as request_errors,
        count(*) filter (where status = 'agent_error') as agent_errors,
        count(*) filter (where status = 'rejected') as rejected,
        count(*) filter (where status = 'too_long') as too_long,
        count(*) filter (where finish_reason = 'length') as cut_at_limit
    from stg_predictions
    group by run, type_code
),

listed as (
    select type_code, count(*) as rows_in_release
    from stg_release
    group by type_code
),

conditions as (
    select type_code, type_order, core from stg_types
    union all
    select 'clean', 0, true
),

runs as (
    select distinct run, model, repeats from asked
),

run_repeats as (
    select run, any_value(model) as model, max(repeats) as repeats from runs group by run
),

final as (
    select
        run_repeats.run,
        run_repeats.model,
        conditions.type_code,
        listed.rows_in_release * run_repeats.repeats as expected,
        coalesce(asked.predictions, 0) as predictions,
        coalesce(asked.verdicts, 0) as verdicts,
        coalesce(asked.request_errors, 0) as request_errors,
        coalesce(asked.agent_errors, 0) as agent_errors,
        coalesce(asked.rejected, 0) as rejected,
        coalesce(asked.too_long, 0) as too_long,
        coalesce(asked.cut_at_limit, 0) as cut_at_limit,
        conditions.type_order
    from run_repeats
    cross join conditions
    left join asked on run_repeats.run = asked.run and conditions.type_code = asked.type_code
    left join listed on conditions.type_code = listed.type_code
    where conditions.core or asked.predictions > 0
)

select * exclude (type_order)
from final
order by run, type_order;
