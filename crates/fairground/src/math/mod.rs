//! Pure functions of the scheduler, each with its derivation.
