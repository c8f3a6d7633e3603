"""Record: who decided what, where, in which stage; no data is needed."""
