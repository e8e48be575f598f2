//! The tables of a model: one view each, its fields by the names and slots of the schema.

use crate::names::builtin_code;
use crate::wire::{Error, Table, TableKind, Tables, Text, Vector, table_view};

/// A kind of operator that the model uses.
#[derive(Clone, Copy, Debug)]
pub struct OperatorCode<'a>(Table<'a>);
table_view!(OperatorCode);

impl<'a> OperatorCode<'a> {
    /// The builtin operator's number, by the rule of [`builtin_code`]; 32 stands for a custom
    /// operator.
    ///
    /// # Errors
    /// If a field is not within the file.
    pub fn builtin_code(&self) -> Result<i32, Error> {
        Ok(builtin_code(
            self.deprecated_builtin_code()?,
            self.extended_builtin_code()?,
        ))
    }

    /// The field `deprecated_builtin_code` alone: the number in files written before there were
    /// more than 127 operators, and 127 for newer operators.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn deprecated_builtin_code(&self) -> Result<i8, Error> {
        self.0.i8(0, 0)
    }

    /// The field `builtin_code` alone, which old files lack (0).
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn extended_builtin_code(&self) -> Result<i32, Error> {
        self.0.i32(3, 0)
    }

    /// The name of a custom operator.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn custom_code(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(1)
    }

    /// The operator's version, at least 1.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn version(&self) -> Result<i32, Error> {
        self.0.i32(2, 1)
    }
}

/// A graph of operators on tensors.
#[derive(Clone, Copy, Debug)]
pub struct SubGraph<'a>(Table<'a>);
table_view!(SubGraph);

impl<'a> SubGraph<'a> {
    /// The tensors, which indices in this subgraph count in.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn tensors(&self) -> Result<Tables<'a, Tensor<'a>>, Error> {
        self.0.tables(0)
    }

    /// Indices of the tensors that the caller sets.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn inputs(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.0.vector(1)?.unwrap_or_default())
    }

    /// Indices of the tensors that the caller reads.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn outputs(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.0.vector(2)?.unwrap_or_default())
    }

    /// The operators in the order in which they run.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn operators(&self) -> Result<Tables<'a, Operator<'a>>, Error> {
        self.0.tables(3)
    }

    /// The subgraph's name.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn name(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(4)
    }
}

/// A tensor of a subgraph.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a>(Table<'a>);
table_view!(Tensor);

impl<'a> Tensor<'a> {
    /// The dimensions, outermost first.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn shape(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.0.vector(0)?.unwrap_or_default())
    }

    /// The element type's number (`TensorType` of the schema).
    ///
    /// # Errors
    /// If the field is not within the file.
    #[inline(always)]
    pub fn element_type(&self) -> Result<i8, Error> {
        Ok(self.0.scalar(1, 1)?.first().map_or(0, |byte| *byte as i8))
    }

    /// Index of the buffer with the tensor's constant data; 0, or a buffer without data, for one
    /// that is computed.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn buffer(&self) -> Result<u32, Error> {
        self.0.u32(2, 0)
    }

    /// The tensor's name.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn name(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(3)
    }

    /// How the tensor's integers stand for real numbers.
    ///
    /// # Errors
    /// If the table is not within the file.
    pub fn quantization(&self) -> Result<Option<QuantizationParameters<'a>>, Error> {
        let table = self.0.table_of(4, TableKind::QuantizationParameters)?;
        Ok(table.map(QuantizationParameters))
    }

    /// Whether the tensor keeps its value from one invocation to the next.
    ///
    /// # Errors
    /// If the field is not within the file.
    #[inline(always)]
    pub fn is_variable(&self) -> Result<bool, Error> {
        Ok(self.0.scalar(5, 1)?.first().is_some_and(|byte| *byte != 0))
    }

    /// The table `SparsityParameters`; present if the constant data is stored sparsely.
    ///
    /// # Errors
    /// If the table is not within the file.
    pub fn sparsity(&self) -> Result<Option<Table<'a>>, Error> {
        self.0.table(6)
    }

    /// The shape with -1 for each dimension that was unknown at export; empty if all were known.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn shape_signature(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.0.vector(7)?.unwrap_or_default())
    }

    /// Whether the rank is known; tells a scalar from a tensor of unknown rank where the shape is
    /// empty.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn has_rank(&self) -> Result<bool, Error> {
        self.0.bool(8, false)
    }

    /// The `id` of the external buffer that holds the tensor's constant data; 0 for none.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn external_buffer(&self) -> Result<u32, Error> {
        self.0.u32(10, 0)
    }
}

