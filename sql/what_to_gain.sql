-- What a model would gain if a type no longer hurt it: types by samples lost, with the most frequent way to fail.
with lost as (
    select
        pairs.run,
        any_value(pairs.model) as model,
        pairs.component,
        pairs.type_code,
        count(*) as pairs,
        count(*) filter (where pairs.clean_correct and not pairs.perturbed_correct) as lost,
        count(*) filter (where not pairs.clean_correct and pairs.perturbed_correct) as gained
    from int_pairs as pairs
    where pairs.core
    group by pairs.run, pairs.component, pairs.type_code
),

perturbed as (
    select run, n from int_components where component = 'perturbed'
),

wrong as (
    select run, type_code, coalesce(error_mode, 'other') as error_mode, count(*) as n
    from stg_predictions
    where correct = false
    group by all
),

modes as (
    select run, type_code, first(error_mode order by n desc, error_mode) as most_frequent_error
    from wrong
    group by run, type_code
),

final as (
    select
        lost.run,
        lost.model,
        lost.component,
        lost.type_code,
        lost.pairs,
        lost.lost,
        lost.gained,
        lost.lost / perturbed.n as perturbed_accuracy_gain,
        modes.most_frequent_error
    from lost
    inner join perturbed on lost.run = perturbed.run
    left join modes on lost.run = modes.run and lost.type_code = modes.type_code
)

select *
from final
order by run, lost desc, type_code;
