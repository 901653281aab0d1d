//! The kernel of pliant.
#![warn(missing_docs)]

pub mod agent;
pub mod dylib;
pub mod registry;
