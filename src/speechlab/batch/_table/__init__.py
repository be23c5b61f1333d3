"""Tables: results joined to rows, exported, and described."""
