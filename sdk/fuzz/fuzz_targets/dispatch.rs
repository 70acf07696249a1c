//! See `acp_sdk::fuzzing::dispatch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| acp_sdk::fuzzing::dispatch(data));
