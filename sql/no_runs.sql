-- Stands in for stg_runs and stg_predictions while no run is given.
create or replace view stg_runs as
select
    cast(null as varchar) as run,
    cast(null as varchar) as dataset,
    cast(null as varchar) as version,
    cast(null as varchar) as fingerprint,
    cast(null as bigint) as expected,
    cast(null as integer) as repeats,
    cast(null as bigint) as predictions
where false;

create or replace view stg_predictions as
select
    cast(null as varchar) as run,
    cast(null as varchar) as model,
    cast(null as varchar) as mode,
    cast(null as varchar) as id,
    cast(null as varchar) as clean_id,
    cast(null as varchar) as type_code,
    cast(null as varchar) as source,
    cast(null as varchar) as category,
    cast(null as integer) as repeat,
    cast(null as varchar) as sample_hash,
    cast(null as varchar) as status,
    cast(null as varchar) as raw_output,
    cast(null as boolean) as injected,
    cast(null as varchar) as first_output,
    cast(null as varchar) as first_tool_calls,
    cast(null as varchar) as finish_reason,
    cast(null as bigint) as prompt_tokens,
    cast(null as bigint) as completion_tokens,
    cast(null as double) as latency_s,
    cast(null as integer) as retries,
    cast(null as varchar) as calls,
    cast(null as varchar) as variant,
    cast(null as double) as score,
    cast(null as boolean) as correct,
    cast(null as varchar) as reason,
    cast(null as varchar) as error_mode,
    cast(null as varchar[]) as flags,
    cast(null as varchar) as stage,
    cast(null as varchar) as stage_detail,
    cast(null as integer) as attempts,
    cast(null as integer) as native_calls
where false;
