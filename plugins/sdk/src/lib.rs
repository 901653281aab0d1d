//! stub, being written
pub mod partial_json;
pub mod sse;
