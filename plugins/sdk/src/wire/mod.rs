//! What wires have in common, so that each of them holds its protocol and nothing else.
//!
//! A wire keeps a [`Kept`] conversation, writes [`Fields`] around it, sends them with [`send`], and
//! [`read`]s the answer with a [`Reader`] that writes a [`Draft`]. Beside that way stand the switches
//! of a model ([`Compat`]), cache retention, thinking levels and budgets, strict schemas, token
//! counts, texts of failures, and services as data. Nothing here knows a protocol.

mod body;
mod cache;
mod kept;

mod draft;
mod exchange;

mod compat;
mod service;

pub mod failure;
pub mod thinking;
pub mod tools;
pub mod usage;

pub use body::{Fields, Headers, base_url, credential, post};
pub use cache::Retention;
pub use compat::Compat;
pub use draft::Draft;
pub use exchange::{Reader, Response, Step, broken, read, send};
pub use kept::{Convert, Kept};
pub use service::Service;
