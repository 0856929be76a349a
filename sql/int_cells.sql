-- Correct of n per run and type, runs and paper alike. `missing` counts rows that should have a verdict and
-- have none: no answer was had, or the release has the row and the run has not. `expected` is what the run
-- record promises over all types.
create or replace view int_cells as
with counted as (
    select
        run,
        any_value(model) as model,
        any_value(mode) as mode,
        type_code,
        count(correct) as n,
        count(*) filter (where correct) as correct,
        count(*) as predictions,
        max(repeat) + 1 as repeats
    from stg_predictions
    group by run, type_code
),

listed as (
    select type_code, count(*) as rows_in_release
    from stg_release
    group by type_code
),

of_runs as (
    select
        stg_runs.dataset_version,
        counted.run,
        counted.model,
        counted.mode,
        counted.type_code,
        counted.n,
        counted.correct,
        greatest(
            counted.predictions - counted.n,
            coalesce(listed.rows_in_release * counted.repeats - counted.n, 0)
        ) as missing,
        counted.predictions,
        stg_runs.expected
    from counted
    left join stg_runs on counted.run = stg_runs.run
    left join listed on counted.type_code = listed.type_code
),

every as (
    select * from of_runs
    union all
    select *, 0 as missing, n as predictions, null as expected from stg_paper_cells
),

final as (
    select
        every.dataset_version,
        every.run,
        every.model,
        every.mode,
        every.type_code,
        stg_types.component,
        every.n,
        every.correct,
        every.missing,
        every.predictions,
        every.expected,
        case
            when every.n > 0 and (every.missing = 0 or coalesce(getvariable('allow_missing'), false))
            then every.correct / every.n
        end as accuracy,
        coalesce(stg_types.core, every.type_code = 'clean') as core,
        coalesce(stg_types.type_order, 0) as type_order
    from every
    left join stg_types on every.type_code = stg_types.type_code
)

select * from final;
