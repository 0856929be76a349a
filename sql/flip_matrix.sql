-- The four outcomes of anchored pairs, per type.
with final as (
    select
        run,
        any_value(model) as model,
        component,
        type_code,
        count(*) as pairs,
        count(*) filter (where clean_correct and perturbed_correct) as both_right,
        count(*) filter (where clean_correct and not perturbed_correct) as lost,
        count(*) filter (where not clean_correct and perturbed_correct) as gained,
        count(*) filter (where not clean_correct and not perturbed_correct) as both_wrong,
        type_order
    from int_pairs
    group by run, component, type_code, type_order
)

select * exclude (type_order)
from final
order by run, type_order;
