//! Links to child processes.

mod child;
mod close;
mod demo;
mod eras;
mod exit;
mod guard;
mod modern;
mod noise;
mod start;
mod traffic;
