"""What a study shows: tables, summaries, charts, pictures of its runs."""