/// Scales and zero points of a tensor: `real = scale * (integer - zero_point)`.
#[derive(Clone, Copy, Debug)]
pub struct QuantizationParameters<'a>(Table<'a>);
table_view!(QuantizationParameters);

impl<'a> QuantizationParameters<'a> {
    /// The smallest real values seen when the model was calibrated; empty in most models.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn min(&self) -> Result<Vector<'a, f32>, Error> {
        Ok(self.0.vector(0)?.unwrap_or_default())
    }

    /// The largest real values seen when the model was calibrated; empty in most models.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn max(&self) -> Result<Vector<'a, f32>, Error> {
        Ok(self.0.vector(1)?.unwrap_or_default())
    }

    /// The scales: one, or one for each index of the quantized dimension.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn scale(&self) -> Result<Vector<'a, f32>, Error> {
        Ok(self.0.vector(2)?.unwrap_or_default())
    }

    /// The zero points, as many as there are scales.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn zero_point(&self) -> Result<Vector<'a, i64>, Error> {
        Ok(self.0.vector(3)?.unwrap_or_default())
    }

    /// Which member of the union `QuantizationDetails` is there; 0 for none.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn details_type(&self) -> Result<u8, Error> {
        self.0.u8(4, 0)
    }

    /// The member of the union `QuantizationDetails`.
    ///
    /// # Errors
    /// If the table is not within the file.
    pub fn details(&self) -> Result<Option<Table<'a>>, Error> {
        self.0.table(5)
    }

    /// The dimension of the shape that several scales belong to.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn quantized_dimension(&self) -> Result<i32, Error> {
        self.0.i32(6, 0)
    }
}

/// An operator of a subgraph.
#[derive(Clone, Copy, Debug)]
pub struct Operator<'a>(Table<'a>);
table_view!(Operator);

impl<'a> Operator<'a> {
    /// Index of the operator's kind in [`Model::operator_codes`](super::Model::operator_codes).
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn opcode_index(&self) -> Result<u32, Error> {
        self.0.u32(0, 0)
    }

    /// Indices of the input tensors; -1 for an optional one that is not given.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn inputs(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.0.vector(1)?.unwrap_or_default())
    }

    /// Indices of the output tensors.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn outputs(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.0.vector(2)?.unwrap_or_default())
    }

    /// Which member of the union `BuiltinOptions` is there; 0 for none.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn options_type(&self) -> Result<u8, Error> {
        self.0.u8(3, 0)
    }

    /// The member of the union `BuiltinOptions`.
    ///
    /// # Errors
    /// If the table is not within the file.
    pub fn options(&self) -> Result<Option<Table<'a>>, Error> {
        self.0.table(4)
    }

    /// The options of a custom operator, where they are inside the FlatBuffer; see
    /// [`Model::custom_options`](super::Model::custom_options).
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn custom_options(&self) -> Result<Option<&'a [u8]>, Error> {
        self.0.byte_vector(5)
    }

    /// For each input, whether the operator changes it; empty if it changes none.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn mutating_variable_inputs(&self) -> Result<Vector<'a, bool>, Error> {
        Ok(self.0.vector(7)?.unwrap_or_default())
    }

    /// Indices of the tensors that describe the operator's inner values.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn intermediates(&self) -> Result<Vector<'a, i32>, Error> {
        Ok(self.0.vector(8)?.unwrap_or_default())
    }

    /// Where custom options outside the FlatBuffer are, in bytes from the start of the file, if
    /// above 1.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn large_custom_options_offset(&self) -> Result<u64, Error> {
        self.0.u64(9, 0)
    }

    /// Bytes of the custom options outside the FlatBuffer.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn large_custom_options_size(&self) -> Result<u64, Error> {
        self.0.u64(10, 0)
    }

    /// Which member of the union `BuiltinOptions2` is there; 0 for none.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn options2_type(&self) -> Result<u8, Error> {
        self.0.u8(11, 0)
    }

    /// The member of the union `BuiltinOptions2`.
    ///
    /// # Errors
    /// If the table is not within the file.
    pub fn options2(&self) -> Result<Option<Table<'a>>, Error> {
        self.0.table(12)
    }
}

