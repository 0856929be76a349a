-- The rows of the release folder in the variable `release`, with every column; JSON columns stay text.
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
        component,
        source,
        category,
        messages,
        tools,
        golden_answers,
        gold_tool_index,
        output_format,
        changes,
        generator,
        seed,
        injected_error,
        flags,
        query,
        gold_call
    from configs
    where messages is not null -- taxonomy, evidence and known_issues are tables of another kind
        and in_subset(type_code, source, clean_id)
        and (
            coalesce(getvariable('subset'), 'all') <> 'verified'
            or not coalesce(list_contains(flags, 'gold_not_stated'), false)
        )
)

select * from final;
