"""What is said to users: text, tables, places, lines of code."""
