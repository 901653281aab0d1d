//! Models: which there are, whose they are, who pays, and how one is asked.

mod asked;
mod catalog;
mod credentials;
mod custom;
mod exchange;
mod request;
mod resolve;
mod scope;

pub use asked::AskedDelay;
pub use catalog::{Catalog, ModelAsker};
pub use credentials::Credentials;
pub use custom::{CustomModels, CustomProvider};
pub use exchange::{HeaderMap, ProviderHooks};
pub use request::{ModelClient, ModelRequest};
pub use resolve::{ModelChoice, ModelError, ModelWish};
