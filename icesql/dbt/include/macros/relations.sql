{# Tables and views: made, replaced, renamed and dropped. #}

{% macro icesql__create_schema(relation) -%}
  {%- call statement('create_schema') -%}
    create schema if not exists {{ relation.without_identifier() }}
  {%- endcall -%}
{% endmacro %}

{#- The clauses of CREATE TABLE that a model's config asks for. -#}
{% macro icesql__table_clauses() -%}
  {%- set partitioned = config.get('partitioned_by') or config.get('partition_by') -%}
  {%- set sorted = config.get('sorted_by') -%}
  {%- set properties = {} -%}
  {%- do properties.update(config.get('table_properties') or {}) -%}
  {%- do properties.update(config.get('tblproperties') or {}) -%}
  {%- if config.get('format_version') -%}
    {%- do properties.update({'format-version': config.get('format_version')}) -%}
  {%- endif -%}
  {%- if partitioned %}
  partitioned by ({{ partitioned if partitioned is string else partitioned | join(', ') }})
  {%- endif -%}
  {%- if sorted %}
  sorted by ({{ sorted if sorted is string else sorted | join(', ') }})
  {%- endif -%}
  {%- if config.get('location') %}
  location {{ adapter.literal(config.get('location')) }}
  {%- endif -%}
  {%- if properties %}
  tblproperties (
    {%- for name, value in properties.items() -%}
      {{ adapter.literal(name) }} = {{ adapter.literal(value | lower if value is boolean else value) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
  )
  {%- endif -%}
{%- endmacro %}

{#- A table is replaced in one commit, and what it was can still be read by its snapshots. -#}
{% macro icesql__create_table_as(temporary, relation, sql) -%}
  {%- set sql_header = config.get('sql_header', none) -%}
  {{ sql_header if sql_header is not none }}
  {% if temporary -%}
  create or replace temporary table {{ relation.include(database=false, schema=false) }} as (
    {{ sql }}
  )
  {%- else -%}
  create or replace table {{ relation }}
  {%- if config.get('contract').enforced %}
    {{ get_assert_columns_equivalent(sql) }}
    {{ get_table_columns_and_constraints() }}
    {%- set sql = get_select_subquery(sql) %}
  {%- endif %}
  {{- icesql__table_clauses() }}
  as (
    {{ sql }}
  )
  {%- endif %}
{%- endmacro %}

{% macro icesql__create_view_as(relation, sql) -%}
  {%- set sql_header = config.get('sql_header', none) -%}
  {{ sql_header if sql_header is not none }}
  create or replace view {{ relation }}
  {%- if config.get('contract').enforced %}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  {{- icesql__view_columns(sql) }}
  as (
    {{ sql }}
  )
{%- endmacro %}

{#- The columns with their comments, where a project says some and wants them stored. -#}
{% macro icesql__view_columns(sql) -%}
  {%- if config.persist_column_docs() and model.columns and execute -%}
    {%- set names = get_columns_in_query(sql) -%}
    {%- set known = {} -%}
    {%- for key, column in validate_doc_columns(this, model.columns, names).items() -%}
      {%- do known.update({column['name'] | lower: column['description']}) -%}
    {%- endfor -%}
    ({%- for name in names -%}
      {{ adapter.quote(name) }}
      {%- if known.get(name | lower) %} comment {{ adapter.literal(known[name | lower]) }}{% endif -%}
      {{ ', ' if not loop.last }}
    {%- endfor -%})
  {%- endif -%}
{%- endmacro %}

{% macro icesql__drop_table(relation) -%}
  drop table if exists {{ relation.render() }}{{ ' purge' if adapter.purges() }}
{%- endmacro %}

{% macro icesql__drop_view(relation) -%}
  drop view if exists {{ relation.render() }}
{%- endmacro %}

{% macro icesql__rename_relation(from_relation, to_relation) -%}
  {%- call statement('rename_relation') -%}
    alter {{ 'view' if from_relation.is_view else 'table' }} {{ from_relation }} rename to {{ to_relation }}
  {%- endcall -%}
{% endmacro %}

{% macro icesql__get_rename_table_sql(relation, new_name) -%}
  alter table {{ relation }} rename to {{ adapter.quote(new_name) }}
{%- endmacro %}

{% macro icesql__get_rename_view_sql(relation, new_name) -%}
  alter view {{ relation }} rename to {{ adapter.quote(new_name) }}
{%- endmacro %}

{% macro icesql__get_replace_table_sql(relation, sql) -%}
  {{ create_table_as(false, relation, sql) }}
{%- endmacro %}

{% macro icesql__get_replace_view_sql(relation, sql) -%}
  {{ create_view_as(relation, sql) }}
{%- endmacro %}

{#- A temporary table is the connection's own: no other thread or run sees its name. -#}
{% macro icesql__make_temp_relation(base_relation, suffix) -%}
  {%- set path = {"identifier": base_relation.identifier ~ suffix} -%}
  {{ return(base_relation.incorporate(path=path, type='table').include(database=false, schema=false)) }}
{%- endmacro %}

{% macro icesql__drop_temporary(relation) -%}
  {%- do run_query('drop table if exists ' ~ relation.include(database=false, schema=false)) -%}
{%- endmacro %}

{% macro icesql__post_snapshot(staging_relation) -%}
  {%- do icesql__drop_temporary(staging_relation) -%}
{%- endmacro %}

{% macro icesql__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- set description = model.description if for_relation and config.persist_relation_docs() else none -%}
  {%- set columns = none -%}
  {%- if for_columns and config.persist_column_docs() and model.columns and not relation.is_view -%}
    {%- set names = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set columns = validate_doc_columns(relation, model.columns, names) -%}
  {%- endif -%}
  {%- set statements = adapter.comments_sql(relation, description, columns) -%}
  {%- if statements -%}
    {%- do run_query(statements) -%}
  {%- endif -%}
{%- endmacro %}

{% macro icesql__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {%- do exceptions.raise_compiler_error("Iceberg has no grants: take them out of " ~ relation ~ "'s config, and let the catalog or the store give rights") -%}
  {%- endif -%}
{%- endmacro %}

{% macro icesql__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- set statements = [] -%}
  {%- for column in add_columns or [] -%}
    {%- do statements.append('alter table ' ~ relation ~ ' add column ' ~ column.quoted ~ ' ' ~ column.expanded_data_type) -%}
  {%- endfor -%}
  {%- for column in remove_columns or [] -%}
    {%- do statements.append('alter table ' ~ relation ~ ' drop column ' ~ column.quoted) -%}
  {%- endfor -%}
  {%- if statements -%}
    {%- do run_query('begin; ' ~ statements | join('; ') ~ '; commit') -%}
  {%- endif -%}
{%- endmacro %}

{#- A type that Iceberg widens is changed in the schema alone; for another one the column is written anew. -#}
{% macro icesql__alter_column_type(relation, column_name, new_column_type) -%}
  {%- set column = adapter.quote(column_name) -%}
  {%- if adapter.is_wider(relation, column_name, new_column_type) -%}
    {%- do run_query('alter table ' ~ relation ~ ' alter column ' ~ column ~ ' type ' ~ new_column_type) -%}
  {%- else -%}
    {%- set other = adapter.quote(column_name ~ '__dbt_alter') -%}
    {%- call statement('alter_column_type') -%}
      begin;
      alter table {{ relation }} add column {{ other }} {{ new_column_type }};
      update {{ relation }} set {{ other }} = cast({{ column }} as {{ new_column_type }});
      alter table {{ relation }} drop column {{ column }};
      alter table {{ relation }} rename column {{ other }} to {{ column }};
      commit
    {%- endcall -%}
  {%- endif -%}
{%- endmacro %}

{% macro icesql__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}
