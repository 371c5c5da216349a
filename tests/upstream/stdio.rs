//! Links to child processes.

mod child;
mod close;
mod demo;
mod exit;
mod guard;
mod noise;
mod start;
mod traffic;
