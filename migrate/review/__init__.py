"""Review of a conversion, piece by piece: what changes, why, what goes together; and the text that a set of decisions gives."""
