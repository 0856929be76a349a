-- The first stage at which wrong answers fail, per type: the rows of a type add up to its wrong answers. Verdicts
-- of before there were stages have `unknown` (`rbtc score` makes them again).
with wrong as (
    select
        predictions.run,
        predictions.model,
        stg_types.component,
        predictions.type_code,
        coalesce(predictions.stage, 'unknown') as stage,
        coalesce(predictions.stage_detail, '') as detail,
        count(*) as n,
        coalesce(stg_types.type_order, 0) as type_order
    from stg_predictions as predictions
    left join stg_types on predictions.type_code = stg_types.type_code
    where predictions.correct = false
    group by all
),

answered as (
    select run, type_code, count(correct) as rows_with_verdict
    from stg_predictions
    group by run, type_code
),

final as (
    select
        wrong.run,
        wrong.model,
        wrong.component,
        wrong.type_code,
        wrong.stage,
        wrong.detail,
        wrong.n,
        wrong.n / sum(wrong.n) over (partition by wrong.run, wrong.type_code) as share_of_wrong,
        wrong.n / answered.rows_with_verdict as share_of_rows,
        wrong.type_order,
        coalesce(
            list_position(
                ['decide', 'format', 'select', 'identify', 'fill', 'recover'], wrong.stage
            ),
            7
        ) as stage_order
    from wrong
    inner join answered on wrong.run = answered.run and wrong.type_code = answered.type_code
)

select * exclude (type_order, stage_order)
from final
order by run, type_order, stage_order, n desc, detail;
