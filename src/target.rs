//! The device side that a plan is made for: a target, and the kernel libraries that it stands for.

use std::fmt;
use std::str::FromStr;

/// A library of kernels. It decides what may lie over what while an operator runs, and how much scratch memory an operator
/// asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Library {
    /// The portable kernels that every build can fall back on (`tensorflow/lite/micro/kernels/*.cc`).
    Reference,
    /// Arm's CMSIS-NN, where TFLM calls it, else the reference kernels.
    CmsisNn(Core),
    /// Espressif's ESP-NN, where `esp-tflite-micro` calls it, else the reference kernels.
    EspNn(Chip),
    /// The kernels of `arenaplan-runtime`: no build of TFLM.
    Arenaplan,
}

/// Which of CMSIS-NN's implementations a core gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Core {
    /// No DSP extension: Cortex-M0, M0+, M3, M23.
    Plain,
    /// The DSP extension (`ARM_MATH_DSP`): Cortex-M4, M7, M33, M35P.
    Dsp,
    /// The vector extension (`ARM_MATH_MVEI`): Cortex-M52, M55, M85.
    Mve,
}

/// Which of ESP-NN's implementations a chip gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chip {
    /// The portable ones: ESP32, S2, C3, C6.
    Generic,
    /// ESP32-S3.
    S3,
    /// ESP32-P4.
    P4,
}

impl Library {
    /// Every library that this tool knows, those of TensorFlow Lite Micro first.
    pub const ALL: [Library; 8] = [
        Library::Reference,
        Library::CmsisNn(Core::Plain),
        Library::CmsisNn(Core::Dsp),
        Library::CmsisNn(Core::Mve),
        Library::EspNn(Chip::Generic),
        Library::EspNn(Chip::S3),
        Library::EspNn(Chip::P4),
        Library::Arenaplan,
    ];

    /// The short name: `reference`, `cmsis-nn-dsp`, `esp-nn-s3`, ...
    pub fn name(self) -> &'static str {
        match self {
            Library::Reference => "reference",
            Library::CmsisNn(Core::Plain) => "cmsis-nn-plain",
            Library::CmsisNn(Core::Dsp) => "cmsis-nn-dsp",
            Library::CmsisNn(Core::Mve) => "cmsis-nn-mve",
            Library::EspNn(Chip::Generic) => "esp-nn-generic",
            Library::EspNn(Chip::S3) => "esp-nn-s3",
            Library::EspNn(Chip::P4) => "esp-nn-p4",
            Library::Arenaplan => "arenaplan",
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What will run the planned model. It decides what a plan may assume: what all of its libraries keep, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// TensorFlow Lite Micro with any kernel library, also one that this tool does not know: nothing is assumed that some
    /// kernel might not keep.
    Tflm,
    /// TFLM's reference kernels.
    TflmReference,
    /// CMSIS-NN on any core, or on one kind of them.
    TflmCmsisNn(Option<Core>),
    /// ESP-NN on any chip, or on one kind of them.
    TflmEspNn(Option<Chip>),
    /// `arenaplan-runtime`, with its own kernels.
    Arenaplan,
}

impl Target {
    /// Every target, in the order of the documentation.
    pub const ALL: [Target; 11] = [
        Target::Tflm,
        Target::TflmReference,
        Target::TflmCmsisNn(None),
        Target::TflmCmsisNn(Some(Core::Plain)),
        Target::TflmCmsisNn(Some(Core::Dsp)),
        Target::TflmCmsisNn(Some(Core::Mve)),
        Target::TflmEspNn(None),
        Target::TflmEspNn(Some(Chip::Generic)),
        Target::TflmEspNn(Some(Chip::S3)),
        Target::TflmEspNn(Some(Chip::P4)),
        Target::Arenaplan,
    ];

