-- One row per run folder in the variable `runs`, from its run.json. Types are stated, none is guessed.
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

final as (
    select
        left(filename, length(filename) - length('/run.json')) as run,
        coalesce(dataset_version, 'unversioned') as dataset_version,
        json_extract_string(settings, '$.fingerprint') as fingerprint,
        expected
    from records
)

select * from final;
