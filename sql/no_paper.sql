-- Stands in for stg_paper_cells where only runs are asked for.
create or replace view stg_paper_cells as
select
    cast(null as varchar) as dataset,
    cast(null as varchar) as run,
    cast(null as varchar) as model,
    cast(null as varchar) as mode,
    cast(null as varchar) as type_code,
    cast(null as bigint) as n,
    cast(null as bigint) as correct
where false;
