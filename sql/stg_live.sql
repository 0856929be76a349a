-- Every scored episode of the live run folders in the variable `live_runs`, beside its clean episode. An episode
-- without an answer (`request_error`) has no scores. `counts`: an episode that never met its fault says nothing of it.
create or replace view stg_live as
with scored as (
    select * exclude (filename), left(filename, length(filename) - length('/scores.parquet')) as run
    from read_parquet(
        list_transform(getvariable('live_runs'), lambda folder: folder || '/scores.parquet'),
        filename = true,
        union_by_name = true
    )
),

final as (
    select
        scored.* exclude (turns),
        scored.label is null or scored.met > 0 as counts,
        clean.success as clean_success,
        clean.information as clean_information
    from scored
    left join scored as clean
        on
            scored.run = clean.run
            and scored.clean_id = clean.clean_id
            and scored.repeat = clean.repeat
            and clean.type_code = 'clean'
)

select * from final;
