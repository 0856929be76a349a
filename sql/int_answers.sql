-- The predictions as they are counted. A row of a type in which calling nothing is right or accepted counts with its
-- control, the same run's answer to the row of the same sample that makes a call due; without it its verdict is null.
create or replace view int_answers as
with controlled as (
    select
        own.* exclude (correct),
        case when due.correct is not null then own.correct end as correct,
        case when own.correct is not null then due.correct end as control_correct
    from stg_predictions as own
    inner join stg_types on own.type_code = stg_types.type_code and stg_types.control is not null
    left join stg_predictions as due
        on own.run = due.run
        and own.clean_id = due.clean_id
        and own.repeat = due.repeat
        and stg_types.control = due.type_code
),

final as (
    select *, false as is_control
    from stg_predictions
    where type_code not in (select stg_types.type_code from stg_types where stg_types.control is not null)
    union all by name
    select * exclude (control_correct), false as is_control
    from controlled
    union all by name
    select * exclude (correct, control_correct), control_correct as correct, true as is_control
    from controlled
)

select * from final;
