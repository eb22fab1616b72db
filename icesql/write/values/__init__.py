"""Convert values to stored form: variants, geometries, NULL; refuse values that do not fit."""
