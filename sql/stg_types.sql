-- The perturbation types, in the order of the paper's Table 1. The one home of the list is the package's
-- taxonomy; it is read as text and taken apart by name. Types of languages that no module states come after all
-- others: each family's facts, with the language in the place of the holes. Mixtures that no module states are
-- those of the variable `mixtures` (`rbtc sql` finds them in the runs and the release), after the languages.
-- `scored` is false where tries are counted instead of right answers: then no accuracy is shown.
create or replace view stg_types as
with taxonomy as (
    select content
    from read_text(coalesce(getvariable('taxonomy'), 'src/robustbench_tc/data/taxonomy.json'))
),

stated as (
    select unnest(json_extract(content, '$.types[*]')) as entry
    from taxonomy
),

families as (
    select
        unnest(json_extract(content, '$.of_a_language[*]')) as entry,
        generate_subscripts(json_extract(content, '$.of_a_language[*]'), 1) - 1 as place
    from taxonomy
),

languages as (
    select
        unnest(json_extract(content, '$.languages[*]')) as entry,
        generate_subscripts(json_extract(content, '$.languages[*]'), 1) - 1 as place
    from taxonomy
),

mixtures as (
    select unnest(cast(getvariable('mixtures') as json[])) as entry
),

codes as (
    select json_extract_string(entry, '$.code') as type_code
    from stated
),

listed as (
    select
        json_extract_string(entry, '$.code') as type_code,
        json_extract_string(entry, '$.display_name') as display_name,
        json_extract_string(entry, '$.label') as label,
        json_extract_string(entry, '$.component') as component,
        json_extract_string(entry, '$.level') as level,
        json_extract_string(entry, '$.pack') as pack,
        json_extract_string(entry, '$.channel') as channel,
        json_extract(entry, '$.traits') as traits,
        json_extract_string(entry, '$.no_call') as no_call,
        nullif(json_extract_string(entry, '$.control'), '') as control,
        cast(json_extract_string(entry, '$.order') as integer) as type_order,
        json_extract_string(entry, '$.series') as series,
        cast(json_extract_string(entry, '$.dose') as double) as dose
    from stated
    union all
    select
        replace(json_extract_string(families.entry, '$.code'), '{code}', languages.entry ->> 0) as type_code,
        replace(json_extract_string(families.entry, '$.display_name'), '{language}', languages.entry ->> 1)
            as display_name,
        replace(json_extract_string(families.entry, '$.label'), '{language}', languages.entry ->> 1) as label,
        json_extract_string(families.entry, '$.component') as component,
        json_extract_string(families.entry, '$.level') as level,
        json_extract_string(families.entry, '$.pack') as pack,
        json_extract_string(families.entry, '$.channel') as channel,
        json_extract(families.entry, '$.traits') as traits,
        json_extract_string(families.entry, '$.no_call') as no_call,
        nullif(json_extract_string(families.entry, '$.control'), '') as control,
        cast(10000 + 2 * languages.place + families.place as integer) as type_order,
        json_extract_string(families.entry, '$.series') as series,
        cast(json_extract_string(families.entry, '$.dose') as double) as dose
    from families
    cross join languages
    union all
    select
        json_extract_string(entry, '$.code') as type_code,
        json_extract_string(entry, '$.display_name') as display_name,
        json_extract_string(entry, '$.label') as label,
        json_extract_string(entry, '$.component') as component,
        json_extract_string(entry, '$.level') as level,
        json_extract_string(entry, '$.pack') as pack,
        json_extract_string(entry, '$.channel') as channel,
        json_extract(entry, '$.traits') as traits,
        json_extract_string(entry, '$.no_call') as no_call,
        nullif(json_extract_string(entry, '$.control'), '') as control,
        cast(json_extract_string(entry, '$.order') as integer) as type_order,
        json_extract_string(entry, '$.series') as series,
        cast(json_extract_string(entry, '$.dose') as double) as dose
    from mixtures
),

final as (
    select
        listed.type_code,
        listed.display_name,
        listed.label,
        listed.component,
        listed.level,
        listed.pack,
        listed.channel,
        listed.traits,
        listed.no_call,
        listed.control,
        coalesce(cast(json_extract_string(listed.traits, '$.scored') as boolean), true) as scored,
        listed.pack = 'core' as core,
        listed.type_order,
        listed.series,
        listed.dose
    from listed
    -- A language that modules state has its types there.
    where listed.type_order < 10000 or listed.type_code not in (select codes.type_code from codes)
)

select * from final;
