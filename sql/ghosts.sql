-- What replies make of a tool that is named and not registered (types ghost_tool_*). Right are the gold (not in
-- ghost_tool_3), asking and declining (not in ghost_tool_1). The classes are flags of the verdict.
with replies as (
    select
        run,
        model,
        type_code,
        correct,
        coalesce(flags, []) as flags
    from stg_predictions
    where type_code like 'ghost\_tool\_%' escape '\' and correct is not null
),

classed as (
    select
        run,
        model,
        type_code,
        case
            when not correct and list_contains(flags, 'called_ghost') then 'ghost'
            when not correct then 'something_else'
            when list_contains(flags, 'called') then 'gold'
            when list_contains(flags, 'asked') then 'asks'
            else 'declines'
        end as made
    from replies
),

final as (
    select
        classed.run,
        any_value(classed.model) as model,
        classed.type_code,
        count(*) as n,
        count(*) filter (where made = 'gold') as gold,
        count(*) filter (where made = 'asks') as asks,
        count(*) filter (where made = 'declines') as declines,
        count(*) filter (where made = 'ghost') as ghost,
        count(*) filter (where made = 'something_else') as something_else,
        any_value(stg_types.type_order) as type_order
    from classed
    inner join stg_types on classed.type_code = stg_types.type_code
    group by classed.run, classed.type_code
)

select * exclude (type_order)
from final
order by run, type_order;
