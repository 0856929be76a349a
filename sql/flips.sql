-- Samples whose verdict changed: lost (clean right, perturbed wrong) and gained (the way back).
with final as (
    select
        run,
        model,
        source,
        component,
        type_code,
        clean_id,
        id,
        repeat,
        case when clean_correct then 'lost' else 'gained' end as flip
    from int_pairs
    where clean_correct <> perturbed_correct
)

select *
from final
order by run, type_code, id, repeat;
