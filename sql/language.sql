-- The language pack: what another language costs, and how many wrong answers left a value in the user's language.
-- `execution` compares rows with values kept and with values translated, on the samples that have both.
with answers as (
    select
        run,
        model,
        type_code,
        regexp_extract(type_code, '_([a-z]{2})$', 1) as language,
        if(starts_with(type_code, 'language_full_'), 'translated', 'kept') as values_are,
        clean_id,
        repeat,
        correct,
        error_mode
    from stg_predictions
    where type_code in (select stg_types.type_code from stg_types where stg_types.pack = 'language') and correct is not null
),

counted as (
    select
        run,
        any_value(model) as model,
        type_code,
        any_value(language) as language,
        any_value(values_are) as values_are,
        count(*) as n,
        count(*) filter (where not correct) as wrong,
        count(*) filter (where not correct and error_mode = 'wrong_language') as wrong_language
    from answers
    group by run, type_code
),

deltas as (
    select
        run,
        type_code,
        count(*) as pairs,
        avg(cast(clean_correct as integer) - cast(perturbed_correct as integer)) as delta
    from int_pairs
    group by run, type_code
),

same_samples as (
    select
        translated.run,
        translated.type_code,
        count(distinct translated.clean_id) as samples,
        avg(cast(kept.correct as integer) - cast(translated.correct as integer)) as execution
    from answers as translated
    inner join answers as kept
        on translated.run = kept.run
        and translated.language = kept.language
        and translated.clean_id = kept.clean_id
        and translated.repeat = kept.repeat
    where translated.values_are = 'translated' and kept.values_are = 'kept'
    group by translated.run, translated.type_code
),

final as (
    select
        counted.run,
        counted.model,
        counted.language,
        counted.type_code,
        counted.values_are,
        counted.n,
        deltas.pairs,
        deltas.delta,
        same_samples.samples,
        same_samples.execution,
        counted.wrong,
        counted.wrong_language,
        counted.wrong_language / nullif(counted.wrong, 0) as share,
        stg_types.type_order
    from counted
    left join deltas on counted.run = deltas.run and counted.type_code = deltas.type_code
    left join same_samples on counted.run = same_samples.run and counted.type_code = same_samples.type_code
    left join stg_types on counted.type_code = stg_types.type_code
)

select * exclude (type_order)
from final
order by run, type_order;
