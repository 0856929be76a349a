-- Whether a model reads the offer: right on a core row and on its swapped counterpart, in which only the two
-- annotations and the gold have changed places. Sum over the types that state the preference; the others apart.
with final as (
    select
        core.run,
        any_value(core.model) as model,
        core.type_code,
        not core.type_code in ('CD_AB', 'TD_AB') as preference_stated,
        count(*) as pairs,
        count(*) filter (where core.correct and swapped.correct) as reads_the_offer,
        count(*) filter (where core.correct and not swapped.correct) as core_only,
        count(*) filter (where not core.correct and swapped.correct) as swapped_only,
        count(*) filter (where not core.correct and not swapped.correct) as neither,
        count(*) filter (where core.correct and swapped.correct) / count(*) as share,
        any_value(stg_types.type_order) as type_order
    from stg_predictions as core
    inner join stg_predictions as swapped
        on core.run = swapped.run
        and core.clean_id = swapped.clean_id
        and core.repeat = swapped.repeat
        and swapped.type_code = core.type_code || '_swap'
    inner join stg_types on core.type_code = stg_types.type_code
    where core.correct is not null and swapped.correct is not null
    group by core.run, core.type_code
)

select * exclude (type_order)
from final
order by run, type_order;
