-- The appendix's per-type tables: each type beside clean.
with clean as (
    select run, accuracy from int_cells where type_code = 'clean'
),

final as (
    select
        cells.dataset_version,
        cells.component,
        cells.type_code,
        stg_types.display_name,
        cells.run,
        cells.model,
        cells.n,
        cells.correct,
        cells.missing,
        clean.accuracy as clean_accuracy,
        cells.accuracy,
        clean.accuracy - cells.accuracy as delta,
        cells.type_order
    from int_cells as cells
    inner join stg_types on cells.type_code = stg_types.type_code
    left join clean on cells.run = clean.run
)

select * exclude (type_order)
from final
order by dataset_version, type_order, run;
