//! The device-side reader of `.tflite` models: no allocation, no dependency, no panic, no `unsafe`.
//!
//! [`Model::new`] looks at the root alone; everything else is read from the bytes when it is asked
//! for, with each read checked, so a model in flash takes no RAM and a damaged one gives an
//! [`Error`] with the place of the damage. Absent fields read as the schema's defaults; an absent
//! vector reads as an empty one, except where the difference matters ([`Buffer::data`]). Fields
//! that a newer schema adds can be read by slot through `table()`.
//!
//! What is read is checked against the bytes, not for sense: indices (of tensors, buffers, operator
//! codes) are given as they are stored, and looking one up that does not exist is an
//! [`Error::Index`].
//!
//! ```
//! use arenaplan_schema::view::{Error, Model};
//!
//! assert!(matches!(Model::new(b"no model at all"), Err(Error::NotTflite { file_bytes: 15 })));
//! ```

mod tables;

pub use crate::wire::{
    Error, Field, FromTable, Scalar, Scalars, Table, TableKind, Tables, TablesIter, Text, Vector,
};
pub use tables::{
    Buffer, ExternalBuffer, ExternalBufferGroup, Metadata, Operator, OperatorCode,
    QuantizationParameters, SignatureDef, SubGraph, Tensor, TensorMap,
};

/// The name of the metadata entry that holds the memory plan.
pub const PLAN_NAME: &str = "OfflineMemoryAllocation";

/// The name of the metadata entry with data that the runtime of this project would compute otherwise.
pub const PREPARED_NAME: &str = "arenaplan.prepared";

/// The offset of a tensor that the plan leaves to the device.
pub const ONLINE: i32 = -1;

/// Words of the plan before the first offset: version, number of subgraphs, number of offsets.
const PLAN_HEADER_WORDS: usize = 3;

/// A `.tflite` model in the caller's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    bytes: &'a [u8],
    root: Table<'a>,
}

