//! An operator as its kernel sees it: tensors, options, scratch memory, and the subgraphs that it calls.

use core::fmt;

use arenaplan_schema::view::{self, Tables, Vector};

use crate::error::{Fault, Operand};
use crate::memory::{Element, View, ViewMut};
use crate::run::{Lists, Place, Run};
use crate::types::Type;

/// An operator, while its kernel runs or says how much scratch memory it takes.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    pub(crate) run: &'a Run<'a>,
    /// Of its subgraph.
    pub(crate) lists: &'a Lists<'a>,
    pub(crate) index: u32,
    pub(crate) operator: view::Operator<'a>,
    pub(crate) inputs: Vector<'a, i32>,
    pub(crate) outputs: Vector<'a, i32>,
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({}, {})", self.subgraph(), self.index)
    }
}

impl<'a> Node<'a> {
    /// The subgraph that it belongs to.
    pub(crate) fn subgraph(&self) -> u32 {
        self.lists.index
    }

    /// The tensors of its subgraph.
    pub(crate) fn tensors(&self) -> Tables<'a, view::Tensor<'a>> {
        self.lists.tensors
    }

    /// Position in the plan of the subgraph's first tensor.
    pub(crate) fn first_tensor(&self) -> u32 {
        self.lists.first.tensor
    }

    /// Position among the operators of all subgraphs.
    pub(crate) fn number(&self) -> u32 {
        self.lists.first.operator.saturating_add(self.index)
    }

    /// How many inputs the operator has, with those that are not given.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// How many outputs the operator has.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The input `index`.
    ///
    /// # Errors
    /// [`Fault::Missing`] if it is not given; [`Fault::Format`] if the file is damaged.
    #[inline(never)]
    pub fn input(&self, index: usize) -> Result<Tensor<'a>, Fault> {
        let operand = Operand::Input(index as u8);
        match self.inputs.get(index) {
            None | Some(-1) => Err(Fault::Missing(operand)),
            Some(tensor) => self.tensor(tensor, operand),
        }
    }

    /// Whether the input `index` is given.
    pub fn has_input(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(|tensor| tensor != -1)
    }

    /// The input `index`, or `None` if it is not given.
    ///
    /// # Errors
    /// [`Fault::Format`] if the file is damaged.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn optional_input(&self, index: usize) -> Result<Option<Tensor<'a>>, Fault> {
        match self.inputs.get(index) {
            None | Some(-1) => Ok(None),
            Some(tensor) => self.tensor(tensor, Operand::Input(index as u8)).map(Some),
        }
    }

    /// The output `index`.
    ///
    /// # Errors
    /// [`Fault::Missing`] if it is not given; [`Fault::Format`] if the file is damaged.
    #[inline(never)]
    pub fn output(&self, index: usize) -> Result<Tensor<'a>, Fault> {
        let operand = Operand::Output(index as u8);
        match self.outputs.get(index) {
            None => Err(Fault::Missing(operand)),
            Some(tensor) => self.tensor(tensor, operand),
        }
    }

    /// The tensor in the operator's list of inner values, `index`: only its type and quantization mean something.
    ///
    /// # Errors
    /// [`Fault::Missing`] if it is not given; [`Fault::Format`] if the file is damaged.
    pub fn intermediate(&self, index: usize) -> Result<Tensor<'a>, Fault> {
        let operand = Operand::Input(u8::MAX);
        match self.operator.intermediates()?.get(index) {
            None | Some(-1) => Err(Fault::Missing(operand)),
            Some(tensor) => self.tensor(tensor, operand),
        }
    }

    // Hosts have the room for copies of it, and need none of what it returns then.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn tensor(&self, index: i32, operand: Operand) -> Result<Tensor<'a>, Fault> {
        let index = usize::try_from(index).map_err(|_| Fault::Format)?;
        let table = self.lists.tensors.get(index);
        let table = table.as_ref().map_err(|_| Fault::Format)?;
        let id = self.lists.first.tensor.saturating_add(index as u32);
        Tensor::new(self.run, table, id, operand)
    }

    /// The operator's options; all defaults if it has none.
    ///
    /// # Errors
    /// [`Fault::Format`] if the file is damaged.
    #[inline(never)]
    pub fn options(&self) -> Result<Options<'a>, Fault> {
        Ok(Options(self.operator.options()?))
    }

    /// The options of a custom operator; empty if it has none.
    ///
    /// # Errors
    /// [`Fault::Format`] if the file is damaged.
    pub fn custom_options(&self) -> Result<&'a [u8], Fault> {
        let options = self.run.model.custom_options(self.operator)?;
        Ok(options.unwrap_or_default())
    }

    /// The operator's scratch memory, as elements: whole ones, as many as fit what the kernel asked for.
    ///
    /// Aligned to 16 bytes; its contents are whatever was there before.
    ///
    /// # Errors
    /// [`Fault::Scratch`] if the kernel asked for none.
    pub fn scratch<T: Element>(&self) -> Result<ViewMut<'a, T>, Fault> {
        let bytes = self.scratch_bytes()?;
        let whole = bytes.len() / size_of::<T>() * size_of::<T>();
        bytes
            .part(0, whole)
            .and_then(ViewMut::cast)
            .ok_or(Fault::Scratch)
    }

    /// The first bytes of the scratch memory that the kernel asked for: not more than those.
    pub(crate) fn scratch_of(&self, bytes: usize) -> Option<ViewMut<'a, u8>> {
        self.run
            .at(Place(self.run.operator_word(self.number())), bytes)
    }

    fn scratch_bytes(&self) -> Result<ViewMut<'a, u8>, Fault> {
        let kernel = self.run.kernel(self).ok_or(Fault::Scratch)?;
        let bytes = (kernel.scratch.ok_or(Fault::Scratch)?)(self)?;
        self.run
            .at(Place(self.run.operator_word(self.number())), bytes)
            .ok_or(Fault::Scratch)
    }
}

