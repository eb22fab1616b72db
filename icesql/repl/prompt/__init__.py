"""Keys at the prompt: when Enter runs a text, and the grey hint beside it."""