impl<'a> Model<'a> {
    /// Finds the root table in the bytes of a `.tflite` file, which may have any alignment.
    ///
    /// # Errors
    /// [`Error::NotTflite`] without the identifier `TFL3`; others if the root table is not
    /// within the bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        Ok(Self {
            bytes,
            root: Table::root(bytes)?,
        })
    }

    /// The root table itself, to read fields by slot number.
    pub fn table(&self) -> Table<'a> {
        self.root
    }

    /// The bytes that the model was made from.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The schema's version; the only one in use is 3.
    ///
    /// # Errors
    /// If the field is not within the file, as for all accessors here.
    pub fn version(&self) -> Result<u32, Error> {
        self.root.u32(0, 0)
    }

    /// The kinds of operator that the model uses.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn operator_codes(&self) -> Result<Tables<'a, OperatorCode<'a>>, Error> {
        self.root.tables(1)
    }

    /// The subgraphs; the first is the model's main one.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn subgraphs(&self) -> Result<Tables<'a, SubGraph<'a>>, Error> {
        self.root.tables(2)
    }

    /// A text about the model.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn description(&self) -> Result<Option<Text<'a>>, Error> {
        self.root.text(3)
    }

    /// The buffers; the first is empty by convention.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn buffers(&self) -> Result<Tables<'a, Buffer<'a>>, Error> {
        self.root.tables(4)
    }

    /// Indices of buffers with metadata; deprecated, see [`Self::metadata`].
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn metadata_buffer(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.root.vector(5)?.unwrap_or_default())
    }

    /// The named metadata entries.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn metadata(&self) -> Result<Tables<'a, Metadata<'a>>, Error> {
        self.root.tables(6)
    }

    /// The model's callable functions with the names of their inputs and outputs.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn signature_defs(&self) -> Result<Tables<'a, SignatureDef<'a>>, Error> {
        self.root.tables(7)
    }

    /// The files that external buffers are in.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn external_buffer_groups(&self) -> Result<Tables<'a, ExternalBufferGroup<'a>>, Error> {
        self.root.tables(8)
    }

    /// The constants that are kept in other files.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn external_buffers(&self) -> Result<Tables<'a, ExternalBuffer<'a>>, Error> {
        self.root.tables(9)
    }

    /// The bytes of `buffer`, wherever in the file they are; `None` if it has none.
    ///
    /// Data inside the FlatBuffer comes first; without it, `Buffer.offset` and `size` count if both
    /// are above 1, as the schema says of files above 2 GB.
    ///
    /// # Errors
    /// [`Error::OutsideData`] if the bytes are not all in the file.
    pub fn buffer_bytes(&self, buffer: Buffer<'a>) -> Result<Option<&'a [u8]>, Error> {
        if let Some(data) = buffer.data()? {
            return Ok(Some(data));
        }
        self.outside(buffer.table(), 1, buffer.offset()?, buffer.size()?)
    }

    /// The custom options of `operator`, wherever in the file they are; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::OutsideData`] if the bytes are not all in the file.
    pub fn custom_options(&self, operator: Operator<'a>) -> Result<Option<&'a [u8]>, Error> {
        if let Some(data) = operator.custom_options()? {
            return Ok(Some(data));
        }
        let offset = operator.large_custom_options_offset()?;
        self.outside(
            operator.table(),
            9,
            offset,
            operator.large_custom_options_size()?,
        )
    }

    fn outside(
        &self,
        table: Table<'a>,
        slot: u16,
        offset: u64,
        size: u64,
    ) -> Result<Option<&'a [u8]>, Error> {
        if offset <= 1 || size <= 1 {
            return Ok(None);
        }
        let data = (|| {
            let from = self.bytes.get(usize::try_from(offset).ok()?..)?;
            from.get(..usize::try_from(size).ok()?)
        })();
        match data {
            Some(data) => Ok(Some(data)),
            None => Err(Error::OutsideData {
                field: table.field(slot),
                position: usize::try_from(offset).unwrap_or(usize::MAX),
            }),
        }
    }

    /// The bytes of the metadata entry called `name`; `None` without such an entry, the last where
    /// there are several.
    ///
    /// # Errors
    /// If an entry, or the buffer that the entry names, is not within the file.
    pub fn metadata_bytes(&self, name: &str) -> Result<Option<&'a [u8]>, Error> {
        match self.metadata_buffer_of(name)? {
            Some(index) => self.buffer_bytes(self.buffers()?.get(index as usize)?),
            None => Ok(None),
        }
    }

    /// As [`metadata_bytes`](Self::metadata_bytes), of an entry whose bytes are inside of the FlatBuffer, as all are that this
    /// crate writes.
    ///
    /// # Errors
    /// If an entry, or the buffer that the entry names, is not within the file.
    pub fn metadata_data(&self, name: &str) -> Result<Option<&'a [u8]>, Error> {
        match self.metadata_buffer_of(name)? {
            Some(index) => self.buffers()?.get(index as usize)?.data(),
            None => Ok(None),
        }
    }

    fn metadata_buffer_of(&self, name: &str) -> Result<Option<u32>, Error> {
        let mut found = None;
        self.for_each_entry(name, &mut |buffer| {
            found = Some(buffer);
            Ok(())
        })?;
        Ok(found)
    }

    /// Shows the buffer of each metadata entry called `name`, in order.
    #[inline(never)]
    fn for_each_entry(
        &self,
        name: &str,
        with: &mut dyn FnMut(u32) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let entries = self.metadata()?;
        for index in 0..entries.len() {
            let entry = entries.get(index)?;
            if entry.name()?.is_some_and(|text| text == *name) {
                with(entry.buffer()?)?;
            }
        }
        Ok(())
    }

    /// The memory plan: the metadata entry named exactly [`PLAN_NAME`]; `None` if there is none.
    ///
    /// The rules are those of TensorFlow Lite Micro (`micro_allocation_info.cc`): little-endian
    /// 32-bit words `[version, subgraphs, n, offset 0, ... offset n-1]`, version and subgraphs
    /// ignored, `n` the number of all tensors, and of several entries each must be right and the
    /// last wins. What crashes or misleads it is an error here.
    ///
    /// # Errors
    /// One of the `Plan...` errors if a plan is there but is not a valid one for this
    /// model; others if the file is damaged. Whether offsets fit the arena, are aligned and keep
    /// live tensors apart is not looked at.
    pub fn offline_plan(&self) -> Result<Option<OfflinePlan<'a>>, Error> {
        self.offline_plan_of(self.tensor_count()?)
    }

    /// As [`offline_plan`](Self::offline_plan), for who knows how many tensors all subgraphs have.
    ///
    /// # Errors
    /// As those of [`offline_plan`](Self::offline_plan).
    pub fn offline_plan_of(&self, tensors: usize) -> Result<Option<OfflinePlan<'a>>, Error> {
        let mut plan = None;
        self.for_each_entry(PLAN_NAME, &mut |buffer| {
            plan = Some(self.plan_of(buffer, tensors)?);
            Ok(())
        })?;
        // Offsets are looked at once, so that work stays within the file's size however many
        // entries share a plan.
        if let Some(plan) = &plan {
            for (tensor, offset) in plan.offsets.iter().enumerate() {
                if offset < ONLINE {
                    return Err(Error::PlanOffset { tensor, offset });
                }
            }
        }
        Ok(plan)
    }

    /// How many tensors all subgraphs have together, which is how many offsets a plan has.
    ///
    /// # Errors
    /// If a subgraph, or its vector of tensors, is not within the file.
    pub fn tensor_count(&self) -> Result<usize, Error> {
        let mut count: usize = 0;
        for subgraph in self.subgraphs()? {
            count = count.saturating_add(subgraph?.tensors()?.len());
        }
        Ok(count)
    }

    fn plan_of(&self, buffer: u32, tensors: usize) -> Result<OfflinePlan<'a>, Error> {
        let buffers = self.buffers()?;
        if buffer as usize >= buffers.len() {
            return Err(Error::PlanBufferIndex {
                buffer,
                buffers: buffers.len(),
            });
        }
        let Some(data) = buffers.get(buffer as usize)?.data()? else {
            return Err(Error::PlanWithoutData { buffer });
        };
        let Some((header, rest)) = data.split_first_chunk::<{ PLAN_HEADER_WORDS * 4 }>() else {
            return Err(Error::PlanHeader { bytes: data.len() });
        };
        let word = |index| Vector::<u32>::new(header).get(index).unwrap_or(0);
        let (version, subgraphs, stated) = (word(0), word(1), word(2));
        let Some(offsets) = (stated as usize)
            .checked_mul(4)
            .and_then(|bytes| rest.get(..bytes))
        else {
            return Err(Error::PlanTruncated {
                stated,
                present: rest.len() / 4,
            });
        };
        if stated as usize != tensors {
            return Err(Error::PlanTensorCount { stated, tensors });
        }
        Ok(OfflinePlan {
            version,
            subgraphs,
            offsets: Vector::new(offsets),
        })
    }
}

/// The memory plan of a model, as it is stored in the file.
#[derive(Clone, Copy, Debug)]
pub struct OfflinePlan<'a> {
    version: u32,
    subgraphs: u32,
    offsets: Vector<'a, i32>,
}

impl<'a> OfflinePlan<'a> {
    /// The plan's version word, which TensorFlow Lite Micro does not look at.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The plan's number of subgraphs, which TensorFlow Lite Micro does not look at.
    pub fn subgraphs(&self) -> u32 {
        self.subgraphs
    }

    /// The offset in the arena, in bytes, of each tensor of the model: those of all subgraphs, one
    /// after another.
    ///
    /// As many as the model has tensors, none below [`ONLINE`], which leaves the tensor to the
    /// device. For constants the entry means nothing.
    pub fn offsets(&self) -> Vector<'a, i32> {
        self.offsets
    }
}
