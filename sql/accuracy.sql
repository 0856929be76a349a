-- Accuracy per run and type, `clean` included.
with final as (
    select
        dataset_version,
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
order by dataset_version, run, type_order;
