-- How wrong answers are wrong, per type. The paper's "wrong call" is wrong_name, ghost, wrong_parameters and name_bias;
-- a value in the user's language (wrong_language) is one too.
with wrong as (
    select
        predictions.run,
        predictions.model,
        stg_types.component,
        predictions.type_code,
        coalesce(predictions.error_mode, 'other') as error_mode,
        count(*) as n,
        coalesce(stg_types.type_order, 0) as type_order
    from stg_predictions as predictions
    left join stg_types on predictions.type_code = stg_types.type_code
    where predictions.correct = false
    group by all
),

final as (
    select
        run,
        model,
        component,
        type_code,
        error_mode,
        error_mode in ('wrong_name', 'ghost', 'wrong_parameters', 'name_bias', 'wrong_language') as wrong_call,
        n,
        n / sum(n) over (partition by run, type_code) as share_of_wrong,
        type_order
    from wrong
)

select * exclude (type_order)
from final
order by run, type_order, n desc, error_mode;
