-- What replies decide where calling nothing can be right (pack abstention), and balanced decision accuracy: the mean
-- of the share right where a call is due and where none is, types weighing the same within each side. The classes are
-- flags of the verdicts; an unparsable reply is wrong on both sides.
with decided as (
    select
        predictions.run,
        predictions.model,
        predictions.type_code,
        stg_types.type_order,
        stg_types.no_call = 'wrong' as call_due,
        list_filter(
            coalesce(predictions.flags, []),
            lambda flag: flag in ('called', 'asked', 'refused', 'answered', 'unparsable')
        )[1] as decision
    from stg_predictions as predictions
    inner join stg_types on predictions.type_code = stg_types.type_code
    where stg_types.pack = 'abstention' and predictions.correct is not null
),

types as (
    select
        run,
        any_value(model) as model,
        type_code,
        call_due,
        count(*) as n,
        count(*) filter (
            where case when call_due then decision = 'called' else decision in ('asked', 'refused', 'answered') end
        ) as right_decisions,
        count(*) filter (where decision = 'called') as called,
        count(*) filter (where decision = 'asked') as asked,
        count(*) filter (where decision = 'refused') as refused,
        count(*) filter (where decision = 'answered') as answered,
        count(*) filter (where decision = 'unparsable') as unparsable,
        any_value(type_order) as type_order
    from decided
    where decision is not null
    group by run, type_code, call_due
),

sides as (
    select
        run,
        call_due,
        avg(right_decisions / n) as share
    from types
    group by run, call_due
),

balanced as (
    select
        run,
        case when count(*) = 2 then avg(share) end as balanced_accuracy
    from sides
    group by run
),

final as (
    select
        types.run,
        types.model,
        types.type_code,
        types.call_due,
        types.n,
        types.right_decisions,
        types.right_decisions / types.n as share_right,
        types.called,
        types.asked,
        types.refused,
        types.answered,
        types.unparsable,
        balanced.balanced_accuracy,
        types.type_order
    from types
    inner join balanced on types.run = balanced.run
)

select * exclude (type_order)
from final
order by run, type_order;
