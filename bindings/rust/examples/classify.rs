//! Classifies a picture: classify BUILD PICTURE.ppm
//!
//! The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.

use std::error::Error;

fn read_picture(path: &str, height: i64, width: i64) -> Result<Vec<f32>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let head = format!("P6\n{width} {height}\n255\n");
    let pixels = bytes.strip_prefix(head.as_bytes()).ok_or(format!("expected a PPM of {width} x {height}"))?;
    let count = (height * width) as usize;
    Ok((0..3 * count).map(|i| f32::from(pixels[i % count * 3 + i / count]) / 255.0).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, build, picture] = arguments.as_slice() else {
        return Err("usage: classify BUILD PICTURE.ppm".into());
    };
    let model = hagane::Model::open(build)?;
    let input = model.inputs()?.remove(0);
    let (height, width) = (input.least[2], input.least[3]);
    let pixels = read_picture(picture, height, width)?;
    let results = model.run(&[hagane::Input::new(&input.name, &[1, 3, height, width], &pixels)])?;
    let scores = results[0].values::<f32>()?;
    let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    println!("{}", best.ok_or("no scores")?);
    Ok(())
}
