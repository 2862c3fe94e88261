//! Choosing a CPU for a task: reads, changes nothing.
