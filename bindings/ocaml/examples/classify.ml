(* Classifies a picture: classify BUILD PICTURE.ppm

   The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1. *)
open Bigarray

let read_picture path height width =
  let file = open_in_bin path in
  let bytes = really_input_string file (in_channel_length file) in
  close_in file;
  let head = Printf.sprintf "P6\n%d %d\n255\n" width height in
  let start = String.length head and area = height * width in
  if String.length bytes <> start + (3 * area) || String.sub bytes 0 start <> head then
    failwith (Printf.sprintf "expected a PPM of %d x %d" width height);
  let pixels = Array1.create float32 c_layout (3 * area) in
  for i = 0 to (3 * area) - 1 do
    pixels.{i} <- float_of_int (Char.code bytes.[start + (i mod area * 3) + (i / area)]) /. 255.
  done;
  reshape (genarray_of_array1 pixels) [| 1; 3; height; width |]

let best scores =
  let flat = reshape_1 scores (Array.fold_left ( * ) 1 (Genarray.dims scores)) in
  let found = ref 0 in
  for i = 1 to Array1.dim flat - 1 do
    if flat.{i} > flat.{!found} then found := i
  done;
  !found

let classify build picture =
  let model = Hagane.open_build build in
  let input = List.hd (Hagane.inputs model) in
  let pixels = read_picture picture input.least.(2) input.least.(3) in
  match Hagane.run model [ (input.name, Hagane.Float32 pixels) ] with
  | (_, Hagane.Float32 scores) :: _ -> Printf.printf "%d\n" (best scores)
  | _ -> failwith "expected scores in float32"

let () =
  try classify Sys.argv.(1) Sys.argv.(2) with
  | Hagane.Error (_, message) | Failure message ->
      prerr_endline message;
      exit 1
