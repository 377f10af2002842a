"""The results of a study: tables, summaries, charts, and the page that shows them."""
