"""Values as files hold them: variants, geometries, NULL, and what cannot be held."""