/// The options of an operator, read by the slot that the schema gives a field.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(Option<view::Table<'a>>);

macro_rules! options {
    ($($name:ident: $type:ty;)*) => {$(
        #[doc = concat!("The `", stringify!($type), "` in `slot`, or `default` where it is not stored.")]
        ///
        /// # Errors
        /// [`Fault::Format`] if the file is damaged.
        pub fn $name(&self, slot: u16, default: $type) -> Result<$type, Fault> {
            match &self.0 {
                Some(table) => Ok(table.$name(slot, default)?),
                None => Ok(default),
            }
        }
    )*};
}

impl<'a> Options<'a> {
    options! {
        i8: i8;
        i32: i32;
        i64: i64;
        f32: f32;
        bool: bool;
    }

    /// The table of the options, to read other fields.
    pub fn table(&self) -> Option<view::Table<'a>> {
        self.0
    }
}

/// What was found, by reference: a copy of a tensor is a large part of a frame, and takes its time.
#[inline(always)]
pub(crate) fn found<'t, 'a>(
    tensor: &'t Result<Tensor<'a>, Fault>,
) -> Result<&'t Tensor<'a>, Fault> {
    tensor.as_ref().map_err(|fault| *fault)
}

/// A tensor of an operator.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    run: &'a Run<'a>,
    table: view::Tensor<'a>,
    shape: Shape<'a>,
    element_type: Type,
    id: u32,
    operand: Operand,
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}, {:?})", self.id, self.shape)
    }
}

impl<'a> Tensor<'a> {
    pub(crate) fn new(
        run: &'a Run<'a>,
        table: &view::Tensor<'a>,
        id: u32,
        operand: Operand,
    ) -> Result<Self, Fault> {
        Ok(Self {
            run,
            table: *table,
            shape: Shape(table.shape()?),
            element_type: Type(table.element_type()?),
            id,
            operand,
        })
    }

    /// Position in the plan.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Which of the operator's tensors it is, for errors.
    pub fn operand(&self) -> Operand {
        self.operand
    }

    /// The type of the elements.
    pub fn element_type(&self) -> Type {
        self.element_type
    }