/// A buffer with constant data or metadata.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a>(Table<'a>);
table_view!(Buffer);

impl<'a> Buffer<'a> {
    /// The data, where it is inside the FlatBuffer; `None` if there is no vector, which an empty
    /// one is not. See [`Model::buffer_bytes`](super::Model::buffer_bytes).
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn data(&self) -> Result<Option<&'a [u8]>, Error> {
        self.0.byte_vector(0)
    }

    /// Where data outside the FlatBuffer is, in bytes from the start of the file, if above 1.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn offset(&self) -> Result<u64, Error> {
        self.0.u64(1, 0)
    }

    /// Bytes of the data outside the FlatBuffer.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn size(&self) -> Result<u64, Error> {
        self.0.u64(2, 0)
    }
}

/// A named metadata entry.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a>(Table<'a>);
table_view!(Metadata);

impl<'a> Metadata<'a> {
    /// The entry's name.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn name(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(0)
    }

    /// Index of the buffer with the entry's bytes.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn buffer(&self) -> Result<u32, Error> {
        self.0.u32(1, 0)
    }
}

/// A callable function of the model.
#[derive(Clone, Copy, Debug)]
pub struct SignatureDef<'a>(Table<'a>);
table_view!(SignatureDef);

impl<'a> SignatureDef<'a> {
    /// The named inputs.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn inputs(&self) -> Result<Tables<'a, TensorMap<'a>>, Error> {
        self.0.tables(0)
    }

    /// The named outputs.
    ///
    /// # Errors
    /// If the vector is not within the file.
    pub fn outputs(&self) -> Result<Tables<'a, TensorMap<'a>>, Error> {
        self.0.tables(1)
    }

    /// The function's name.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn signature_key(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(2)
    }

    /// Index of the subgraph that computes the function.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn subgraph_index(&self) -> Result<u32, Error> {
        self.0.u32(4, 0)
    }
}

/// The name of a signature's input or output.
#[derive(Clone, Copy, Debug)]
pub struct TensorMap<'a>(Table<'a>);
table_view!(TensorMap);

impl<'a> TensorMap<'a> {
    /// The name that callers use.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn name(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(0)
    }

    /// Index of the tensor in the signature's subgraph.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn tensor_index(&self) -> Result<u32, Error> {
        self.0.u32(1, 0)
    }
}

/// A file that holds external buffers.
#[derive(Clone, Copy, Debug)]
pub struct ExternalBufferGroup<'a>(Table<'a>);
table_view!(ExternalBufferGroup);

impl<'a> ExternalBufferGroup<'a> {
    /// The file's name.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn name(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(0)
    }
}

/// A constant that is kept in another file.
#[derive(Clone, Copy, Debug)]
pub struct ExternalBuffer<'a>(Table<'a>);
table_view!(ExternalBuffer);

impl<'a> ExternalBuffer<'a> {
    /// The number that [`Tensor::external_buffer`] refers to.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn id(&self) -> Result<u32, Error> {
        self.0.u32(0, 0)
    }

    /// Index of the file in
    /// [`Model::external_buffer_groups`](super::Model::external_buffer_groups).
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn group(&self) -> Result<u32, Error> {
        self.0.u32(1, 0)
    }

    /// Where the data is in that other file.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn offset(&self) -> Result<u64, Error> {
        self.0.u64(2, 0)
    }

    /// Bytes of the data.
    ///
    /// # Errors
    /// If the field is not within the file.
    pub fn length(&self) -> Result<u64, Error> {
        self.0.u64(3, 0)
    }

    /// How the data is packed.
    ///
    /// # Errors
    /// If the string is not within the file.
    pub fn packing(&self) -> Result<Option<Text<'a>>, Error> {
        self.0.text(4)
    }
}
