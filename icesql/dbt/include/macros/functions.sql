{# dbt's functions that every adapter spells, in icesql's. #}

{% macro icesql__current_timestamp() -%}
  now()
{%- endmacro %}

{% macro icesql__current_timestamp_backcompat() -%}
  cast(now() at time zone 'UTC' as timestamp)
{%- endmacro %}

{#- Without a zone, as the columns that snapshots compare it with mostly are. -#}
{% macro icesql__snapshot_get_time() -%}
  cast(now() at time zone 'UTC' as timestamp)
{%- endmacro %}

{% macro icesql__snapshot_string_as_time(timestamp) -%}
  {{ return("timestamp '" ~ timestamp ~ "'") }}
{%- endmacro %}

{% macro icesql__dateadd(datepart, interval, from_date_or_timestamp) -%}
  {%- set unit = datepart | lower -%}
  {%- set factor = {'quarter': 3, 'week': 7}.get(unit, 1) -%}
  {%- set unit = {'quarter': 'month', 'week': 'day'}.get(unit, unit) -%}
  {%- set start = from_date_or_timestamp | string | trim -%}
  {#- A text in quotes means a time, as in dbt's other adapters. -#}
  {%- set start = 'cast(' ~ start ~ ' as timestamp)' if start.startswith("'") else start -%}
  ({{ start }} + (cast({{ interval }} as bigint) * {{ factor }}) * interval 1 {{ unit }})
{%- endmacro %}

{% macro icesql__date(year, month, day) -%}
  make_date({{ year }}, {{ month }}, {{ day }})
{%- endmacro %}

{#- Weeks begin on Monday, as date_trunc has them; date_diff counts spans of seven days. -#}
{% macro icesql__datediff(first_date, second_date, datepart) -%}
  {%- if datepart | lower == 'week' -%}
  (date_diff('day', date_trunc('week', cast({{ first_date }} as timestamp)), date_trunc('week', cast({{ second_date }} as timestamp))) // 7)
  {%- else -%}
  date_diff('{{ datepart }}', cast({{ first_date }} as timestamp), cast({{ second_date }} as timestamp))
  {%- endif -%}
{%- endmacro %}

{% macro icesql__split_part(string_text, delimiter_text, part_number) -%}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}

{% macro icesql__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- if limit_num -%}
  array_to_string((array_agg({{ measure }} {{ order_by_clause or '' }}))[1:{{ limit_num }}], {{ delimiter_text }})
  {%- else -%}
  string_agg({{ measure }}, {{ delimiter_text }} {{ order_by_clause or '' }})
  {%- endif -%}
{%- endmacro %}

{% macro icesql__safe_cast(field, type) -%}
  try_cast({{ field }} as {{ type }})
{%- endmacro %}

{% macro icesql__array_construct(inputs, data_type) -%}
  {%- if inputs -%}
  [{{ inputs | join(', ') }}]
  {%- else -%}
  cast([] as {{ data_type }}[])
  {%- endif -%}
{%- endmacro %}

{% macro icesql__array_append(array, new_element) -%}
  list_append({{ array }}, {{ new_element }})
{%- endmacro %}

{% macro icesql__array_concat(array_1, array_2) -%}
  list_concat({{ array_1 }}, {{ array_2 }})
{%- endmacro %}

{% macro icesql__bool_or(expression) -%}
  bool_or({{ expression }})
{%- endmacro %}

{% macro icesql__escape_single_quotes(expression) -%}
{{ expression | replace("'", "''") }}
{%- endmacro %}
