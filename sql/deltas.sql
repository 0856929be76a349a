-- Δ and Δ matched side by side. Δ sets a type against clean over all samples, as the paper does; Δ matched sets
-- every perturbed answer against the clean answer to the same sample. Both are positive when worse.
with matched as (
    select
        run,
        component,
        type_code,
        sum(clean_correct::int - perturbed_correct::int) / count(*) as delta_matched,
        count(*) as pairs
    from int_pairs
    where core
    group by grouping sets ((run, component, type_code), (run, component), (run))
),

cells as (
    select dataset, run, model, component, type_code, n, clean_accuracy, accuracy, delta, type_order
    from int_cells
    where core and type_code <> 'clean'
    union all
    select dataset, run, model, component, null, n, clean_accuracy, accuracy, delta, null
    from int_components
    where component <> 'clean'
),

final as (
    select
        cells.dataset,
        cells.run,
        cells.model,
        cells.component,
        cells.type_code,
        cells.n,
        cells.clean_accuracy,
        cells.accuracy,
        cells.delta,
        case when cells.delta is not null then matched.delta_matched end as delta_matched,
        matched.pairs,
        cells.type_order
    from cells
    left join matched
        on cells.run = matched.run
        and nullif(cells.component, 'perturbed') is not distinct from matched.component
        and cells.type_code is not distinct from matched.type_code
)

select * exclude (type_order)
from final
order by dataset, run, type_order nulls first, component;
