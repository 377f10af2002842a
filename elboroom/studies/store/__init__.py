"""The store of a study: its index, its disk, and copies of its runs elsewhere."""