    /// The dimensions.
    pub fn shape(&self) -> Shape<'a> {
        self.shape
    }

    /// The number of elements; 0 for a shape that no memory holds.
    pub fn len(&self) -> usize {
        self.shape.elements().unwrap_or(0)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The table in the file.
    pub fn table(&self) -> view::Tensor<'a> {
        self.table
    }

    /// [`Fault::ElementType`] of this tensor.
    pub fn wrong_type(&self) -> Fault {
        Fault::ElementType(self.operand)
    }

    /// [`Fault::Shape`] of this tensor.
    pub fn wrong_shape(&self) -> Fault {
        Fault::Shape(self.operand)
    }

    /// [`Fault::Value`] of this tensor.
    pub fn wrong_value(&self) -> Fault {
        Fault::Value(self.operand)
    }

    /// Whether the tensor's elements are of the type, and nothing of them is missing.
    ///
    /// # Errors
    /// [`Fault::ElementType`]
    pub fn expect(&self, element_type: Type) -> Result<(), Fault> {
        match self.element_type == element_type {
            true => Ok(()),
            false => Err(self.wrong_type()),
        }
    }

    /// Whether the values are in the file rather than in the arena.
    pub fn is_constant(&self) -> bool {
        self.constant().is_some()
    }

    /// The values in the file, as they are stored there; `None` for a tensor that is computed.
    pub(crate) fn constant(&self) -> Option<&'a [u8]> {
        self.run.constant(&self.table)
    }

    /// The elements, to read. `T` stands for the type by its size: bool is `u8`.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] if they are not in memory; [`Fault::ElementType`] if `T` has another size than the elements.
    #[inline(never)]
    pub fn read<T: Element>(&self) -> Result<View<'a, T>, Fault> {
        self.sized::<T>()?;
        let bytes = self.bytes()?;
        bytes.cast().ok_or(Fault::NoMemory(self.operand))
    }

    /// The elements, to write and to read, if they are in the arena. `T` stands for the type by its size.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] if they are not in the arena; [`Fault::ElementType`] if `T` has another size than the
    /// elements.
    #[inline(never)]
    pub fn write<T: Element>(&self) -> Result<ViewMut<'a, T>, Fault> {
        self.sized::<T>()?;
        let bytes = self.bytes_mut()?;
        bytes.cast().ok_or(Fault::NoMemory(self.operand))
    }

    fn sized<T: Element>(&self) -> Result<(), Fault> {
        match self.element_type.bytes() == Some(size_of::<T>()) {
            true => Ok(()),
            false => Err(self.wrong_type()),
        }
    }

    /// The elements' bytes, to read.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] if they are not in memory.
    #[inline(never)]
    pub fn bytes(&self) -> Result<View<'a, u8>, Fault> {
        let no_memory = Fault::NoMemory(self.operand);
        let len = self.byte_len().ok_or(no_memory)?;
        let place = Place(self.run.tensor_word(self.id));
        // What is in the arena need not be looked for in the file.
        if place == Place::NONE
            && let Some(constant) = self.constant()
        {
            return View::of(constant).part(0, len).ok_or(no_memory);
        }
        let found = self.run.at(place, len).ok_or(no_memory)?;
        Ok(found.view())
    }

    /// The bytes of elements of the type, aligned for them.
    ///
    /// # Errors
    /// [`Fault::ElementType`] if they are of another one; [`Fault::NoMemory`] if they are not in memory.
    pub fn of(&self, element_type: Type) -> Result<View<'a, u8>, Fault> {
        self.expect(element_type)?;
        self.bytes()
    }

    /// The bytes of a constant whose elements are packed, two in a byte: INT4.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] if they are not in the file.
    #[inline(never)]
    pub fn packed(&self) -> Result<View<'a, u8>, Fault> {
        let no_memory = Fault::NoMemory(self.operand);
        let constant = self.run.constant(&self.table).ok_or(no_memory)?;
        let len = self.byte_len().ok_or(no_memory)?.div_ceil(2);
        View::of(constant).part(0, len).ok_or(no_memory)
    }

    /// The elements' bytes, to write and to read, if they are in the arena.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] if they are not in the arena.
    #[inline(never)]
    pub fn bytes_mut(&self) -> Result<ViewMut<'a, u8>, Fault> {
        let no_memory = Fault::NoMemory(self.operand);
        let len = self.byte_len().ok_or(no_memory)?;
        let place = Place(self.run.tensor_word(self.id));
        self.run.at(place, len).ok_or(no_memory)
    }

    /// Bytes of all elements, as a plan counts them; `None` where they are not known.
    pub(crate) fn byte_len(&self) -> Option<usize> {
        self.shape
            .elements()?
            .checked_mul(self.element_type.bytes()?)
    }

    /// All scales: one, or one for each index of the quantized dimension; empty if the tensor is not quantized.
    #[inline(never)]
    pub fn scales(&self) -> Vector<'a, f32> {
        let quantization = self.table.quantization().ok().flatten();
        let scales = quantization.and_then(|q| q.scale().ok());
        scales.unwrap_or_default()
    }

    /// All zero points, as many as there are scales, or none.
    #[inline(never)]
    pub fn zero_points(&self) -> Vector<'a, i64> {
        let quantization = self.table.quantization().ok().flatten();
        let zero_points = quantization.and_then(|q| q.zero_point().ok());
        zero_points.unwrap_or_default()
    }

    /// The first scale and the first zero point; 0 where there is none.
    #[inline(never)]
    pub(crate) fn first_quantization(&self) -> (f32, i32) {
        let Ok(Some(quantization)) = self.table.quantization() else {
            return (0.0, 0);
        };
        let scale = quantization.scale().ok().and_then(|scales| scales.get(0));
        let zero_point = quantization.zero_point().ok();
        let zero_point = zero_point.and_then(|points| points.get(0));
        (
            scale.unwrap_or_default(),
            zero_point.unwrap_or_default() as i32,
        )
    }

    /// The first scale.
    ///
    /// # Errors
    /// [`Fault::Quantization`] if there is none.
    #[inline(never)]
    pub fn scale(&self) -> Result<f32, Fault> {
        let scale = self.scales().get(0);
        scale.ok_or(Fault::Quantization(self.operand))
    }

    /// The first zero point; 0 if there is none.
    #[inline(never)]
    pub fn zero_point(&self) -> i32 {
        self.zero_points().get(0).unwrap_or(0) as i32
    }
}

