//! The kernel of pliant.
#![warn(missing_docs)]

pub mod agent;
pub mod dylib;
pub mod models;
pub mod prompt;
pub mod registry;
pub mod settings;
