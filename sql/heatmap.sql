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
        max(accuracy) filter (where type_code = 'typos_1') as typos_1,
        max(accuracy) filter (where type_code = 'typos_2') as typos_2,
        max(accuracy) filter (where type_code = 'typos_3') as typos_3,
        max(accuracy) filter (where type_code = 'factor_1_5') as factor_1_5,
        max(accuracy) filter (where type_code = 'factor_5') as factor_5,
        max(accuracy) filter (where type_code = 'factor_100') as factor_100,
        max(accuracy) filter (where type_code = 'abbreviated_5') as abbreviated_5,
        max(accuracy) filter (where type_code = 'abbreviated_3') as abbreviated_3,
        max(accuracy) filter (where type_code = 'abbreviated_1') as abbreviated_1,
        max(accuracy) filter (where type_code = 'mix__realistic_typos__same_name_D') as "mix__realistic_typos__same_name_D",
        max(accuracy) filter (where type_code = 'mix__realistic_typos__CD') as "mix__realistic_typos__CD",
        max(accuracy) filter (where type_code = 'mix__realistic_typos__transient_rate_limit') as mix__realistic_typos__transient_rate_limit,
        max(accuracy) filter (where type_code = 'mix__same_name_D__CD') as "mix__same_name_D__CD",
        max(accuracy) filter (where type_code = 'mix__same_name_D__transient_rate_limit') as "mix__same_name_D__transient_rate_limit",
        max(accuracy) filter (where type_code = 'mix__CD__transient_rate_limit') as "mix__CD__transient_rate_limit",
        max(accuracy) filter (where type_code = 'mix__realistic_typos__same_name_D__CD') as "mix__realistic_typos__same_name_D__CD",
        max(accuracy) filter (where type_code = 'mix__realistic_typos__same_name_D__transient_rate_limit') as "mix__realistic_typos__same_name_D__transient_rate_limit",
        max(accuracy) filter (where type_code = 'mix__realistic_typos__CD__transient_rate_limit') as "mix__realistic_typos__CD__transient_rate_limit",
        max(accuracy) filter (where type_code = 'mix__same_name_D__CD__transient_rate_limit') as "mix__same_name_D__CD__transient_rate_limit",
        max(accuracy) filter (where type_code = 'mix__realistic_typos__same_name_D__CD__transient_rate_limit') as "mix__realistic_typos__same_name_D__CD__transient_rate_limit"
    from int_cells
    group by dataset_version, run, model
)

select *
from final
order by dataset_version, run;
