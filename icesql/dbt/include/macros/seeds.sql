{# A seed is made or replaced with its rows in one commit. #}

{% macro icesql__seed_as_query(model, agate_table) -%}
  {%- set types = [] -%}
  {%- set given = model['config'].get('column_types', {}) -%}
  {%- for name in agate_table.column_names -%}
    {%- do types.append(given.get(name, adapter.convert_type(agate_table, loop.index0))) -%}
  {%- endfor -%}
  {{ return(adapter.seed_select(agate_table, types)) }}
{%- endmacro %}

{% macro icesql__create_csv_table(model, agate_table) -%}
  {%- set sql = 'create or replace table ' ~ this ~ icesql__table_clauses() ~ ' as ' ~ icesql__seed_as_query(model, agate_table) -%}
  {%- call statement('seed') -%}{{ sql }}{%- endcall -%}
  {%- do adapter.forget_seed() -%}
  {{ return(sql) }}
{%- endmacro %}

{#- The same for one that is there: its columns may have changed with the file. -#}
{% macro icesql__reset_csv_table(model, full_refresh, old_relation, agate_table) -%}
  {{ return(icesql__create_csv_table(model, agate_table)) }}
{%- endmacro %}

{% macro icesql__load_csv_rows(model, agate_table) -%}
  {{ return('-- with its table') }}
{%- endmacro %}
