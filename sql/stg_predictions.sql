-- Every prediction with its verdict, of the run folders in the variable `runs`. A request_error is not an answer:
-- its verdict is null, whatever the file says.
create or replace view stg_predictions as
with scored as (
    select *
    from read_parquet(
        list_transform(getvariable('runs'), lambda folder: folder || '/scores.parquet'),
        filename = true,
        union_by_name = true
    )
    -- Files of before verdicts had flags: then nothing is known to be unanswerable. Of before they had stages, or
    -- attempts were counted: then those are null.
    union all by name
    select
        cast(null as varchar[]) as flags,
        cast(null as varchar) as stage,
        cast(null as varchar) as stage_detail,
        cast(null as integer) as attempts,
        cast(null as integer) as native_calls
    where false
),

unstated as (
    select distinct filename, clean_id, type_code
    from scored
    where list_contains(flags, 'gold_not_stated')
),

final as (
    select
        left(filename, length(filename) - length('/scores.parquet')) as run,
        model,
        mode,
        id,
        clean_id,
        type_code,
        source,
        category,
        repeat,
        sample_hash,
        status,
        raw_output,
        injected,
        first_output,
        first_tool_calls,
        finish_reason,
        prompt_tokens,
        completion_tokens,
        latency_s,
        retries,
        calls,
        variant,
        case when status <> 'request_error' then score end as score,
        case when status <> 'request_error' then correct end as correct,
        reason,
        error_mode,
        coalesce(flags, []) as flags,
        stage,
        stage_detail,
        attempts,
        native_calls
    from scored
    where in_subset(type_code, source, clean_id)
        and (
            coalesce(getvariable('subset'), 'all') <> 'verified'
            or (filename, clean_id, type_code) not in (
                select (unstated.filename, unstated.clean_id, unstated.type_code) from unstated
            )
        )
)

select * from final;
