-- Accuracy by dose of every series that a run holds two doses of: over all rows of a dose, and over the samples
-- whose rows of every dose (in every repeat) were answered.
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

dosed as (
    select
        answers.*,
        stg_types.series,
        stg_types.dose,
        stg_types.type_order
    from answers
    inner join stg_types on answers.type_code = stg_types.type_code
    where stg_types.series <> ''
),

totals as (
    select
        run,
        any_value(model) as model,
        series,
        type_code,
        any_value(dose) as dose,
        any_value(type_order) as type_order,
        sum(n) as n,
        sum(correct) as correct
    from dosed
    group by run, series, type_code
    having sum(n) > 0
),

doses_there as (
    select
        run,
        series,
        count(*) as doses
    from totals
    group by run, series
    having count(*) > 1
),

common as (
    select
        dosed.run,
        dosed.series,
        dosed.clean_id
    from dosed
    inner join doses_there on dosed.run = doses_there.run and dosed.series = doses_there.series
    inner join repeats on dosed.run = repeats.run
    where dosed.n = repeats.repeats
    group by dosed.run, dosed.series, dosed.clean_id
    having count(*) = any_value(doses_there.doses)
),

over_common as (
    select
        common.run,
        common.series,
        answers.type_code,
        count(*) as common_n,
        sum(answers.n) as answers_n,
        sum(answers.correct) as correct
    from common
    inner join answers on common.run = answers.run and common.clean_id = answers.clean_id
    group by common.run, common.series, answers.type_code
),

final as (
    select
        totals.run,
        totals.model,
        totals.series,
        totals.dose,
        totals.type_code,
        cast(totals.n as bigint) as n,
        cast(totals.correct as bigint) as correct,
        totals.correct / totals.n as accuracy,
        coalesce(same.common_n, 0) as common_n,
        clean.correct / nullif(clean.answers_n, 0) as common_clean_accuracy,
        same.correct / nullif(same.answers_n, 0) as common_accuracy,
        totals.type_order
    from totals
    inner join doses_there on totals.run = doses_there.run and totals.series = doses_there.series
    left join over_common as same
        on totals.run = same.run and totals.series = same.series and totals.type_code = same.type_code
    left join over_common as clean
        on totals.run = clean.run and totals.series = clean.series and clean.type_code = 'clean'
)

select * exclude (type_order)
from final
order by run, series, type_order;
