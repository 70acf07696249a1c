//! Generates the types and traits of protocol version 1 into `OUT_DIR`.

fn main() {
    if let Err(error) = acp_codegen::Builder::v1().write_to_out_dir("v1.rs") {
        // A build script's only way to speak is to fail.
        panic!("acp-codegen: {error}");
    }
}
