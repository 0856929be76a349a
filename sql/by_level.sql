-- What an agent is asked for: accuracy and Δ per level, of the core's types, of each pack, and of all where a level
-- has several. A line of the core is null where one of its types is missing, every line where a row is missing,
-- unless the variable `allow_missing` is true. No headline number holds a pack.
with wanted as (
    select level, count(*) as types_wanted
    from stg_types
    where core
    group by level
),

cells as (
    select
        int_cells.*,
        stg_types.level,
        stg_types.pack
    from int_cells
    inner join stg_types on int_cells.type_code = stg_types.type_code
    where int_cells.n > 0 and stg_types.scored
),

packs as (
    select run, level, count(distinct pack) as packs_there
    from cells
    group by run, level
),

dealt as (
    select *, pack as line from cells
    union all
    select cells.*, 'all' as line
    from cells
    inner join packs on cells.run = packs.run and cells.level = packs.level
    where packs.packs_there > 1
),

pooled as (
    select
        dataset,
        run,
        any_value(model) as model,
        level,
        line,
        count(*) as types,
        count(*) filter (where core) as core_types,
        sum(n)::bigint as n,
        sum(correct)::bigint as correct,
        sum(missing)::bigint as missing,
        max(never_made) as never_made,
        max(clean_accuracy) as clean_accuracy
    from dealt
    group by dataset, run, level, line
),

matched as (
    select
        int_pairs.run,
        stg_types.level,
        stg_types.pack as line,
        sum(clean_correct::int - perturbed_correct::int) as net_lost,
        count(*) as pairs
    from int_pairs
    inner join stg_types on int_pairs.type_code = stg_types.type_code
    where stg_types.scored
    group by int_pairs.run, stg_types.level, stg_types.pack
),

matched_lines as (
    select * from matched
    union all
    select run, level, 'all' as line, sum(net_lost) as net_lost, sum(pairs) as pairs
    from matched
    group by run, level
),

valued as (
    select
        pooled.*,
        case
            when (
                    pooled.missing = 0
                    and pooled.never_made = 0
                    and (pooled.core_types = 0 or pooled.core_types = wanted.types_wanted)
                )
                or coalesce(getvariable('allow_missing'), false)
            then pooled.correct / pooled.n
        end as accuracy,
        matched_lines.net_lost,
        matched_lines.pairs
    from pooled
    left join wanted on pooled.level = wanted.level
    left join matched_lines
        on pooled.run = matched_lines.run
        and pooled.level = matched_lines.level
        and pooled.line = matched_lines.line
),

final as (
    select
        dataset,
        run,
        model,
        level,
        line as pack,
        types,
        n,
        correct,
        missing,
        clean_accuracy,
        accuracy,
        clean_accuracy - accuracy as delta,
        case when delta is not null then net_lost / pairs end as delta_matched,
        pairs,
        list_position(['perception', 'interaction', 'reasoning', 'internalization'], level) as level_order,
        case line when 'core' then 0 when 'all' then 2 else 1 end as line_order
    from valued
)

select * exclude (level_order, line_order)
from final
order by dataset, run, level_order, line_order, pack;
