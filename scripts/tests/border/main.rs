//! Scripts seen from outside: source text in, contributions and JSON answers out.

mod kit;

mod commands;
mod errors;
mod examples;
mod guide;
mod hooks;
mod limits;
mod loading;
mod providers;
mod services;
mod tools;
