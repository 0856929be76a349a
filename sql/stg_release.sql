-- The rows of the release folder in the variable `release`; JSON columns stay text.
create or replace view stg_release as
with configs as (
    select *
    from read_parquet(
        getvariable('release') || '/*/test-*.parquet',
        union_by_name = true
    )
),

final as (
    select
        id,
        clean_id,
        type_code,
        source,
        category,
        messages,
        tools,
        golden_answers,
        changes,
        generator,
        flags
    from configs
    where messages is not null -- taxonomy, evidence and known_issues are tables of another kind
        and in_subset(type_code, source, clean_id)
        and (
            coalesce(getvariable('subset'), 'all') <> 'verified'
            or not coalesce(list_contains(flags, 'gold_not_stated'), false)
        )
)

select * from final;
