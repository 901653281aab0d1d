//! The end-to-end tests: one module per behaviour.

mod abi;
mod model_server;
