-- Stands in for stg_release while no release is given.
create or replace view stg_release as
select
    cast(null as varchar) as id,
    cast(null as varchar) as clean_id,
    cast(null as varchar) as type_code,
    cast(null as varchar) as component,
    cast(null as varchar) as source,
    cast(null as varchar) as category,
    cast(null as struct(role varchar, content varchar)[]) as messages,
    cast(null as varchar) as tools,
    cast(null as varchar) as golden_answers,
    cast(null as integer) as gold_tool_index,
    cast(null as varchar) as output_format,
    cast(null as varchar) as changes,
    cast(null as varchar) as generator,
    cast(null as bigint) as seed,
    cast(null as varchar) as injected_error,
    cast(null as varchar[]) as flags,
    cast(null as varchar) as query,
    cast(null as varchar) as gold_call
where false;
