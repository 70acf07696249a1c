//! The servers of a session against scripted servers.
