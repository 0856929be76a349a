-- The appendix's per-type tables: each type beside clean.
with final as (
    select
        cells.dataset,
        cells.component,
        cells.type_code,
        stg_types.display_name,
        stg_types.label,
        cells.run,
        cells.model,
        cells.n,
        cells.correct,
        cells.missing,
        cells.clean_accuracy,
        cells.accuracy,
        cells.delta,
        cells.type_order
    from int_cells as cells
    inner join stg_types on cells.type_code = stg_types.type_code
)

select * exclude (type_order)
from final
order by dataset, type_order, run;
