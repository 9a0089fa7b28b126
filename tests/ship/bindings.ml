(* The promises of the OCaml binding, beside its example. *)
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
  fails 2 "/nowhere/manifest.json" (fun () -> Hagane.open_build "/nowhere");
  Hagane.close model;
  Hagane.close model;
  fails 1 "the model is closed" run;
  print_endline "fine"
