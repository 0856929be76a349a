-- The perturbation types, in the order of the paper's Table 1. The one home of the list is the package's
-- taxonomy; it is read as text and taken apart by name.
create or replace view stg_types as
with taxonomy as (
    select unnest(json_extract(content, '$.types[*]')) as entry
    from read_text(coalesce(getvariable('taxonomy'), 'src/robustbench_tc/data/taxonomy.json'))
),

final as (
    select
        json_extract_string(entry, '$.code') as type_code,
        json_extract_string(entry, '$.display_name') as display_name,
        json_extract_string(entry, '$.component') as component,
        json_extract_string(entry, '$.pack') as pack,
        json_extract_string(entry, '$.no_call') as no_call,
        json_extract_string(entry, '$.pack') = 'core' as core,
        cast(json_extract_string(entry, '$.order') as integer) as type_order
    from taxonomy
)

select * from final;
