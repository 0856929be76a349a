-- Accuracy of every run (rows) under every condition (columns); null where a row is missing.
with final as (
    select
        dataset_version,
        run,
        model,
        max(accuracy) filter (where type_code = 'clean') as clean,
        max(accuracy) filter (where type_code = 'realistic_typos') as realistic_typos,
        max(accuracy) filter (where type_code = 'query_paraphrase') as query_paraphrase,
        max(accuracy) filter (where type_code = 'paraphrase_tool_description') as paraphrase_tool_description,
        max(accuracy) filter (where type_code = 'paraphrase_parameter_description') as paraphrase_parameter_description,
        max(accuracy) filter (where type_code = 'same_name_A') as "same_name_A",
        max(accuracy) filter (where type_code = 'same_name_B') as "same_name_B",
        max(accuracy) filter (where type_code = 'same_name_C') as "same_name_C",
        max(accuracy) filter (where type_code = 'same_name_D') as "same_name_D",
        max(accuracy) filter (where type_code = 'same_name_E') as "same_name_E",
        max(accuracy) filter (where type_code = 'redundant') as redundant,
        max(accuracy) filter (where type_code = 'CD') as "CD",
        max(accuracy) filter (where type_code = 'TD') as "TD",
        max(accuracy) filter (where type_code = 'CD_NT') as "CD_NT",
        max(accuracy) filter (where type_code = 'TD_NT') as "TD_NT",
        max(accuracy) filter (where type_code = 'CD_AB') as "CD_AB",
        max(accuracy) filter (where type_code = 'TD_AB') as "TD_AB",
        max(accuracy) filter (where type_code = 'transient_timeout') as transient_timeout,
        max(accuracy) filter (where type_code = 'transient_rate_limit') as transient_rate_limit,
        max(accuracy) filter (where type_code = 'transient_auth_error') as transient_auth_error,
        max(accuracy) filter (where type_code = 'transient_server_error') as transient_server_error,
        max(accuracy) filter (where type_code = 'transient_malformed_response') as transient_malformed_response,
        max(accuracy) filter (where type_code = 'transient_schema_drift') as transient_schema_drift,
        max(accuracy) filter (where type_code = 'CD_AB_pref') as "CD_AB_pref",
        max(accuracy) filter (where type_code = 'TD_AB_pref') as "TD_AB_pref",
        max(accuracy) filter (where type_code = 'language_zh') as language_zh,
        max(accuracy) filter (where type_code = 'language_hi') as language_hi,
        max(accuracy) filter (where type_code = 'language_es') as language_es,
        max(accuracy) filter (where type_code = 'language_ar') as language_ar,
        max(accuracy) filter (where type_code = 'language_sw') as language_sw,
        max(accuracy) filter (where type_code = 'language_full_zh') as language_full_zh,
        max(accuracy) filter (where type_code = 'language_full_hi') as language_full_hi,
        max(accuracy) filter (where type_code = 'language_full_es') as language_full_es,
        max(accuracy) filter (where type_code = 'language_full_ar') as language_full_ar,
        max(accuracy) filter (where type_code = 'language_full_sw') as language_full_sw
    from int_cells
    group by dataset_version, run, model
)

select *
from final
order by dataset_version, run;
