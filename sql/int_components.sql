-- Correct of n per run and component, `clean` and `perturbed` included, weighted by samples. A value is null where
-- a type or a row is missing, unless the variable `allow_missing` is true.
create or replace view int_components as
with cells as materialized (
    select * from int_cells
),

wanted as (
    select component, count(*) as types_wanted from stg_types where core group by component
    union all
    select 'perturbed', count(*) from stg_types where core
    union all
    select 'clean', 1
),

runs as (
    select
        dataset,
        run,
        any_value(model) as model,
        any_value(mode) as mode,
        max(never_made) as never_made
    from cells
    group by dataset, run
),

dealt as (
    select run, coalesce(component, 'clean') as component, type_code, n, correct, missing
    from cells
    where core
    union all
    select run, 'perturbed', type_code, n, correct, missing
    from cells
    where core and type_code <> 'clean'
),

pooled as (
    select
        run,
        component,
        sum(n)::bigint as n,
        sum(correct)::bigint as correct,
        sum(missing)::bigint as missing,
        count(*) filter (where n > 0) as types
    from dealt
    group by run, component
),

valued as (
    select
        runs.dataset,
        runs.run,
        runs.model,
        runs.mode,
        wanted.component,
        coalesce(pooled.n, 0) as n,
        coalesce(pooled.correct, 0) as correct,
        coalesce(pooled.missing, 0) as missing,
        wanted.types_wanted - coalesce(pooled.types, 0) as types_missing,
        runs.never_made,
        case
            when pooled.n > 0
                and (
                    (pooled.missing = 0 and pooled.types = wanted.types_wanted and runs.never_made = 0)
                    or coalesce(getvariable('allow_missing'), false)
                )
            then pooled.correct / pooled.n
        end as accuracy
    from runs
    cross join wanted
    left join pooled on runs.run = pooled.run and wanted.component = pooled.component
),

final as (
    select
        *,
        max(accuracy) filter (where component = 'clean') over (partition by run) as clean_accuracy,
        clean_accuracy - accuracy as delta
    from valued
)

select * from final;
