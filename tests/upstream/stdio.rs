//! Links to child processes.

mod child;
mod close;
mod exit;
mod guard;
mod noise;
mod start;
mod traffic;
