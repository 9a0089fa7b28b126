//! Models that `hagane build` compiled.
//!
//! ```no_run
//! let model = hagane::Model::open("net.hagane")?;
//! let results = model.run(&[hagane::Input::new("x", &[2, 4], &[0.5f32; 8])])?;
//! println!("{:?} {:?}", results[0].shape(), results[0].values::<f32>()?);
//! # Ok::<(), hagane::Error>(())
//! ```

use std::ffi::{c_char, c_void, CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

const AXES: usize = 16;

#[repr(C)]
struct RawModel {
    private: [u8; 0],
}

#[repr(C)]
struct RawTensor {
    name: *const c_char,
    kind: i32,
    rank: i32,
    shape: [i64; AXES],
    data: *mut c_void,
    bytes: usize,
}

#[repr(C)]
struct RawInfo {
    name: *const c_char,
    kind: i32,
    rank: i32,
    least: [i64; AXES],
    most: [i64; AXES],
}

#[repr(C)]
struct RawOptions {
    size: usize,
    threads: i32,
    pointers: [usize; 6],
}

extern "C" {
    fn hagane_open(folder: *const c_char, options: *const RawOptions, model: *mut *mut RawModel) -> i32;
    fn hagane_close(model: *mut RawModel);
    fn hagane_inputs(model: *const RawModel) -> usize;
    fn hagane_outputs(model: *const RawModel) -> usize;
    fn hagane_input(model: *const RawModel, index: usize, info: *mut RawInfo) -> i32;
    fn hagane_output(model: *const RawModel, index: usize, info: *mut RawInfo) -> i32;
    fn hagane_run(
        model: *mut RawModel,
        inputs: *const RawTensor,
        input_count: usize,
        outputs: *mut RawTensor,
        output_count: usize,
    ) -> i32;
    fn hagane_release(model: *mut RawModel, outputs: *mut RawTensor, count: usize);
    fn hagane_message() -> *const c_char;
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    InvalidArgument = 1,
    NotFound,
    Damaged,
    Shape,
    Type,
    Cpu,
    Memory,
    Version,
    Cancelled,
    Internal,
}

/// A call that failed, with hagane's message.
#[derive(Debug, Clone)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn check(code: i32) -> Result<(), Error> {
    let code = match code {
        0 => return Ok(()),
        1 => Code::InvalidArgument,
        2 => Code::NotFound,
        3 => Code::Damaged,
        4 => Code::Shape,
        5 => Code::Type,
        6 => Code::Cpu,
        7 => Code::Memory,
        8 => Code::Version,
        9 => Code::Cancelled,
        _ => Code::Internal,
    };
    // SAFETY: the message is a C string that lives until this thread's next call.
    let message = unsafe { CStr::from_ptr(hagane_message()) }.to_string_lossy().into_owned();
    Err(Error { code, message })
}

fn invalid(message: &str) -> Error {
    Error { code: Code::InvalidArgument, message: message.into() }
}

/// A type of elements.
///
/// # Safety
/// `KIND` is ONNX's number of a type whose elements are the values of `Self`.
pub unsafe trait Element: Copy {
    const KIND: i32;
}

macro_rules! elements {
    ($($type:ty: $kind:expr),*) => {
        $(
            // SAFETY: both are numbers of the same width and form.
            unsafe impl Element for $type {
                const KIND: i32 = $kind;
            }
        )*
    };
}
elements!(f32: 1, u8: 2, i8: 3, u16: 4, i16: 5, i32: 6, i64: 7, bool: 9, f64: 11, u32: 12, u64: 13);
elements!(Float16: 10, BFloat16: 16);

/// The bits of a 16-bit float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Float16(pub u16);

/// The bits of a bfloat16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct BFloat16(pub u16);

/// An input: elements in row-major order.
pub struct Input<'a> {
    name: String,
    kind: i32,
    shape: Vec<i64>,
    data: *const c_void,
    bytes: usize,
    lives: PhantomData<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// Names memory of the caller's; a run tells if it does not fit.
    pub fn new<T: Element>(name: &str, shape: &[i64], data: &'a [T]) -> Self {
        Self {
            name: name.to_string(),
            kind: T::KIND,
            shape: shape.to_vec(),
            data: data.as_ptr().cast(),
            bytes: std::mem::size_of_val(data),
            lives: PhantomData,
        }
    }
}

/// An input or output of a model, and the sizes that it was built for.
#[derive(Debug, Clone)]
pub struct Info {
    pub name: String,
    pub kind: i32,
    pub least: Vec<i64>,
    pub most: Vec<i64>,
}

struct Handle(*mut RawModel);
// SAFETY: hagane's handles may be run by any number of threads.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle was opened, and nobody has it any more.
        unsafe { hagane_close(self.0) }
    }
}

