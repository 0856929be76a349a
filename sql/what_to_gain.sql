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

rows_of_run as (
    select run, sum(pairs) as perturbed_rows from lost group by run
),

modes as (
    select run, type_code, mode(error_mode) as most_frequent_error
    from stg_predictions
    where correct = false
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
        lost.lost / rows_of_run.perturbed_rows as perturbed_accuracy_gain,
        modes.most_frequent_error
    from lost
    inner join rows_of_run on lost.run = rows_of_run.run
    left join modes on lost.run = modes.run and lost.type_code = modes.type_code
)

select *
from final
order by run, lost desc, type_code;