/// The dimensions of a tensor, outermost first, read from the file.
#[derive(Clone, Copy, Default)]
pub struct Shape<'a>(pub(crate) Vector<'a, i32>);

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Shape<'_> {
    /// The number of dimensions.
    pub fn rank(self) -> usize {
        self.0.len()
    }

    /// Dimension `axis`; 0 if it is not known, 1 outside the shape.
    pub fn dim(self, axis: usize) -> usize {
        let dim = self.0.get(axis).unwrap_or(1);
        usize::try_from(dim).unwrap_or(0)
    }

    /// Dimension `axis`, counted from the innermost one, 0; 0 if it is not known, 1 outside the shape.
    pub fn dim_from_end(self, axis: usize) -> usize {
        match self.rank().checked_sub(axis + 1) {
            Some(axis) => self.dim(axis),
            None => 1,
        }
    }

    /// The product of all dimensions; `None` if one is not known, or if it is no address.
    pub fn elements(self) -> Option<usize> {
        self.product(0, self.rank())
    }

    /// The product of the dimensions from `from` to before `to`.
    #[inline(never)]
    pub fn product(self, from: usize, to: usize) -> Option<usize> {
        let mut product = 1usize;
        for axis in from..to.min(self.rank()) {
            let dim = usize::try_from(self.0.get(axis)?).ok()?;
            product = product.checked_mul(dim)?;
        }
        (product <= isize::MAX as usize).then_some(product)
    }

    /// All dimensions, with ones in front of them; `None` if there are more than `N`, or one is not known.
    pub fn extended<const N: usize>(self) -> Option<[usize; N]> {
        let missing = N.checked_sub(self.rank())?;
        let mut dims = [1; N];
        for (dim, stored) in dims.iter_mut().skip(missing).zip(self.0) {
            *dim = usize::try_from(stored).ok()?;
        }
        Some(dims)
    }

    /// The dimensions of a shape with exactly `N` of them, all known.
    pub fn dims<const N: usize>(self) -> Option<[usize; N]> {
        if self.rank() != N {
            return None;
        }
        self.extended()
    }
}

impl PartialEq for Shape<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes() == other.0.as_bytes()
    }
}
