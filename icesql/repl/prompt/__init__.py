"""What keys do at the prompt: when Enter runs a text, and what stands beside it in grey."""
