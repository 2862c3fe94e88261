//! Augmented balanced tree.
