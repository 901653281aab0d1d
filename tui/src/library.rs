//! What `-e FILE` names: a native plugin or a script, told by the first bytes of the file, whatever it
//! is called.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The file formats of native libraries: ELF, Mach-O for one processor and for several, PE.
const BEGINNINGS: [&[u8]; 7] = [
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"MZ\x90\x00",
];

/// Whether it is a native library. A file that cannot be read is none: whoever reads it says why.
pub fn is_library(path: &Path) -> bool {
    let mut beginning = [0; 4];
    // A pipe would wait for its writer.
    if !path.is_file() {
        return false;
    }
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && BEGINNINGS.contains(&&beginning[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_library_and_a_text_is_none() {
        assert!(is_library(&std::env::current_exe().unwrap()));
        assert!(!is_library(Path::new(file!())));
        assert!(!is_library(Path::new("/no such file")));
    }
}
