-- Whether losses add up: I = Δ of a mixed type − the sum of its parts' Δ, over the samples whose rows of `clean`,
-- of every part and of the mixture were all answered. Above 0 the mixture costs more than its parts together.
with answers as (
    select
        run,
        any_value(model) as model,
        clean_id,
        type_code,
        count(correct) as n,
        count(*) filter (where correct) as correct
    from stg_predictions
    group by run, clean_id, type_code
),

repeats as (
    select
        run,
        count(distinct repeat) as repeats
    from stg_predictions
    group by run
),

mixtures as (
    select
        type_code as mixture,
        type_order,
        string_split(replace(type_code, 'mix__', ''), '__') as parts
    from stg_types
    where starts_with(type_code, 'mix__')
),

cells as (
    select
        mixture,
        type_order,
        parts,
        unnest(list_concat(['clean', mixture], parts)) as type_code
    from mixtures
),

samples as (
    select
        answers.run,
        any_value(answers.model) as model,
        cells.mixture,
        any_value(cells.type_order) as type_order,
        any_value(cells.parts) as parts,
        answers.clean_id,
        any_value(repeats.repeats) as repeats,
        sum(answers.correct) filter (where answers.type_code = 'clean') as clean,
        sum(answers.correct) filter (where answers.type_code = cells.mixture) as mixed,
        sum(answers.correct) filter (where answers.type_code not in ('clean', cells.mixture)) as alone
    from answers
    inner join cells on answers.type_code = cells.type_code
    inner join repeats on answers.run = repeats.run
    where answers.n = repeats.repeats
    group by answers.run, cells.mixture, answers.clean_id
    having count(*) = len(any_value(cells.parts)) + 2
),

final as (
    select
        run,
        any_value(model) as model,
        mixture,
        array_to_string(any_value(parts), ' + ') as parts,
        count(*) as n,
        sum(clean) / (count(*) * any_value(repeats)) as clean_accuracy,
        sum(len(parts) * clean - alone) / (count(*) * any_value(repeats)) as losses,
        sum(clean - mixed) / (count(*) * any_value(repeats)) as loss,
        sum(alone - (len(parts) - 1) * clean - mixed) / (count(*) * any_value(repeats)) as interaction,
        any_value(type_order) as type_order
    from samples
    group by run, mixture
)

select * exclude (type_order)
from final
order by run, type_order;