    /// The libraries that may be on the device. A plan must be right, and no larger than without a plan, on each of them;
    /// figures without another word are for the first one.
    pub fn libraries(self) -> &'static [Library] {
        const ALL: [Library; 8] = Library::ALL;
        match self {
            // All but our own.
            Target::Tflm => ALL.split_last().map_or(&[], |(_, others)| others),
            Target::TflmReference => &[Library::Reference],
            Target::TflmCmsisNn(None) => &[
                Library::CmsisNn(Core::Dsp),
                Library::CmsisNn(Core::Plain),
                Library::CmsisNn(Core::Mve),
            ],
            Target::TflmCmsisNn(Some(Core::Plain)) => &[Library::CmsisNn(Core::Plain)],
            Target::TflmCmsisNn(Some(Core::Dsp)) => &[Library::CmsisNn(Core::Dsp)],
            Target::TflmCmsisNn(Some(Core::Mve)) => &[Library::CmsisNn(Core::Mve)],
            Target::TflmEspNn(None) => &[
                Library::EspNn(Chip::Generic),
                Library::EspNn(Chip::S3),
                Library::EspNn(Chip::P4),
            ],
            Target::TflmEspNn(Some(Chip::Generic)) => &[Library::EspNn(Chip::Generic)],
            Target::TflmEspNn(Some(Chip::S3)) => &[Library::EspNn(Chip::S3)],
            Target::TflmEspNn(Some(Chip::P4)) => &[Library::EspNn(Chip::P4)],
            Target::Arenaplan => &[Library::Arenaplan],
        }
    }

    /// The kernels that must be on the device, in words.
    pub fn kernels(self) -> &'static str {
        match self {
            Target::Tflm => "any kernels",
            Target::TflmReference => "TFLM's reference kernels",
            Target::TflmCmsisNn(None) => "CMSIS-NN kernels, on whatever Cortex-M",
            Target::TflmCmsisNn(Some(Core::Plain)) => {
                "CMSIS-NN kernels on a core without DSP extension"
            }
            Target::TflmCmsisNn(Some(Core::Dsp)) => {
                "CMSIS-NN kernels on a core with DSP extension and without vectors"
            }
            Target::TflmCmsisNn(Some(Core::Mve)) => {
                "CMSIS-NN kernels on a core with vector extension"
            }
            Target::TflmEspNn(None) => "ESP-NN kernels, on whatever chip",
            Target::TflmEspNn(Some(Chip::Generic)) => "ESP-NN's portable kernels",
            Target::TflmEspNn(Some(Chip::S3)) => "ESP-NN kernels on an ESP32-S3",
            Target::TflmEspNn(Some(Chip::P4)) => "ESP-NN kernels on an ESP32-P4",
            Target::Arenaplan => "arenaplan's own runtime",
        }
    }

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Target::Tflm => "tflm",
            Target::TflmReference => "tflm-reference",
            Target::TflmCmsisNn(None) => "tflm-cmsis-nn",
            Target::TflmCmsisNn(Some(Core::Plain)) => "tflm-cmsis-nn-plain",
            Target::TflmCmsisNn(Some(Core::Dsp)) => "tflm-cmsis-nn-dsp",
            Target::TflmCmsisNn(Some(Core::Mve)) => "tflm-cmsis-nn-mve",
            Target::TflmEspNn(None) => "tflm-esp-nn",
            Target::TflmEspNn(Some(Chip::Generic)) => "tflm-esp-nn-generic",
            Target::TflmEspNn(Some(Chip::S3)) => "tflm-esp-nn-s3",
            Target::TflmEspNn(Some(Chip::P4)) => "tflm-esp-nn-p4",
            Target::Arenaplan => "arenaplan",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A target name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget(String);

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Target::ALL.iter().map(|t| t.name()).collect();
        write!(
            f,
            "unknown target {:?}; known: {}",
            self.0,
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownTarget {}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Target::ALL.into_iter().find(|t| t.name() == text);
        found.ok_or_else(|| UnknownTarget(text.to_owned()))
    }
}
