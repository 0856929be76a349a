-- Accuracy per run and type, `clean` included.
with final as (
    select
        dataset,
        run,
        model,
        mode,
        type_code,
        component,
        n,
        correct,
        missing,
        accuracy,
        type_order
    from int_cells
)

select * exclude (type_order)
from final
order by dataset, run, type_order;
