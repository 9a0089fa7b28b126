(* The promises of the OCaml binding, beside its example: bindings BUILD GUESTS DAMAGED… *)
open Bigarray

let expect condition text = if not condition then failwith text

let contains text part =
  let n = String.length part in
  let rec at i = i + n <= String.length text && (String.sub text i n = part || at (i + 1)) in
  at 0

let fails code part action =
  match action () with
  | exception Hagane.Error (found, message) ->
      expect (found = code && contains message part) (Printf.sprintf "%d: %s" found message)
  | _ -> failwith ("expected an error with '" ^ part ^ "'")

let numbers shape =
  let made = Genarray.create float32 c_layout shape in
  let flat = reshape_1 made (Array.fold_left ( * ) 1 shape) in
  for i = 0 to Array1.dim flat - 1 do flat.{i} <- float_of_int i /. 144. done;
  Hagane.Float32 made

let raw element count bytes =
  let made = Array1.of_array int8_unsigned c_layout bytes in
  Hagane.Raw { element; shape = [| count |]; bytes = genarray_of_array1 made }

let whole values = Hagane.Int64 (genarray_of_array1 (Array1.of_array int64 c_layout values))

let mixed build =
  let model = Hagane.open_build build in
  let guests =
    [
      ("x", numbers [| 2; 3 |]);
      ("ids", whole [| 0L; 9L; 4L |]);
      ("flag", Hagane.Bool (genarray_of_array1 (Array1.of_array int8_unsigned c_layout [| 1; 0 |])));
      ("half", raw 10 2 [| 0; 0x3c; 0; 0xc0 |]);
      ("größe😀", raw 13 1 (Array.make 8 255));
    ]
  in
  let with_ name tensor () = Hagane.run model ((name, tensor) :: List.remove_assoc name guests) in
  (match Hagane.run model guests with
  | [ ("y", Hagane.Float32 y); _; ("unflagged", Hagane.Bool flags); ("halved", Hagane.Raw half); (name, Hagane.Raw most) ] ->
      expect (Genarray.dims y = [| 2; 2 |] && Genarray.get flags [| 1 |] = 1) "small types";
      expect (half.element = 10 && Genarray.get half.bytes [| 1 |] = 0xbc) "halves";
      expect (name = "länge😀" && Genarray.get most.bytes [| 7 |] = 255) "names"
  | _ -> failwith "the outputs");
  (match Hagane.run ~outputs:[ "y" ] model (("x", numbers [| 0; 3 |]) :: List.remove_assoc "x" guests) with
  | [ ("y", Hagane.Float32 y) ] -> expect (Genarray.dims y = [| 0; 2 |]) "no rows"
  | _ -> failwith "no rows");
  fails 4 "input 'x': axis 0 is 5, expected 0 to 4" (with_ "x" (numbers [| 5; 3 |]));
  fails 4 "input 'x': axis 1 is 4, expected 3" (with_ "x" (numbers [| 2; 4 |]));
  fails 4 "input 'x': expected 2 axes, got 1" (with_ "x" (numbers [| 3 |]));
  fails 5 "input 'x': expected float32, got int64" (with_ "x" (whole [| 1L |]));
  fails 4 "axis 0 is -1" (with_ "ids" (Hagane.Raw { element = 7; shape = [| -1 |]; bytes = Genarray.create int8_unsigned c_layout [| 0 |] }));
  fails 7 "expected memory of 16 bytes, got 8" (with_ "ids" (Hagane.Raw { element = 7; shape = [| 2 |]; bytes = Genarray.create int8_unsigned c_layout [| 8 |] }));
  fails 7 "more than 16 axes" (with_ "half" (Hagane.Raw { element = 10; shape = Array.make 17 1; bytes = Genarray.create int8_unsigned c_layout [| 2 |] }));
  fails 1 "there is no input 'z'; the model has: x, ids" (with_ "z" (numbers [| 1 |]));
  fails 1 "a zero byte" (with_ "x\000" (numbers [| 1 |]));
  fails 1 "input 'half' is missing" (fun () -> Hagane.run model (List.remove_assoc "half" guests));
  fails 1 "'look up'" (with_ "ids" (whole [| 10L |]));
  fails 1 "there is no output 'q'" (fun () -> Hagane.run ~outputs:[ "q" ] model guests)

let () =
  let model = Hagane.open_build ~threads:1 Sys.argv.(1) in
  let shape = [| 1; 3; 6; 8 |] in
  expect (Hagane.inputs model = [ { name = "x"; element = 1; least = shape; most = shape } ]) "inputs";
  expect (List.map (fun (each : Hagane.argument) -> each.name) (Hagane.outputs model) = [ "y" ]) "outputs";
  let x = numbers shape in
  let run () = Hagane.run ~outputs:[ "y" ] model [ ("x", x) ] in
  let expected = run () in
  (match expected with
  | [ ("y", Hagane.Float32 y) ] -> expect (Genarray.dims y = [| 1; 10 |]) "the output"
  | _ -> failwith "the output's type");
  let same = Array.make 4 false in
  let check i = same.(i) <- List.for_all (fun () -> run () = expected) (List.init 20 (fun _ -> ())) in
  List.iter Thread.join (List.init 4 (Thread.create check));
  expect (Array.for_all Fun.id same) "threads";
  for _ = 1 to 200 do ignore (run ()); Gc.minor () done;
  Gc.full_major ();
  fails 4 "input 'x': axis 3 is 9, expected 8" (fun () -> Hagane.run model [ ("x", numbers [| 1; 3; 6; 9 |]) ]);
  fails 1 "there is no input 'z'; the model has: x" (fun () -> Hagane.run model [ ("z", x) ]);
  fails 5 "input 'x'" (fun () ->
      Hagane.run model [ ("x", Hagane.Int64 (Genarray.create int64 c_layout shape)) ]);
  mixed Sys.argv.(2);
  for i = 3 to Array.length Sys.argv - 1 do
    match Hagane.open_build Sys.argv.(i) with
    | exception Hagane.Error (_, message) -> expect (contains message Sys.argv.(i)) message
    | _ -> failwith Sys.argv.(i)
  done;
  Hagane.close model;
  Hagane.close model;
  fails 1 "the model is closed" run;
  print_endline "fine"
