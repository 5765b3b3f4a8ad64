//! Looks up library functions by name.

use std::ffi::{CStr, c_char, c_int};

use super::say;

/// A loaded library.
pub struct Loaded {
    pub name: &'static str,
    library: libloading::Library,
}

impl Loaded {
    /// Opens the first of these files that exists.
    pub fn open(name: &'static str, files: &[&str]) -> Result<Loaded, String> {
        // SAFETY: these are NVIDIA's libraries, or stand-ins for them, which the probe has already loaded.
        let opened = files.iter().find_map(|file| unsafe { libloading::Library::new(*file) }.ok());
        let library = opened.ok_or_else(|| format!("{} cannot be opened", files.join(" or ")))?;
        Ok(Loaded { name, library })
    }

    /// A function of this type; None if the library has no function of that name.
    ///
    /// # Safety
    /// The function has the type `F`.
    pub unsafe fn get<F: Copy>(&self, function: &str) -> Option<F> {
        // SAFETY: by the contract.
        let found = unsafe { self.library.get::<F>(function.as_bytes()) }.ok().map(|found| *found);
        if found.is_none() {
            say(self.name, function, "there is no such function");
        }
        found
    }

    /// Prints the texts of these codes, from a function that takes a code and returns a text.
    pub fn say_texts(&self, function: &str, codes: &[c_int]) {
        type Text = unsafe extern "C" fn(c_int) -> *const c_char;
        // SAFETY: callers pass only functions of this type.
        let Some(text_of) = (unsafe { self.get::<Text>(function) }) else { return };
        for code in codes {
            // SAFETY: any code is allowed; the text is never freed.
            let text = unsafe { text(text_of(*code)) };
            say(self.name, &format!("{function}({code})"), &text);
        }
    }
}

/// A text of a library.
///
/// # Safety
/// The pointer is null or points to a NUL-terminated string.
pub unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return "(null)".to_owned();
    }
    // SAFETY: by the contract.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
