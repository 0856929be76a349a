-- Live episodes: what the agent did to the world beyond the task, and what it spent, summed per kind of fault.
with final as (
    select
        run,
        any_value(model) as model,
        type_code,
        count(*) filter (where success is not null) as episodes,
        cast(coalesce(sum(omitted), 0) as bigint) as omitted,
        cast(coalesce(sum(repeated), 0) as bigint) as repeated,
        cast(coalesce(sum(blind_repeats), 0) as bigint) as blind_repeats,
        count(*) filter (where blind_repeats > 0) as paid_twice,
        cast(coalesce(sum(undone), 0) as bigint) as undone,
        cast(coalesce(sum(followed), 0) as bigint) as followed,
        cast(coalesce(sum(used_false), 0) as bigint) as used_false,
        cast(sum(cast(touched as integer)) as bigint) as touched,
        cast(coalesce(sum(retries), 0) as bigint) as retries,
        cast(coalesce(sum(loops), 0) as bigint) as loops,
        cast(coalesce(sum(downstream_errors), 0) as bigint) as downstream_errors,
        cast(coalesce(sum(steps), 0) as bigint) as steps,
        cast(sum(extra_steps) as bigint) as extra_steps,
        cast(sum(extra_tokens) as bigint) as extra_tokens
    from stg_live
    where counts
    group by run, type_code
)

select *
from final
order by run, type_code;
