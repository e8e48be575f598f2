fn main() -> Result<(), arenaplan::build::Error> {
    arenaplan::build::compile("../../testdata/models/mobilenet_v2_int8.tflite")
}
