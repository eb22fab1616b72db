"""Values of type variant in their binary form: what their bytes mean, and bytes of a value."""
