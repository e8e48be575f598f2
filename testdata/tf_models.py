"""Models made with TensorFlow and its converter: seeded random weights, no training, no downloads.

Each maker returns the bytes of a .tflite file. `MODELS` maps a file's name to its maker and to a line that says what
the model exercises.
"""
import contextlib
import io as io_module
import os
import traceback

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_DETERMINISTIC_OPS", "1")

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

SEED = 20260801
MODELS = {}


def model(about):
    """Registers a maker under its function's name; `about` goes to the README's table."""
    def register(make):
        MODELS[make.__name__] = (make, about)
        return make
    return register


def build(name):
    """The bytes of the model `name`, made in a child process: TensorFlow numbers functions as it goes, and their names
    end up in the file, so a model must not depend on those made before it."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receive)
        try:
            keras.utils.set_random_seed(SEED)
            with os.fdopen(send, "wb") as pipe:
                pipe.write(MODELS[name][0]())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError(f"{name} was not made")
    return data


# --- conversion -------------------------------------------------------------------------------------------------

def samples(shapes, n=48, low=-1.0, high=1.0):
    """A representative data set: `n` uniform samples for each input shape."""
    rng = np.random.default_rng(SEED)
    data = [[rng.uniform(low, high, s).astype(np.float32) for s in shapes] for _ in range(n)]
    return lambda: iter(data)


def finish(converter, kind, shapes, io=None):
    """Sets the converter up for `kind` (float32, int8, int16x8 or hybrid) and converts."""
    if kind != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind in ("int8", "int16x8"):
        converter.representative_dataset = samples(shapes)
        wanted = {"int8": tf.lite.OpsSet.TFLITE_BUILTINS_INT8,
                  "int16x8": tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8}[kind]
        converter.target_spec.supported_ops = [wanted]
        converter.inference_input_type = io or {"int8": tf.int8, "int16x8": tf.int16}[kind]
        converter.inference_output_type = converter.inference_input_type
    return converter.convert()


def from_keras(inputs, outputs, kind, io=None):
    """Converts a Keras graph."""
    m = keras.Model(inputs, outputs)
    with contextlib.redirect_stdout(io_module.StringIO()):  # the export reports to stdout
        plain = tf.lite.TFLiteConverter.from_keras_model(m).convert()
        # The converter may order the inputs in its own way; the samples must follow.
        shapes = [tuple(d["shape"]) for d in tf.lite.Interpreter(model_content=plain).get_input_details()]
        return finish(tf.lite.TFLiteConverter.from_keras_model(m), kind, shapes, io)


def from_function(f, shapes, kind="float32", owner=None, dtypes=None):
    """Converts a Python function of tensors with the given shapes."""
    dtypes = dtypes or [tf.float32] * len(shapes)
    specs = [tf.TensorSpec(s, d, name=f"x{i}") for i, (s, d) in enumerate(zip(shapes, dtypes))]
    concrete = tf.function(f).get_concrete_function(*specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], owner)
    converter.experimental_enable_resource_variables = True
    return finish(converter, kind, shapes)


def image(h, w, c, name="image"):
    """An input with a fixed batch of one."""
    return keras.Input(batch_shape=(1, h, w, c), name=name)


def conv(x, filters, k=3, s=1, **kw):
    """Convolution with ReLU, with biases that are not all zero."""
    bias = keras.initializers.RandomUniform(-0.3, 0.3, seed=SEED + filters + k)
    kw.setdefault("activation", "relu")
    return L.Conv2D(filters, k, strides=s, padding="same", bias_initializer=bias, **kw)(x)


def depthwise(x, k=3, s=1):
    """Depthwise convolution with ReLU6."""
    return L.ReLU(6.0)(L.DepthwiseConv2D(k, strides=s, padding="same")(x))


# --- convolution nets -------------------------------------------------------------------------------------------

def small_conv(kind, io=None):
    """Three convolutions, max pool, a dense layer, softmax."""
    x = image(16, 16, 3)
    y = conv(x, 8)
    y = L.MaxPooling2D()(y)
    y = conv(y, 12)
    y = conv(y, 16, s=2)
    y = L.Flatten()(y)
    return from_keras(x, L.Softmax()(L.Dense(10)(y)), kind, io)


@model("CONV_2D, MAX_POOL_2D, RESHAPE, FULLY_CONNECTED, SOFTMAX, per-channel weights")
def conv_int8():
    return small_conv("int8")


@model("the same net in float32")
def conv_float32():
    return small_conv("float32")


@model("the same net with 16-bit activations and 64-bit biases")
def conv_int16x8():
    return small_conv("int16x8")


@model("the same net with weights quantized only (hybrid operators)")
def conv_hybrid():
    return small_conv("hybrid")


@model("the same net, uint8 at both ends (QUANTIZE in, QUANTIZE out)")
def conv_uint8_io():
    return small_conv("int8", tf.uint8)


@model("depthwise separable net, a chain where the greedy plan is a third above the bound; AVERAGE_POOL_2D")
def dscnn_int8():
    x = image(24, 24, 3)
    y = conv(x, 8, s=2)
    for filters, stride in ((16, 1), (16, 2), (24, 1), (32, 2)):
        y = conv(depthwise(y, s=stride), filters, 1, kernel_initializer="he_normal")
    y = L.Flatten()(L.AveragePooling2D((3, 3))(y))
    return from_keras(x, L.Dense(4)(y), "int8")


@model("inverted residuals: expansion, ADD across a bottleneck, as in MobileNetV2")
def mobilenet_v2_int8():
    x = image(24, 24, 3)
    y = conv(x, 8, s=2)
    for _ in range(2):
        z = conv(y, 32, 1)
        z = conv(depthwise(z), 8, 1, activation=None)
        y = L.Add()([y, z])
    z = conv(depthwise(conv(y, 32, 1), s=2), 12, 1, activation=None)
    return from_keras(x, L.Dense(3)(L.GlobalAveragePooling2D()(z)), "int8")


@model("squeeze and excite: MEAN, HARD_SWISH, LOGISTIC, broadcast MUL")
def squeeze_excite_int8():
    x = image(12, 12, 4)
    y = conv(x, 12, activation=None)
    y = L.Activation("hard_swish")(y)
    s = L.GlobalAveragePooling2D(keepdims=True)(y)
    s = conv(conv(s, 4, 1), 12, 1, activation="sigmoid")
    y = L.Multiply()([y, s])
    return from_keras(x, L.Dense(5)(L.GlobalAveragePooling2D()(y)), "int8")


@model("four branches joined by CONCATENATION, twice")
def inception_int8():
    x = image(12, 12, 4)
    y = x
    for _ in range(2):
        a = conv(y, 6, 1)
        b = conv(conv(y, 4, 1), 8)
        c = conv(conv(y, 3, 1), 4, 5)
        d = conv(L.MaxPooling2D(3, strides=1, padding="same")(y), 6, 1)
        y = L.Concatenate()([a, b, c, d])
    return from_keras(x, L.Dense(6)(L.GlobalAveragePooling2D()(y)), "int8")


@model("residual net: ADD around pairs of convolutions, one with a projection")
def resnet_int8():
    x = image(16, 16, 3)
    y = conv(x, 8)
    z = conv(conv(y, 8), 8, activation=None)
    y = L.ReLU()(L.Add()([y, z]))
    z = conv(conv(y, 12, s=2), 12, activation=None)
    y = L.ReLU()(L.Add()([conv(y, 12, 1, 2, activation=None), z]))
    return from_keras(x, L.Softmax()(L.Dense(10)(L.GlobalAveragePooling2D()(y))), "int8")


@model("encoder and decoder with skips: RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR, CONCATENATION, long lifetimes")
def unet_int8():
    x = image(16, 16, 1)
    a = conv(x, 6)
    b = conv(L.MaxPooling2D()(a), 10)
    c = conv(L.MaxPooling2D()(b), 16)
    y = conv(L.Concatenate()([L.Resizing(8, 8, interpolation="nearest")(c), b]), 10)
    y = conv(L.Concatenate()([L.Resizing(16, 16, interpolation="bilinear")(y), a]), 6)
    return from_keras(x, conv(y, 1, 1, activation="sigmoid"), "int8")


@model("TRANSPOSE_CONV: its accumulators are scratch four times its output")
def transpose_conv_int8():
    x = image(6, 6, 4)
    y = conv(x, 8)
    y = L.Conv2DTranspose(6, 3, strides=2, padding="same", activation="relu")(y)
    y = L.Conv2DTranspose(2, 3, strides=2, padding="same")(y)
    return from_keras(x, y, "int8")


@model("TRANSPOSE_CONV with 16-bit activations (64-bit accumulators)")
def transpose_conv_int16x8():
    x = image(5, 5, 4)
    y = L.Conv2DTranspose(6, 3, strides=2, padding="same")(x)
    return from_keras(x, conv(y, 3, 1), "int16x8")


@model("MEAN, SUM, REDUCE_MAX over several axes (scratch), PAD; four outputs")
def reductions_int8():
    def f(x):
        y = tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]])
        a = tf.reduce_mean(y, [1, 2])
        b = tf.reduce_sum(y, [1, 2])
        c = tf.reduce_max(y, [1, 2])
        return a, b, c, tf.reduce_mean(y, 3)
    return from_function(f, [(1, 6, 8, 5)], "int8")


@model("the same reductions in float32")
def reductions_float32():
    def f(x):
        y = tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]])
        return tf.reduce_mean(y, [1, 2]), tf.reduce_sum(y, [1, 2]), tf.reduce_max(y, [1, 2]), tf.reduce_mean(y, 3)
    return from_function(f, [(1, 6, 8, 5)])


# --- dense and sequence nets ------------------------------------------------------------------------------------

def autoencoder(kind):
    """Dense layers down to a bottleneck and up again."""
    x = keras.Input(batch_shape=(1, 96), name="frame")
    y = x
    for units in (32, 32, 6, 32, 32):
        y = L.Dense(units, activation="relu")(y)
    return from_keras(x, L.Dense(96)(y), kind)


@model("dense autoencoder: a chain, where nothing can be saved")
def autoencoder_int8():
    return autoencoder("int8")


@model("dense autoencoder with 16-bit activations")
def autoencoder_int16x8():
    return autoencoder("int16x8")


@model("logits and softmax both given out; softmax over a reshaped tensor")
def softmax_int8():
    x = keras.Input(batch_shape=(1, 24), name="features")
    logits = L.Dense(24)(x)
    p = L.Softmax()(L.Reshape((4, 6))(logits))
    return from_keras(x, [logits, L.Reshape((24,))(p)], "int8")


def lstm(kind):
    """An LSTM over 8 steps. Only the legacy Keras gives the converter the fused operator."""
    import tf_keras
    tf_keras.backend.clear_session()
    tf_keras.utils.set_random_seed(SEED)
    x = tf_keras.Input(batch_shape=(1, 8, 6), name="steps")
    y = tf_keras.layers.LSTM(10, return_sequences=True)(x)
    y = tf_keras.layers.Dense(4)(tf_keras.layers.Flatten()(y))
    m = tf_keras.Model(x, y)
    run = tf.function(lambda t: m(t))
    concrete = run.get_concrete_function(tf.TensorSpec((1, 8, 6), tf.float32, name="steps"))
    return finish(tf.lite.TFLiteConverter.from_concrete_functions([concrete], m), kind, [(1, 8, 6)])


@model("UNIDIRECTIONAL_SEQUENCE_LSTM with two variable tensors and scratch")
def lstm_int8():
    return lstm("int8")


@model("UNIDIRECTIONAL_SEQUENCE_LSTM in float32")
def lstm_float32():
    return lstm("float32")


@model("one attention head: BATCH_MATMUL, SOFTMAX, MEAN, SQUARED_DIFFERENCE, RSQRT, a residual")
def attention_float32():
    rng = np.random.default_rng(SEED)
    w = [tf.constant(rng.normal(0, 0.4, (16, 16)), tf.float32) for _ in range(4)]

    def f(x):
        q, k, v = (tf.reshape(tf.matmul(tf.reshape(x, (10, 16)), m), (1, 10, 16)) for m in w[:3])
        a = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.25)
        y = x + tf.reshape(tf.matmul(tf.reshape(tf.matmul(a, v), (10, 16)), w[3]), (1, 10, 16))
        mean = tf.reduce_mean(y, 2, keepdims=True)
        var = tf.reduce_mean(tf.math.squared_difference(y, mean), 2, keepdims=True)
        return (y - mean) * tf.math.rsqrt(var + 1e-3)
    return from_function(f, [(1, 10, 16)])


@model("dilated one-dimensional convolutions with residuals: PAD, CONV_2D with dilation, RESHAPE, ADD")
def tcn_int8():
    x = keras.Input(batch_shape=(1, 32, 6), name="frames")
    y = x
    for d in (1, 2, 4):
        z = L.Conv1D(12, 3, dilation_rate=d, padding="causal", activation="relu")(y)
        y = L.Add()([L.Conv1D(12, 1)(y), z])
    return from_keras(x, L.Dense(3)(L.Flatten()(L.AveragePooling1D(8)(y))), "int8")


# --- graph shapes that matter to a planner ----------------------------------------------------------------------

@model("one of two inputs is never read")
def unused_input_int8():
    a, b = image(8, 8, 2, "a"), image(8, 8, 6, "b")
    return from_keras([a, b], L.Flatten()(conv(conv(a, 5), 2)), "int8")


@model("two inputs of different size, the second read last")
def two_inputs_int8():
    a, b = image(8, 8, 4, "a"), image(4, 4, 8, "b")
    y = conv(conv(a, 8, s=2), 8)
    return from_keras([a, b], L.Add()([y, b]), "int8")


@model("graph outputs that are also read inside the graph, and so live to the end")
def output_reused_int8():
    x = image(12, 12, 2)
    y = conv(x, 6)
    z = conv(y, 4, s=2)
    return from_keras(x, [y, z, L.Flatten()(conv(z, 2))], "int8")


def diamond(seed, depth, kind="int8"):
    """A random graph of convolutions of unequal widths whose results are joined later: tensors of many sizes and
    lifetimes, where TFLM's greedy planner leaves holes."""
    rng = np.random.default_rng(seed)
    x = image(8, 8, 2)
    live = [x]
    for k in range(depth):
        source = live[int(rng.integers(0, len(live)))]
        if len(live) > 2 and rng.random() < 0.45:
            first = live.pop(int(rng.integers(0, len(live))))
            second = live.pop(int(rng.integers(0, len(live))))
            live.append(L.Concatenate()([first, second]))
        else:
            live.append(conv(source, int(rng.integers(1, 15)), int(rng.choice([1, 3]))))
            if rng.random() < 0.5 and len(live) > 3:
                live = [t for t in live if t is not source]
    y = live[0] if len(live) == 1 else L.Concatenate()(live)
    return from_keras(x, conv(y, 2, 1), kind)


