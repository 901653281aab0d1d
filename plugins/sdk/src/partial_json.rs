//! Partial JSON.
