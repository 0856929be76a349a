-- Correct of n per run and type, runs and paper alike, each beside the same run's clean rows. `missing` counts
-- rows that should have a verdict and have none: no answer was had, a repeat was not asked, or the release has
-- the row and the run has not. `never_made` counts, over all types, predictions that the run record promises and
-- the file does not hold; with a release they are named by `missing`. A value that would rest on missing rows is
-- null, unless the variable `allow_missing` is true; that of a type which is not scored is always null.
create or replace view int_cells as
with asked as (
    select
        run,
        any_value(model) as model,
        any_value(mode) as mode,
        type_code,
        count(correct) as n,
        count(*) filter (where correct) as correct,
        count(*) filter (where not is_control) as predictions,
        max(repeat) + 1 as repeats,
        count(distinct clean_id) as rows_seen,
        max(is_control::int) + 1 as answers
    from int_answers
    group by run, type_code
),

runs as (
    select
        stg_runs.run,
        stg_runs.dataset,
        stg_runs.expected,
        greatest(stg_runs.repeats, max(asked.repeats)) as repeats,
        case
            when (select count(*) from stg_release) > 0 then 0
            else greatest(stg_runs.expected - stg_runs.predictions, 0)
        end as never_made
    from stg_runs
    inner join asked on stg_runs.run = asked.run
    group by stg_runs.run, stg_runs.dataset, stg_runs.expected, stg_runs.repeats, stg_runs.predictions
),

listed as (
    select type_code, count(*) as rows_in_release
    from stg_release
    group by type_code
),

had as (
    select run, type_code, count(distinct clean_id) as rows_had
    from stg_predictions
    where (clean_id, type_code) in (select (clean_id, type_code) from stg_release)
    group by run, type_code
),

of_runs as (
    select
        runs.dataset,
        asked.run,
        asked.model,
        asked.mode,
        asked.type_code,
        asked.n,
        asked.correct,
        (asked.rows_seen + coalesce(listed.rows_in_release, 0) - coalesce(had.rows_had, 0))
            * runs.repeats * asked.answers - asked.n as missing,
        asked.predictions,
        runs.expected,
        coalesce(runs.never_made, 0) as never_made
    from asked
    inner join runs on asked.run = runs.run
    left join listed on asked.type_code = listed.type_code
    left join had on asked.run = had.run and asked.type_code = had.type_code
),

every as (
    select * from of_runs
    union all
    select *, 0 as missing, n as predictions, null as expected, 0 as never_made from stg_paper_cells
),

valued as (
    select
        *,
        case
            when n > 0
                and type_code not in (select stg_types.type_code from stg_types where not stg_types.scored)
                and ((missing = 0 and never_made = 0) or coalesce(getvariable('allow_missing'), false))
            then correct / n
        end as accuracy
    from every
),

final as (
    select
        valued.dataset,
        valued.run,
        valued.model,
        valued.mode,
        valued.type_code,
        stg_types.component,
        valued.n,
        valued.correct,
        valued.missing,
        valued.predictions,
        valued.expected,
        valued.never_made,
        valued.accuracy,
        max(valued.accuracy) filter (where valued.type_code = 'clean') over (partition by valued.run)
            as clean_accuracy,
        clean_accuracy - valued.accuracy as delta,
        coalesce(stg_types.core, valued.type_code = 'clean') as core,
        coalesce(stg_types.type_order, 0) as type_order
    from valued
    left join stg_types on valued.type_code = stg_types.type_code
)

select * from final;
