-- Whether a row belongs to the rows that are looked at. With the variable `subset` = 'paper': the kinds that the
-- paper's release has, that is CD, TD, CD_NT and TD_NT without BFCL and API-Bank level 3, and the same-name types
-- without BFCL. Else every row.
create or replace macro in_subset(type_code, source, clean_id) as
    coalesce(getvariable('subset'), 'all') <> 'paper'
    or not (
        (type_code like 'same\_name\_%' escape '\' and source = 'bfcl_v3')
        or (
            type_code in ('CD', 'TD', 'CD_NT', 'TD_NT')
            and (source = 'bfcl_v3' or starts_with(clean_id, 'apibank__level3_'))
        )
    );
