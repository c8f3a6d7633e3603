"""Run, compiled: one program for each structure, found fast, never stale."""
