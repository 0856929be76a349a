-- How often a model tries where the error does not go away (types that count their tries). `tries` are calls that met
-- the error; whoever still calls after the last error would have gone on.
with counted as (
    select
        predictions.run,
        predictions.model,
        predictions.type_code,
        predictions.attempts,
        predictions.attempts >= cast(json_extract_string(stg_types.traits, '$.times') as integer)
        and coalesce(predictions.error_mode, '') not in ('empty', 'omitted') as still_calling,
        stg_types.type_order
    from stg_predictions as predictions
    inner join stg_types on predictions.type_code = stg_types.type_code
    where predictions.attempts is not null and predictions.correct is not null
),

final as (
    select
        run,
        any_value(model) as model,
        type_code,
        count(*) as n,
        count(*) filter (where attempts > 0) as met_the_error,
        sum(attempts)::bigint as tries,
        sum(attempts) / nullif(count(*) filter (where attempts > 0), 0) as tries_mean,
        count(*) filter (where still_calling) as still_calling,
        any_value(type_order) as type_order
    from counted
    group by run, type_code
)

select * exclude (type_order)
from final
order by run, type_order;
