-- The paper's counts: 21 models, clean and 22 types. Another version of the dataset, so its rows stand
-- beside those of runs and are never joined with them.
create or replace view stg_paper_cells as
with printed as (
    select *
    from read_csv(
        coalesce(getvariable('paper'), 'eval/paper/cells.csv'),
        header = true,
        auto_detect = false,
        columns = {
            'model': 'varchar',
            'type_code': 'varchar',
            'component': 'varchar',
            'n': 'bigint',
            'correct': 'bigint',
            'accuracy': 'double',
            'accuracy_half_width': 'double',
            'delta_from_clean': 'double',
            'delta_half_width': 'double'
        }
    )
),

final as (
    select
        'paper' as dataset,
        'paper:' || model as run,
        model,
        cast(null as varchar) as mode,
        type_code,
        n,
        correct
    from printed
)

select * from final;
