"""The functions that the engine may evaluate while a query is planned.

All of them are deterministic, access no file and no state, and cannot produce large results
from small arguments: their time and memory are bounded by the size of the query's text. A test
compares the list with the engine's own list of functions.
"""

from __future__ import annotations

from typing import Final

_OPERATORS: Final = ("+", "-", "*", "/", "//", "%", "||", "~~", "!~~", "~~*", "!~~*", "~~~", "^@")
_NUMBERS: Final = (
    "abs", "ceil", "ceiling", "floor", "round", "trunc", "sign", "mod", "greatest", "least",
    "sqrt", "ln", "log", "log10", "log2", "exp", "pow", "power", "isnan", "isinf", "isfinite",
)  # fmt: skip
_TEXTS: Final = (
    "lower", "upper", "lcase", "ucase", "length", "len", "strlen", "left", "right", "substring",
    "substr", "starts_with", "prefix", "suffix", "ends_with", "contains", "position", "instr",
    "strpos", "trim", "ltrim", "rtrim", "reverse", "concat", "replace", "translate", "split_part",
    "regexp_matches", "regexp_full_match", "regexp_extract", "ascii", "unicode", "chr", "md5",
    "sha1", "sha256", "hash", "like_escape", "not_like_escape", "ilike_escape", "array_extract",
    "array_slice", "strip_accents", "levenshtein",
)  # fmt: skip
_TIMES: Final = (
    "year", "month", "day", "hour", "minute", "second", "quarter", "week", "weekofyear",
    "dayofweek", "isodow", "weekday", "dayofmonth", "dayofyear", "isoyear", "yearweek", "decade",
    "century", "millennium", "era", "epoch", "epoch_ms", "epoch_us", "epoch_ns", "julian",
    "monthname", "dayname", "last_day", "date_part", "datepart", "date_trunc", "datetrunc",
    "date_diff", "datediff", "date_sub", "datesub", "date_add", "age", "make_date",
    "make_timestamp", "make_timestamptz", "make_time", "to_timestamp", "strftime", "strptime",
    "try_strptime", "time_bucket", "timezone", "to_years", "to_months", "to_days", "to_hours",
    "to_minutes", "to_seconds", "to_milliseconds", "to_microseconds", "to_weeks", "to_quarters",
)  # fmt: skip
_OTHERS: Final = (
    "nullif",
    "list_value",
    "list_contains",
    "list_has",
    "array_contains",
    "array_has",
)
# The result of these functions may be longer than the arguments by a factor: an expression may have
# one such call.
GROWING: Final = frozenset({"replace", "translate", "regexp_extract", "strftime"})
# Macros of the engine that repeat an argument, which doubles its size: only few calls are allowed.
DOUBLING: Final = frozenset({"nullif", "split_part"})

KNOWN: Final = frozenset((*_OPERATORS, *_NUMBERS, *_TEXTS, *_TIMES, *_OTHERS))
