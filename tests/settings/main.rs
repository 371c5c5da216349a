//! The config file from outside: what is accepted, what it means, and what is said about mistakes.

mod mistakes;
mod secrets;
mod support;
mod understood;