def diamond_maker(name, seed, depth):
    """Registers one random graph. The seeds were found by trying many: the liveness bound is below the greedy head."""
    def make():
        return diamond(seed, depth)
    make.__name__ = name
    return model("random graph of branches and joins where TFLM's greedy plan is above the liveness bound")(make)


for _name, _seed, _depth in (("diamond_a_int8", 33, 9), ("diamond_b_int8", 3, 20), ("diamond_c_int8", 35, 9),
                             ("diamond_d_int8", 34, 14)):
    diamond_maker(_name, _seed, _depth)


# --- state, control flow, several subgraphs ---------------------------------------------------------------------

class Ring(tf.Module):
    """A streaming layer: keeps the last frames of its input in a variable, in the form wake word nets have."""

    def __init__(self, frames, width, rng):
        super().__init__()
        self.state = tf.Variable(tf.zeros((1, frames, width)), name="ring")
        self.w = tf.constant(rng.normal(0, 0.5, (frames * width + width, 2 * width)), tf.float32)

    def __call__(self, x):
        window = tf.concat([self.state.read_value(), x], 1)
        self.state.assign(window[:, 1:, :])
        return tf.nn.relu(tf.matmul(tf.reshape(window, (1, -1)), self.w))


class Streaming(tf.Module):
    """Streaming layers one after another."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(SEED)
        self.rings = [Ring(3, 4, rng), Ring(2, 8, rng), Ring(5, 16, rng)]
        self.w = tf.constant(rng.normal(0, 0.3, (32, 4)), tf.float32)

    def __call__(self, x):
        for r in self.rings:
            x = tf.reshape(r(x), (1, 1, -1))
        return tf.nn.softmax(tf.matmul(tf.reshape(x, (1, 32)), self.w))


def streaming(kind):
    m = Streaming()
    return from_function(lambda x: m(x), [(1, 1, 4)], kind, m)


@model("three resource variables: CALL_ONCE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE; outputs depend on the past")
def streaming_float32():
    return streaming("float32")


@model("the same streaming net in int8")
def streaming_int8():
    return streaming("int8")


@model("a variable that counts the invokes: state that starts at a value which is not zero")
def counter_float32():
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.n = tf.Variable(tf.fill((1, 4), 7.0), name="n")

        def __call__(self, x):
            y = self.n.read_value() + tf.reduce_sum(x * x, 1, keepdims=True)
            self.n.assign(y)
            return y * x
    m = Counter()
    return from_function(lambda x: m(x), [(1, 4)], owner=m)


@model("IF with two branches of different memory need")
def if_float32():
    def f(x, y):
        z = x * y + 1.0
        r = tf.cond(tf.reduce_sum(x) > 0.0,
                    lambda: tf.nn.relu(z * 2.0) - y,
                    lambda: tf.reshape(tf.concat([z, y], 1), (2, 16))[0:1, :] + tf.math.sin(z) * tf.exp(-y * y))
        return r + x
    return from_function(f, [(1, 16), (1, 16)])


@model("WHILE: condition and body as subgraphs, several loop variables")
def while_float32():
    def f(x, y):
        _, a, b = tf.while_loop(lambda i, a, b: i < 5,
                                lambda i, a, b: (i + 1, a * 0.5 + b, tf.nn.relu(b - a)),
                                [tf.constant(0), x + 1.0, y])
        return a * y, b
    return from_function(f, [(1, 24), (1, 24)])


@model("IF inside WHILE: control flow two levels deep")
def if_in_while_float32():
    def f(x):
        def body(i, a):
            b = tf.cond(tf.reduce_sum(a) > 1.0, lambda: a * 0.25 - 1.0, lambda: tf.exp(a) + a)
            return i + 1, b
        return tf.while_loop(lambda i, a: i < 4, body, [tf.constant(0), x * 2.0])[1] + x
    return from_function(f, [(1, 20)])


@model("two signatures: a second subgraph that the first never calls")
def two_signatures_float32():
    class Two(tf.Module):
        def __init__(self):
            super().__init__()
            rng = np.random.default_rng(SEED)
            self.w = tf.constant(rng.normal(0, 0.5, (12, 20)), tf.float32)

        @tf.function(input_signature=[tf.TensorSpec((1, 12), tf.float32)])
        def encode(self, x):
            return {"code": tf.nn.relu(tf.matmul(x, self.w))}

        @tf.function(input_signature=[tf.TensorSpec((1, 20), tf.float32)])
        def decode(self, code):
            return {"x": tf.tanh(tf.matmul(code, self.w, transpose_b=True))}
    m = Two()
    functions = [m.encode.get_concrete_function(), m.decode.get_concrete_function()]
    return tf.lite.TFLiteConverter.from_concrete_functions(functions, m).convert()


@model("exported with an open batch: shape 1, shape_signature -1")
def dynamic_batch_int8():
    x = keras.Input((10, 10, 2), name="image")
    y = conv(conv(x, 6), 8, s=2)
    return from_keras(x, L.Dense(3)(L.GlobalAveragePooling2D()(y)), "int8")


@model("an open batch and a RESHAPE whose shape is computed: SHAPE, STRIDED_SLICE, PACK")
def dynamic_reshape_float32():
    def f(x):
        y = tf.nn.relu(x) * 2.0
        return tf.reshape(y, tf.stack([tf.shape(x)[0], 6, 4])) + 1.0
    return from_function(f, [(None, 24)])


@model("SPLIT, UNPACK, PACK, CONCATENATION, STRIDED_SLICE: operators with many outputs and inputs")
def split_pack_float32():
    def f(x):
        a, b, c = tf.split(x, 3, 2)
        p = tf.stack([tf.nn.relu(t) for t in tf.unstack(a, axis=1)], 1)
        return tf.concat([p, tf.transpose(tf.transpose(b, (0, 2, 1)), (0, 2, 1)) * c], 2)[:, ::2, :]
    return from_function(f, [(1, 4, 12)])
