//! The build script of the crate that `tests/generated_group.rs` builds.

fn main() -> Result<(), arenaplan::build::Error> {
    arenaplan::build::Builder::new()
        .model("models/streaming_int8.tflite")
        .named("vad")
        .model("models/dscnn_int8.tflite")
        .named("kws")
        .share("voice", &["vad", "kws"])
        .model("models/front.tflite")
        .model("models/back.tflite")
        .cascade("pipeline", &["front", "back"])
        .self_test(true)
        .compile()
}
