-- Accuracy per source and component. `mean_score` keeps partial credit (ToolEyes) and is not an accuracy.
with final as (
    select
        predictions.run,
        any_value(predictions.model) as model,
        predictions.source,
        case when stg_types.core is false then 'extension' else coalesce(stg_types.component, 'clean') end as component,
        count(predictions.correct) as n,
        count(*) filter (where predictions.correct) as correct,
        count(*) - count(predictions.correct) as missing,
        case
            when count(predictions.correct) > 0
                and (
                    count(*) = count(predictions.correct) or coalesce(getvariable('allow_missing'), false)
                )
            then count(*) filter (where predictions.correct) / count(predictions.correct)
        end as accuracy,
        avg(predictions.score) as mean_score
    from stg_predictions as predictions
    left join stg_types on predictions.type_code = stg_types.type_code
    group by all
)

select *
from final
order by run, source, component;
