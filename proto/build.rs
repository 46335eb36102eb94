//! Generates messages, clients and server traits from the `.proto` files, without protoc.

use std::path::PathBuf;

const FILES: [&str; 3] = [
    "bookstore/catalog/v1/catalog.proto",
    "bookstore/inventory/v1/inventory.proto",
    "bookstore/ordering/v1/ordering.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=bookstore");
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    // Server reflection serves this set as it is.
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptor.bin"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure()
        .build_transport(false)
        // Boxed streams make the server traits usable as `dyn`; see the module doc of `proto`.
        .generate_default_stubs(true)
        .codec_path("crate::codec::ProstCodec")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
