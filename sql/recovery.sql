-- What a model does after the injected error (transition types). The classes are rules over the second reply:
--   retried_right    it is correct
--   retried_wrong    it calls a tool that the first reply named, and is wrong
--   other_tool       it calls only tools that the first reply did not name, and is wrong
--   claimed_success  no call, and the text says the thing is done
--   gave_up          no call, and it does not
-- Rows whose first reply had no call met no error and are counted apart.
with replies as (
    select
        predictions.run,
        predictions.model,
        predictions.type_code,
        predictions.injected,
        predictions.correct,
        lower(coalesce(predictions.raw_output, '')) as reply,
        coalesce(predictions.first_output, '') || coalesce(predictions.first_tool_calls, '') as first_reply,
        list_transform(
            json_extract_string(coalesce(predictions.calls, '[]'), '$[*].name'), lambda name: trim(name)
        ) as names
    from stg_predictions as predictions
    inner join stg_types on predictions.type_code = stg_types.type_code
    where predictions.injected is not null and predictions.correct is not null and stg_types.channel = 'tool_result'
),

classed as (
    select
        run,
        model,
        type_code,
        case
            when not injected then 'no_first_call'
            when correct then 'retried_right'
            when len(names) > 0 and len(list_filter(names, lambda name: contains(first_reply, name))) > 0
                then 'retried_wrong'
            when len(names) > 0 then 'other_tool'
            when regexp_matches(
                reply,
                '\b(successful(ly)?|done|completed|has been|have been|was (added|sent|created|booked|set|updated)|here (is|are)|i''ve|i have)\b'
            )
            and not regexp_matches(
                reply,
                '\b(unable|cannot|can''t|could ?n[o'']t|couldn''t|failed|fail|not been|unfortunately|sorry|apologi[sz]e|error|unsuccessful)\b'
            )
                then 'claimed_success'
            else 'gave_up'
        end as outcome
    from replies
),

final as (
    select
        classed.run,
        any_value(classed.model) as model,
        classed.type_code,
        count(*) as n,
        count(*) filter (where outcome <> 'no_first_call') as injected,
        count(*) filter (where outcome = 'retried_right') as retried_right,
        count(*) filter (where outcome = 'retried_wrong') as retried_wrong,
        count(*) filter (where outcome = 'other_tool') as other_tool,
        count(*) filter (where outcome = 'claimed_success') as claimed_success,
        count(*) filter (where outcome = 'gave_up') as gave_up,
        count(*) filter (where outcome = 'no_first_call') as no_first_call,
        any_value(stg_types.type_order) as type_order
    from classed
    inner join stg_types on classed.type_code = stg_types.type_code
    group by classed.run, classed.type_code
)

select * exclude (type_order)
from final
order by run, type_order;
