"""The record as JSON, and back."""
