(** Runs models that [hagane build] compiled.

    {[
      let model = Hagane.open_build "net.hagane" in
      match Hagane.run model [ ("x", Hagane.Float32 x) ] with
      | [ ("y", Hagane.Float32 y) ] -> y
      | _ -> failwith "another model"
    ]} *)

open Bigarray

(** Numbers of one type in row-major order; the dimensions are the shape. Types without a kind of Bigarray are bytes: [element] is their number in
    ONNX's TensorProto.DataType (10 is float16, 12 uint32, 13 uint64, 16 bfloat16). *)
type tensor =
  | Float32 of (float, float32_elt, c_layout) Genarray.t
  | Float64 of (float, float64_elt, c_layout) Genarray.t
  | Int8 of (int, int8_signed_elt, c_layout) Genarray.t
  | Uint8 of (int, int8_unsigned_elt, c_layout) Genarray.t
  | Int16 of (int, int16_signed_elt, c_layout) Genarray.t
  | Uint16 of (int, int16_unsigned_elt, c_layout) Genarray.t
  | Int32 of (int32, int32_elt, c_layout) Genarray.t
  | Int64 of (int64, int64_elt, c_layout) Genarray.t
  | Bool of (int, int8_unsigned_elt, c_layout) Genarray.t  (** 0 and 1. *)
  | Raw of {
      element : int;
      shape : int array;
      bytes : (int, int8_unsigned_elt, c_layout) Genarray.t;
    }

(** An input or output: its element type as a number of TensorProto.DataType, and the least and most
    of each size that the model was built for. *)
type argument = { name : string; element : int; least : int array; most : int array }

(** A call that failed: its code, as hagane.h has them, and hagane's message. *)
exception Error of int * string

(** A build that is open. Threads may run it at the same time. *)
type t

(** Open the build in a folder.
    @param threads Of a run; as many as the build was made for, or cores there are, if not given.
    @raise Error The folder holds no build, or one for other processors. *)
val open_build : ?threads:int -> string -> t

(** Close a model and release its memory; to close it again does nothing. A model that is no longer
    reachable is closed by the garbage collector.
    @raise Error A thread is running it. *)
val close : t -> unit

val inputs : t -> argument list
val outputs : t -> argument list

(** Run the model on inputs by name, and return outputs by name.
    @param outputs The names of those wanted; all if not given.
    @raise Error An input is missing, unknown, or of another type or size; the model is closed. *)
val run : ?outputs:string list -> t -> (string * tensor) list -> (string * tensor) list
