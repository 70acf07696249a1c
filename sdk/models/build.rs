//! Selects shuttle's locks, tasks and timers.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fuzzing, shuttle)");
    println!("cargo::rustc-cfg=shuttle");
    println!(
        "cargo::rustc-env=ACP_SDK_GENERATED={}/../generated",
        env!("CARGO_MANIFEST_DIR")
    );
    println!("cargo::rerun-if-changed=build.rs");
}
