-- The rows that the fewest runs get right; with a release the last user turn beside them. Rows of different
-- texts (sample_hash) under one id are kept apart.
with judged as (
    select
        id,
        sample_hash,
        any_value(clean_id) as clean_id,
        any_value(type_code) as type_code,
        any_value(source) as source,
        count(distinct run) as runs,
        count(correct) as n,
        count(*) filter (where correct) as correct
    from stg_predictions
    where correct is not null
        and type_code not in (select stg_types.type_code from stg_types where not stg_types.scored)
    group by id, sample_hash
),

clean as (
    select clean_id, avg(correct::int) as clean_accuracy
    from stg_predictions
    where type_code = 'clean' and correct is not null
    group by clean_id
),

texts as (
    select id, list_filter(messages, lambda turn: turn.role = 'user')[-1].content as last_user_turn
    from stg_release
),

final as (
    select
        judged.id,
        judged.clean_id,
        judged.type_code,
        judged.source,
        judged.runs,
        judged.n,
        judged.correct,
        judged.correct / judged.n as accuracy,
        clean.clean_accuracy,
        texts.last_user_turn
    from judged
    left join clean on judged.clean_id = clean.clean_id
    left join texts on judged.id = texts.id
)

select *
from final
order by accuracy, clean_accuracy desc, n desc, id
limit coalesce(getvariable('top')::bigint, 50);
