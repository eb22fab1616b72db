{# Rows added to a table that is there: each strategy is one commit. #}

{% materialization incremental, adapter='icesql' -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set strategy = config.get('incremental_strategy') or 'default' -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}
  {%- set temp_relation = none -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- if existing_relation is none or existing_relation.is_view or should_full_refresh() -%}
    {%- if existing_relation is not none and existing_relation.is_view -%}
      {%- do adapter.drop_relation(existing_relation) -%}
    {%- endif -%}
    {%- set build_sql = get_create_table_as_sql(False, target_relation, sql) -%}
  {%- else -%}
    {%- set temp_relation = make_temp_relation(target_relation) -%}
    {%- do run_query(get_create_table_as_sql(True, temp_relation, sql)) -%}
    {#- New columns come in the commit of their rows. -#}
    {%- set grows = on_schema_change == 'append_new_columns' and strategy in ('default', 'append', 'merge') -%}
    {%- if grows -%}
      {%- set dest_columns = adapter.get_columns_in_relation(temp_relation) -%}
    {%- else -%}
      {%- set dest_columns = process_schema_changes(on_schema_change, temp_relation, existing_relation) -%}
    {%- endif -%}
    {%- if not dest_columns -%}
      {%- set dest_columns = adapter.get_columns_in_relation(existing_relation) -%}
    {%- endif -%}
    {%- set build_sql = strategy_macro({
          'target_relation': target_relation,
          'temp_relation': temp_relation,
          'unique_key': config.get('unique_key'),
          'dest_columns': dest_columns,
          'grows': grows,
          'incremental_predicates': config.get('predicates', none) or config.get('incremental_predicates', none),
        }) -%}
  {%- endif -%}

  {% call statement('main') -%}
    {{ build_sql }}
  {%- endcall %}
  {%- if temp_relation is not none -%}
    {%- do icesql__drop_temporary(temp_relation) -%}
  {%- endif -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{% macro icesql__get_incremental_default_sql(arg_dict) -%}
  {%- if arg_dict['unique_key'] -%}
    {{ return(get_incremental_merge_sql(arg_dict)) }}
  {%- endif -%}
  {{ return(get_incremental_append_sql(arg_dict)) }}
{%- endmacro %}

{% macro icesql__get_incremental_append_sql(arg_dict) -%}
  {%- if not arg_dict.get('grows') -%}
    {{ return(default__get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
  {%- set columns = get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) -%}
  {%- set sql -%}
    insert with schema evolution into {{ arg_dict['target_relation'] }} ({{ columns }})
    select {{ columns }} from {{ arg_dict['temp_relation'] }}
  {%- endset -%}
  {{ return(sql) }}
{%- endmacro %}

{#- Without a key every row is new. -#}
{% macro icesql__get_incremental_merge_sql(arg_dict) -%}
  {%- if not arg_dict['unique_key'] -%}
    {{ return(get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
  {%- set sql = default__get_incremental_merge_sql(arg_dict) -%}
  {%- if arg_dict.get('grows') -%}
    {%- set target = 'into ' ~ arg_dict['target_relation'] ~ ' as DBT_INTERNAL_DEST' -%}
    {%- set sql = sql | replace('merge ' ~ target, 'merge with schema evolution ' ~ target) -%}
  {%- endif -%}
  {{ return(sql) }}
{%- endmacro %}

{#- Both changes in one transaction, which is one commit. -#}
{% macro icesql__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  begin;
  {{ default__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) }};
  commit
{%- endmacro %}

{#-
  The partitions that get rows, or the rows of ``incremental_predicates``, are replaced; all rows of
  a table without partitions.
-#}
{% macro icesql__get_incremental_insert_overwrite_sql(arg_dict) -%}
  {%- set columns = get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) -%}
  {%- set predicates = arg_dict['incremental_predicates'] -%}
  {%- if predicates -%}
    {%- set predicates = [predicates] if predicates is string else predicates -%}
    {{ return(icesql__replace_where(arg_dict, '(' ~ predicates | join(') and (') ~ ')')) }}
  {%- endif -%}
  {%- set sql -%}
    begin;
    set partition_overwrite_mode = 'dynamic';
    insert overwrite {{ arg_dict['target_relation'] }} ({{ columns }})
    select {{ columns }} from {{ arg_dict['temp_relation'] }};
    commit;
    reset partition_overwrite_mode
  {%- endset -%}
  {{ return(sql) }}
{%- endmacro %}

{#- The rows of the batch's time are replaced. -#}
{% macro icesql__get_incremental_microbatch_sql(arg_dict) -%}
  {%- set time = config.get('event_time') -%}
  {%- set conditions = [] -%}
  {%- if model.batch and model.batch.event_time_start -%}
    {%- do conditions.append(time ~ " >= '" ~ icesql__utc(model.batch.event_time_start) ~ "'") -%}
  {%- endif -%}
  {%- if model.batch and model.batch.event_time_end -%}
    {%- do conditions.append(time ~ " < '" ~ icesql__utc(model.batch.event_time_end) ~ "'") -%}
  {%- endif -%}
  {%- for each in arg_dict.get('incremental_predicates') or [] -%}
    {%- do conditions.append(each) -%}
  {%- endfor -%}
  {{ return(icesql__replace_where(arg_dict, conditions | join(' and '))) }}
{%- endmacro %}

{#- As dbt writes it into the model: a column with a zone is not read in that of the session. -#}
{% macro icesql__utc(time) -%}
  {{- time.strftime('%Y-%m-%d %H:%M:%S+00:00') -}}
{%- endmacro %}

{% macro icesql__replace_where(arg_dict, condition) -%}
  {%- set columns = get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) -%}
  {%- set sql -%}
    insert into {{ arg_dict['target_relation'] }} by name replace where {{ condition }}
    select {{ columns }} from {{ arg_dict['temp_relation'] }}
  {%- endset -%}
  {{ return(sql) }}
{%- endmacro %}
