//! Scripts that once broke an invariant, by what was wrong.
