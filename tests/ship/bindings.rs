//! The promises of the binding for Rust, beside its example: bindings BUILD GUESTS DAMAGED…

use hagane::{Code, Error, Float16, Input, Model};

fn fails<T>(code: Code, text: &str, found: Result<T, Error>) {
    match found {
        Ok(_) => panic!("expected an error with '{text}'"),
        Err(error) => {
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.contains(text), "expected '{text}', got '{error}'");
        }
    }
}

const LARGEST: [u64; 1] = [u64::MAX];
const FLAGS: [bool; 2] = [true, false];
const HALVES: [Float16; 2] = [Float16(0x3c00), Float16(0xc000)];
const IDS: [i64; 3] = [0, 9, 4];
const ZEROS: [f32; 15] = [0.0; 15];

fn guests<'a>(x: Input<'a>, ids: &'a [i64]) -> Vec<Input<'a>> {
    vec![
        x,
        Input::new("ids", &[ids.len() as i64], ids),
        Input::new("flag", &[2], &FLAGS),
        Input::new("half", &[2], &HALVES),
        Input::new("größe😀", &[1], &LARGEST),
    ]
}

fn rows(shape: &[i64]) -> Vec<Input<'static>> {
    guests(Input::new("x", shape, &ZEROS), &IDS)
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let model = Model::open(&arguments[2])?;
    let first = model.inputs()?.remove(0);
    assert_eq!((first.name.as_str(), first.least, first.most), ("x", vec![0, 3], vec![4, 3]));
    let numbers = [1.0, 2.0, 3.0, f32::NAN, 5.0, 6.0];
    let found = model.run(&guests(Input::new("x", &[2, 3], &numbers), &IDS))?;
    let y = found[0].values::<f32>()?;
    assert!(y.len() == 4 && y[0].is_finite() && y[2].is_nan());
    assert_eq!(found[2].values::<bool>()?, [false, true]);
    assert_eq!(found[3].values::<Float16>()?, [Float16(0xbc00), Float16(0x4000)]);
    assert_eq!((found[4].name(), found[4].values::<u64>()?), ("länge😀", &LARGEST[..]));
    assert_eq!(model.run(&rows(&[0, 3]))?[0].shape(), [0, 2]);
    fails(Code::Type, "elements of another type", found[0].values::<i32>());

    fails(Code::Shape, "input 'x': axis 0 is 5, expected 0 to 4", model.run(&rows(&[5, 3])));
    fails(Code::Shape, "input 'x': axis 1 is 4, expected 3", model.run(&rows(&[2, 4])));
    fails(Code::Shape, "input 'x': axis 0 is -1", model.run(&rows(&[-1, 3])));
    fails(Code::Shape, "input 'x': expected 2 axes, got 1", model.run(&rows(&[3])));
    fails(Code::Shape, "input 'x' has 17 axes", model.run(&rows(&[1; 17])));
    let few = guests(Input::new("x", &[4, 3], &ZEROS[..1]), &IDS);
    fails(Code::Memory, "expected memory of 48 bytes, got 4", model.run(&few));
    let wide = guests(Input::new("x", &[1, 3], &[0f64; 3]), &IDS);
    fails(Code::Type, "input 'x': expected float32, got float64", model.run(&wide));
    for (name, told) in [("z", "'z'; the model has: x, ids"), ("x\0", "\"x\\0\"")] {
        let mut more = rows(&[1, 3]);
        more.push(Input::new(name, &[1], &FLAGS[..1]));
        fails(Code::InvalidArgument, &format!("there is no input {told}"), model.run(&more));
    }
    fails(Code::InvalidArgument, "input 'größe😀' is missing", model.run(&rows(&[1, 3])[..4]));
    fails(Code::InvalidArgument, "'look up'", model.run(&guests(Input::new("x", &[1, 3], &ZEROS), &[10])));
    for folder in &arguments[3..] {
        let error = Model::open(folder).err().expect("a damaged build");
        assert!(error.message.contains(folder), "{error}");
    }

    let shared = Model::open(&arguments[1])?;
    let pixels = [0.5f32; 144];
    let once = |model: &Model| model.run(&[Input::new("x", &[1, 3, 6, 8], &pixels)]);
    let expected = once(&shared)?[0].values::<f32>()?.to_vec();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let own = shared.clone();
                for _ in 0..20 {
                    let results = once(&own).expect("a run");
                    assert_eq!(results[0].values::<f32>().expect("numbers"), expected);
                }
            });
        }
    });
    let kept = once(&shared)?;
    drop(shared);
    assert_eq!(kept[0].values::<f32>()?, expected); // results hold their model
    println!("fine");
    Ok(())
}
