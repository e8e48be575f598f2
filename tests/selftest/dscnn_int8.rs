/* dscnn_int8 self-test: for arenaplan-runtime, made by arenaplan export */
// self-test: 4 invokes, 48 bytes of flash for data
//   operators with outputs over their inputs: 7; the order of their kernels matters for 7, and a wrong one would be caught for 7

/// Inputs and the outputs that they must give.
pub static SELF_TEST: ::arenaplan_runtime::self_test::SelfTest<'static> = ::arenaplan_runtime::self_test::SelfTest {
    inputs: &[
        ::arenaplan_runtime::self_test::Port { element_type: ::arenaplan_runtime::Type::INT8, bytes: 1728 },
    ],
    outputs: &[
        ::arenaplan_runtime::self_test::Output {
            port: ::arenaplan_runtime::self_test::Port { element_type: ::arenaplan_runtime::Type::INT8, bytes: 4 },
            expected: ::arenaplan_runtime::self_test::Expected::Bytes(&[
                127, 27, 128, 47, 127, 27, 129, 47, 127, 27, 129, 47, 127, 27, 129, 47,
            ]),
        },
    ],
    signals: &[
        ::arenaplan_runtime::self_test::Signal { seed: 0x89025cc1, narrow: 0, hold: 16 },
        ::arenaplan_runtime::self_test::Signal { seed: 0x658eec67, narrow: 2, hold: 1 },
        ::arenaplan_runtime::self_test::Signal { seed: 0xfb32555f, narrow: 0, hold: 64 },
        ::arenaplan_runtime::self_test::Signal { seed: 0xee42c90b, narrow: 1, hold: 5 },
    ],
};

/// Proves that the kernels of this device keep the model's plan. Run it once, after the interpreter is made: state is set
/// back before and after, and inputs have to be set again.
///
/// # Errors
/// The first output that is not as it should be, or why there is none.
pub fn self_test(
    interpreter: &mut ::arenaplan_runtime::Interpreter<'_, '_>,
) -> ::core::result::Result<(), ::arenaplan_runtime::self_test::SelfTestFailure> {
    SELF_TEST.run(interpreter)
}
