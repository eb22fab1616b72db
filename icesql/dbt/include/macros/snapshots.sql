{# A snapshot is one MERGE. #}

{#- The end of a row has the type of its column: that of updated_at may be a date. -#}
{% macro icesql__snapshot_merge_sql(target, source, insert_cols) -%}
  {%- set columns = config.get("snapshot_table_column_names") or get_snapshot_table_column_names() -%}
  {%- set ns = namespace(type='timestamp') -%}
  {%- for column in adapter.get_columns_in_relation(target) if column.name | lower == columns.dbt_valid_to | lower -%}
    {%- set ns.type = column.data_type -%}
  {%- endfor -%}
  {%- set end = 'DBT_INTERNAL_DEST.' ~ columns.dbt_valid_to -%}
  {%- set current = config.get('dbt_valid_to_current') -%}
  {%- set listed = insert_cols | join(', ') %}
  merge into {{ target.render() }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_SOURCE.{{ columns.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ columns.dbt_scd_id }}
  when matched
    and ({{ end }} is null{% if current %} or {{ equals(end, current | trim) }}{% endif %})
    and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')
    then update set {{ columns.dbt_valid_to }} = cast(DBT_INTERNAL_SOURCE.{{ columns.dbt_valid_to }} as {{ ns.type }})
  when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'
    then insert ({{ listed }}) values ({{ listed }})
{%- endmacro %}
