-- Whether a row belongs to the rows that are looked at. With the variable `subset` = 'paper': the kinds that the
-- paper's release has, that is CD, TD, CD_NT and TD_NT without BFCL and API-Bank level 3, the same-name types
-- without BFCL, and no extension. Else every row; 'verified' asks for flags, which the staging views look at.
create or replace macro in_subset(type_code, source, clean_id) as
    coalesce(getvariable('subset'), 'all') <> 'paper'
    or (
        (type_code = 'clean' or type_code in (select stg_types.type_code from stg_types where stg_types.core))
        and not (type_code like 'same\_name\_%' escape '\' and source = 'bfcl_v3')
        and not (
            type_code in ('CD', 'TD', 'CD_NT', 'TD_NT')
            and (source = 'bfcl_v3' or starts_with(clean_id, 'apibank__level3_'))
        )
    );
