//! Statistics and verdicts.
