-- One row per run folder in the variable `runs`, from its run.json. Types are stated, none is guessed. `dataset` is
-- the first eight digits of the dataset's fingerprint, equal for a build and its release; `version` is the release's.
-- `expected` and `repeats` are what the record promises, `predictions` is what scores.parquet holds.
create or replace view stg_runs as
with records as (
    select *
    from read_json(
        list_transform(getvariable('runs'), lambda folder: folder || '/run.json'),
        format = 'unstructured',
        filename = true,
        columns = {
            'dataset_version': 'varchar',
            'settings': 'json',
            'expected': 'bigint'
        }
    )
),

written as (
    select left(filename, length(filename) - length('/scores.parquet')) as run, count(*) as predictions
    from read_parquet(
        list_transform(getvariable('runs'), lambda folder: folder || '/scores.parquet'),
        filename = true,
        union_by_name = true
    )
    group by filename
),

named as (
    select left(filename, length(filename) - length('/run.json')) as run, * exclude (filename) from records
),

final as (
    select
        named.run,
        coalesce(left(json_extract_string(named.settings, '$.fingerprint'), 8), 'unknown') as dataset,
        named.dataset_version as version,
        json_extract_string(named.settings, '$.fingerprint') as fingerprint,
        named.expected,
        coalesce(try_cast(json_extract_string(named.settings, '$.repeat') as integer), 1) as repeats,
        coalesce(written.predictions, 0) as predictions
    from named
    left join written on named.run = written.run
)

select * from final;