/// A build that is open; clones share it.
#[derive(Clone)]
pub struct Model(Arc<Handle>);

type Describe = unsafe extern "C" fn(*const RawModel, usize, *mut RawInfo) -> i32;

impl Model {
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(folder, 0)
    }

    /// Opens a build whose runs use so many threads; all cores if 0.
    pub fn open_with(folder: impl AsRef<Path>, threads: i32) -> Result<Self, Error> {
        let folder = CString::new(folder.as_ref().as_os_str().as_bytes())
            .map_err(|_| invalid("the folder's path has a zero byte"))?;
        let options = RawOptions { size: std::mem::size_of::<RawOptions>(), threads, pointers: [0; 6] };
        let mut model = std::ptr::null_mut();
        // SAFETY: all pointers are valid during the call.
        check(unsafe { hagane_open(folder.as_ptr(), &options, &mut model) })?;
        Ok(Self(Arc::new(Handle(model))))
    }

    pub fn inputs(&self) -> Result<Vec<Info>, Error> {
        // SAFETY: the handle is open.
        self.describe(unsafe { hagane_inputs(self.0 .0) }, hagane_input)
    }

    pub fn outputs(&self) -> Result<Vec<Info>, Error> {
        // SAFETY: the handle is open.
        self.describe(unsafe { hagane_outputs(self.0 .0) }, hagane_output)
    }

    fn describe(&self, count: usize, describe: Describe) -> Result<Vec<Info>, Error> {
        (0..count)
            .map(|index| {
                // SAFETY: a description is numbers and a pointer, for which zeros do.
                let mut info: RawInfo = unsafe { std::mem::zeroed() };
                check(unsafe { describe(self.0 .0, index, &mut info) })?;
                let rank = info.rank as usize;
                let name = unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned();
                let (least, most) = (info.least[..rank].to_vec(), info.most[..rank].to_vec());
                Ok(Info { name, kind: info.kind, least, most })
            })
            .collect()
    }

    /// Runs the model; outputs come in its order.
    pub fn run(&self, inputs: &[Input<'_>]) -> Result<Vec<Output>, Error> {
        let given_names = inputs
            .iter()
            .map(|each| {
                CString::new(each.name.as_str())
                    .map_err(|_| invalid(&format!("there is no input {:?}", each.name)))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let given = inputs
            .iter()
            .zip(&given_names)
            .map(|(each, name)| {
                let (mut shape, rank) = ([0; AXES], each.shape.len());
                if rank > AXES {
                    let message = format!("input '{}' has {rank} axes: expected {AXES} at most", each.name);
                    return Err(Error { code: Code::Shape, message });
                }
                shape[..rank].copy_from_slice(&each.shape);
                let (name, data) = (name.as_ptr(), each.data.cast_mut());
                Ok(RawTensor { name, kind: each.kind, rank: rank as i32, shape, data, bytes: each.bytes })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let names = self
            .outputs()?
            .into_iter()
            .map(|info| CString::new(info.name).map_err(|_| invalid("an output's name has a zero byte")))
            .collect::<Result<Vec<_>, _>>()?;
        let mut wanted: Vec<RawTensor> = names
            .iter()
            .map(|name| {
                let data = std::ptr::null_mut();
                RawTensor { name: name.as_ptr(), kind: 0, rank: 0, shape: [0; AXES], data, bytes: 0 }
            })
            .collect();
        // SAFETY: inputs are only read, and outputs are memory of hagane's own.
        check(unsafe {
            hagane_run(self.0 .0, given.as_ptr(), given.len(), wanted.as_mut_ptr(), wanted.len())
        })?;
        Ok(names
            .into_iter()
            .zip(wanted)
            .map(|(name, tensor)| Output { model: self.clone(), name, tensor })
            .collect())
    }
}

/// A result; its memory goes with it.
pub struct Output {
    model: Model,
    name: CString,
    tensor: RawTensor,
}

// SAFETY: the memory is this result's alone, and hagane's handles may be used by any thread.
unsafe impl Send for Output {}
unsafe impl Sync for Output {}

impl Output {
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    pub fn shape(&self) -> &[i64] {
        &self.tensor.shape[..self.tensor.rank as usize]
    }

    /// The elements, if they are of this type.
    pub fn values<T: Element>(&self) -> Result<&[T], Error> {
        if self.tensor.kind != T::KIND {
            return Err(Error { code: Code::Type, message: "the output has elements of another type".into() });
        }
        let count = self.tensor.bytes / std::mem::size_of::<T>();
        // SAFETY: hagane allocated so many elements of this type, at a multiple of 64.
        Ok(unsafe { std::slice::from_raw_parts(self.tensor.data.cast(), count) })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: the tensor came from a run of this model.
        unsafe { hagane_release(self.model.0 .0, &mut self.tensor, 1) }
    }
}
