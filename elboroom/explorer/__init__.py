"""The explorer: a page on which a person looks into a run with their hands, and the small server behind it."""
