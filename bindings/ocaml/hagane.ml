open Bigarray

type tensor =
  | Float32 of (float, float32_elt, c_layout) Genarray.t
  | Float64 of (float, float64_elt, c_layout) Genarray.t
  | Int8 of (int, int8_signed_elt, c_layout) Genarray.t
  | Uint8 of (int, int8_unsigned_elt, c_layout) Genarray.t
  | Int16 of (int, int16_signed_elt, c_layout) Genarray.t
  | Uint16 of (int, int16_unsigned_elt, c_layout) Genarray.t
  | Int32 of (int32, int32_elt, c_layout) Genarray.t
  | Int64 of (int64, int64_elt, c_layout) Genarray.t
  | Bool of (int, int8_unsigned_elt, c_layout) Genarray.t
  | Raw of {
      element : int;
      shape : int array;
      bytes : (int, int8_unsigned_elt, c_layout) Genarray.t;
    }

type argument = { name : string; element : int; least : int array; most : int array }

exception Error of int * string

let () = Callback.register_exception "hagane error" (Error (0, ""))

type t

external open_model : string -> int -> t = "hagane_ml_open"
external close : t -> unit = "hagane_ml_close"
external describe : t -> bool -> argument array = "hagane_ml_describe"

external run_model : t -> (string * tensor) array -> string array -> tensor array
  = "hagane_ml_run"

let open_build ?(threads = 0) folder = open_model folder threads
let inputs model = Array.to_list (describe model true)
let outputs model = Array.to_list (describe model false)

let run ?outputs:wanted model given =
  let names =
    match wanted with
    | Some names -> names
    | None -> List.map (fun each -> each.name) (outputs model)
  in
  let found = run_model model (Array.of_list given) (Array.of_list names) in
  List.combine names (Array.to_list found)
