//! Links with the library of a build: `HAGANE_BUILD` is its folder.

fn main() {
    println!("cargo:rerun-if-env-changed=HAGANE_BUILD");
    let Ok(folder) = std::env::var("HAGANE_BUILD") else {
        println!("cargo:warning=HAGANE_BUILD names no build: set it to a folder of `hagane build`");
        return;
    };
    let library = std::fs::read_dir(&folder)
        .expect("HAGANE_BUILD is a folder")
        .filter_map(|item| item.ok()?.file_name().into_string().ok())
        .find(|name| name.starts_with("lib") && name.ends_with(".so") && name != "libmenoh.so")
        .expect("HAGANE_BUILD has a library");
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=dylib={}", &library[3..library.len() - 3]);
}
