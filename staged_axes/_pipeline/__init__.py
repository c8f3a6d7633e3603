"""Named stages, hooks around them, and what they tell."""
