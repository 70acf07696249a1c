//! Models of the connection under shuttle's scheduler.
//!
//! Each model runs real connections on the transport in memory, with a scripted peer, under
//! thousands of random interleavings of all locks, atomics and tasks. A deadlock and a lost
//! wake-up fail a model as a wrong message does. A failure prints its schedule; pass that to
//! [`shuttle::replay`] instead of [`support::check`] to run the same interleaving again.

mod cancellation;
mod end;
mod order;
mod support;
