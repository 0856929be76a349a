-- Anchored pairs: each perturbed answer beside the same run's answer to its clean row.
create or replace view int_pairs as
with clean as (
    select run, clean_id, repeat, correct
    from stg_predictions
    where type_code = 'clean' and correct is not null
),

final as (
    select
        perturbed.run,
        perturbed.model,
        perturbed.id,
        perturbed.clean_id,
        perturbed.source,
        perturbed.type_code,
        stg_types.component,
        stg_types.core,
        stg_types.type_order,
        perturbed.repeat,
        clean.correct as clean_correct,
        perturbed.correct as perturbed_correct
    from int_answers as perturbed
    inner join clean
        on perturbed.run = clean.run
        and perturbed.clean_id = clean.clean_id
        and perturbed.repeat = clean.repeat
    inner join stg_types on perturbed.type_code = stg_types.type_code
    where perturbed.correct is not null
)

select * from final;
