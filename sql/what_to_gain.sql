-- What a model would gain if a type no longer hurt it: types by net loss (lost minus gained), with the most frequent
-- way to fail. A type that loses as many as it gains has nothing to give. Whether a net loss is more than chance is
-- p: the exact sign test over samples that lose more than they gain and those that gain more. It is not corrected for
-- looking at many types; `rbtc report` corrects it.
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

samples as (
    select
        run,
        type_code,
        clean_id,
        sum(clean_correct::int - perturbed_correct::int) as net
    from int_pairs
    where core
    group by run, type_code, clean_id
),

signs as (
    select
        run,
        type_code,
        count(*) filter (where net <> 0) as n,
        least(count(*) filter (where net > 0), count(*) filter (where net < 0)) as fewer
    from samples
    group by run, type_code
),

-- Two times the binomial tail of 0 to `fewer` of n fair signs.
terms as (
    select run, type_code, n, unnest(range(0, fewer + 1)) as k
    from signs
),

tails as (
    select
        run,
        type_code,
        least(
            1, 2 * sum(exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * ln(2)) order by k)
        ) as p
    from terms
    group by run, type_code
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
        lost.lost - lost.gained as net_lost,
        (lost.lost - lost.gained) / perturbed.n as perturbed_accuracy_gain,
        tails.p,
        modes.most_frequent_error
    from lost
    inner join perturbed on lost.run = perturbed.run
    inner join tails on lost.run = tails.run and lost.type_code = tails.type_code
    left join modes on lost.run = modes.run and lost.type_code = modes.type_code
)

select *
from final
order by run, net_lost desc, type_code;
