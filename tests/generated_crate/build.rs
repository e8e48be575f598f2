//! The build script of the crate that `tests/generated.rs` builds.

fn main() -> Result<(), arenaplan::build::Error> {
    arenaplan::build::compile("models/dscnn_int8.tflite")?;
    arenaplan::build::Builder::new()
        .model("models/two_inputs_int8.tflite")
        .model("models/reductions_int8.tflite")
        .model("models/autoencoder_int16x8.tflite")
        .model("models/conv_uint8_io.tflite")
        .model("models/3d größe-v2.tflite")
        .model("models/svdf_int8.tflite")
        .named("type")
        .model("models/changing.tflite")
        .visibility("pub(crate)")
        .compile()?;
    arenaplan::build::Builder::new()
        .model("models/striped.tflite")
        .stripes(arenaplan::build::Stripes::UpTo(200))
        .compile()?;
    arenaplan::build::Builder::new()
        .model("models/streaming_float32.tflite")
        .self_test(true)
        .compile()
}
