"""Arrays, texts, columns and frames as keys: words that are equal where the keys are."""
