-- Tokens and seconds, in all and per correct answer. Seconds are the endpoint's, summed over passes.
with final as (
    select
        predictions.run,
        any_value(predictions.model) as model,
        case when stg_types.core is false then 'extension' else coalesce(stg_types.component, 'clean') end as component,
        count(predictions.correct) as n,
        count(*) filter (where predictions.correct) as correct,
        sum(predictions.prompt_tokens)::bigint as prompt_tokens,
        sum(predictions.completion_tokens)::bigint as completion_tokens,
        sum(predictions.completion_tokens) / nullif(count(*) filter (where predictions.correct), 0)
            as completion_tokens_per_correct,
        sum(predictions.latency_s) as seconds,
        sum(predictions.latency_s) / nullif(count(*) filter (where predictions.correct), 0) as seconds_per_correct,
        quantile_cont(predictions.latency_s, 0.5) as latency_p50_s,
        quantile_cont(predictions.latency_s, 0.95) as latency_p95_s,
        sum(predictions.retries)::bigint as retries,
        count(*) filter (where predictions.finish_reason = 'length') as cut_at_limit
    from stg_predictions as predictions
    left join stg_types on predictions.type_code = stg_types.type_code
    group by all
)

select *
from final
order by run, component;
